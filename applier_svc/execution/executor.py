"""Sends the effects of one operation: round by round, in batches, several at a time."""

import asyncio
from collections.abc import Sequence
from functools import partial

from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

from applier_svc.execution.batch import Batch
from applier_svc.execution.exchange import Exchange
from applier_svc.execution.order import Order
from applier_svc.execution.prober import UNREADABLE, IdsByName, Prober
from applier_svc.execution.retrying import repeated, stop_after
from services.core.errors import PkgerError
from services.engine.batches import batches, rounds
from services.engine.effects import AnyEffect
from services.engine.outcome import Failed


class Executor:
    """
    Sends the effects of one operation to one platform.

    Attributes:
        halted: Why nothing is sent any more: the lease is lost, the driver knows of a newer token, or the journal
            cannot be written. None: it is sent.
    """

    def __init__(self, exchange: Exchange, prober: Prober) -> None:
        self.halted: PkgerError | None = None
        self._exchange = exchange
        self._prober = prober

    async def send(self, effects: Sequence[AnyEffect], order: Order) -> None:
        """
        Send *effects*, which may run at the same time, in batches; the journal knows their outcomes.

        What gets no answer is sent again where that has its effect once. Of all else, and of what never gets one, the
        platform shows what became of it; what did not happen is sent again, as often as the timeouts allow.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``; the journal names what is open.
        """
        before = await self._list_before(effects, order)
        relist = partial(self._list_before, order=order)
        traits = self._exchange.traits
        slots = asyncio.Semaphore(max(traits.max_concurrency, 1))
        for turn in rounds(effects):
            cut = [
                Batch(self._exchange, order, batch, before, relist) for batch in batches(turn, traits.max_batch_size)
            ]
            # A defect in one batch must not leave others running behind the operation's back.
            for result in await asyncio.gather(*(self._run(batch, slots) for batch in cut), return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
            if self.halted:
                raise self.halted

    async def _run(self, batch: Batch, slots: asyncio.Semaphore) -> None:
        async with slots:
            if self.halted:
                return
            try:
                await batch.run()
            except PkgerError as error:
                self.halted = self.halted or error

    async def _list_before(self, effects: Sequence[AnyEffect], order: Order) -> IdsByName | Failed:
        """What is there before *effects* are sent, of the kinds whose creations may have to be searched for."""
        kinds = {effect.step.key.kind for effect in effects if effect.is_searched_for(self._exchange.traits)}
        if not kinds:
            return {}

        known = self._exchange.journal.progress.ids.known()

        async def attempt() -> IdsByName | Failed:
            try:
                return await self._prober.ids_by_name(kinds, known)
            except UNREADABLE as error:
                problem = self._exchange.secrets.masked(str(error))
                return Failed(f"it was not sent, as what is there before it cannot be listed: {problem}")

        timeouts = self._exchange.timeouts
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda found: isinstance(found, Failed)),
            wait=timeouts.between_attempts,
            stop=stop_after(timeouts.resolution) if order.until_resolved else stop_after_attempt(timeouts.attempts),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else {},
        )
        return await repeated(retrying, attempt)
