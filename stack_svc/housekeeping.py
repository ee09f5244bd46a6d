"""The periodic sweep, which runs beside the calls."""

import logging

from stack_svc.store.store import RetentionLimits, Store

log = logging.getLogger("pkger.stack")


async def sweep(store: Store, limits: RetentionLimits) -> None:
    """
    Remove all rows that *store* no longer needs, batch by batch.

    Raises:
        ServiceUnavailable: The store fails.
    """
    while (swept := await store.sweep(limits)).is_full(limits):
        log.info("swept", extra={"rows": swept.rows})
