"""Removes what the store has no more use for, again and again, beside the calls."""

import asyncio
import logging

from services.core.errors import PkgerError
from stack_svc.store.store import Limits, Store

log = logging.getLogger("pkger.stack")

PERIOD_SECONDS = 60.0


async def keep_house(store: Store, limits: Limits) -> None:
    """Sweep *store* at once and then once a minute, for ever; a store that is out of order is swept later."""
    while True:
        try:
            while (swept := await store.sweep(limits)).is_full(limits):
                log.info("swept", extra={"rows": swept.rows})
        except PkgerError as error:
            log.warning("cannot sweep the store", extra={"problem": str(error)})
        await asyncio.sleep(PERIOD_SECONDS)
