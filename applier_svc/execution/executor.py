"""Sends the effects of one operation: round by round, in batches, several at a time."""

import asyncio
from collections.abc import Sequence
from functools import partial

from tenacity import AsyncRetrying, retry_if_result, stop_after_attempt

from applier_svc.execution.batch import Batch
from applier_svc.execution.context import ExecutionContext
from applier_svc.execution.prober import UNREADABLE, IdsByName, Prober
from applier_svc.execution.retries import repeated, stop_after
from applier_svc.execution.send_mode import SendMode
from services.core.errors import PkgerError
from services.engine.batches import batches, rounds
from services.engine.effects import AnyEffect
from services.engine.outcome import Failed


class Executor:
    """
    Sends the effects of one operation to one platform.

    Attributes:
        halted: Why nothing more is sent: the lease is lost, the driver knows a newer token, or the journal cannot be
            written. None: batches are sent.
    """

    def __init__(self, context: ExecutionContext, prober: Prober) -> None:
        self.halted: PkgerError | None = None
        self._context = context
        self._prober = prober

    async def send(self, effects: Sequence[AnyEffect], order: SendMode) -> None:
        """
        Send *effects*, which may run at the same time, in batches; their outcomes are in the journal afterwards.

        An effect without a response is sent again if it is repeatable. Otherwise, or if it never gets a response, its
        outcome is looked up on the platform. An effect that was not applied is sent again while the timeouts allow it.

        Raises:
            PkgerError: Nothing more may be sent, see ``halted``; the journal has the open steps.
        """
        before = await self._list_before(effects, order)
        relist = partial(self._list_before, order=order)
        traits = self._context.traits
        slots = asyncio.Semaphore(max(traits.max_concurrency, 1))
        turns = [batches(turn, traits.max_batch_size) for turn in rounds(effects)]
        for turn in turns:
            # The outcomes of the last batch are stored with the next move.
            is_last = turn is turns[-1] and len(turn) == 1
            cut = [Batch(self._context, order, batch, before, relist, is_last) for batch in turn]
            # All batches are awaited: if one ends with a defect, no other batch may run on after the operation has
            # ended.
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

    async def _list_before(self, effects: Sequence[AnyEffect], order: SendMode) -> IdsByName | Failed:
        """List the resources of the kinds whose creations may have to be searched for, before *effects* are sent."""
        kinds = {effect.step.key.kind for effect in effects if effect.is_searched_for(self._context.traits)}
        if not kinds:
            return {}

        await self._context.journal.flush()
        expected = self._context.journal.progress.ids.all_resources()

        async def attempt() -> IdsByName | Failed:
            try:
                return await self._prober.ids_by_name(kinds, expected)
            except UNREADABLE as error:
                problem = self._context.secrets.masked(str(error))
                return Failed(f"it was not sent: the existing resources of its kind cannot be listed: {problem}")

        timeouts = self._context.timeouts
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda listing: isinstance(listing, Failed)),
            wait=timeouts.between_attempts,
            stop=stop_after(timeouts.resolution) if order.until_resolved else stop_after_attempt(timeouts.attempts),
            retry_error_callback=lambda state: state.outcome.result() if state.outcome else {},
        )
        return await repeated(retrying, attempt)
