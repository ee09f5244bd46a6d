"""Removes what the store has no more use for, again and again, beside the calls."""

import logging

from stack_svc.store.store import Limits, Store

log = logging.getLogger("pkger.stack")

PERIOD_SECONDS = 60.0
"""Between two sweeps; the first one is made at the start."""


async def sweep(store: Store, limits: Limits) -> None:
    """
    Remove all that *store* need not keep, batch by batch.

    Raises:
        ServiceUnavailable: The store is out of order.
    """
    while (swept := await store.sweep(limits)).is_full(limits):
        log.info("swept", extra={"rows": swept.rows})
