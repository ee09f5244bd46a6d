"""Runs one phase from its condition to its end: begins attempts, records how they end, tries again."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from applier_svc.actions.call import FunctionError, Verdict
from applier_svc.actions.context import RunContext, Told
from applier_svc.actions.outcomes import Endings, Failure, Write, ending_between_attempts, shortened
from applier_svc.actions.phase_call import PhaseCalls
from applier_svc.actions.phase_inputs import read_parameters, stack_of_artifacts
from applier_svc.actions.phase_names import child_id, phase_of
from applier_svc.failpoints import reach
from applier_svc.operation.events import Event
from services.actions.argument_values import RenderingError, render_condition
from services.actions.definitions import Phase
from services.actions.folding import DEFER, PhaseKey, PhaseRecord, Records
from services.actions.life import PhaseState
from services.actions.phase_reason import PhaseReason
from services.actions.signatures import Recovery
from services.core.errors import OperationNotFound, PkgerError


class PhaseRunner:
    """Runs the phases of one action set, each in a task of its own."""

    def __init__(self, context: RunContext, told: Told) -> None:
        self._context = context
        self._told = told
        self._endings = Endings(context.pinned, context.operation, context.progress)
        self._calls = PhaseCalls(context, told)
        self._waiting: set[PhaseKey] = set()

    async def run(self, key: PhaseKey) -> None:
        """
        Run a phase to its end, or until the action set stops before it begins.

        Raises:
            LeaseLost: Another applier works on the action set.
            PkgerError: The store does not answer.
        """
        phase, status = phase_of(self._context.pinned, key), self._context.progress.status(key)
        if not status.attempt and phase.condition and not await self._passes(key, phase):
            return
        while True:
            async with self._slot(key):
                failure = await self._attempt(key, phase)
            if failure is None or not await self._try_again(key, phase, failure):
                return

    def is_waiting(self, key: PhaseKey) -> bool:
        """Whether a phase waits for others to end, and has not begun, so that it need not run when all stops."""
        return key in self._waiting and self._context.progress.status(key).state is not PhaseState.RUNNING

    @asynccontextmanager
    async def _slot(self, key: PhaseKey) -> AsyncIterator[None]:
        """Wait until fewer phases than the bound run in this applier. A deferPhase does not wait, as it cleans up."""
        if key.place == DEFER:
            yield
            return
        self._waiting.add(key)
        try:
            await self._context.slots.acquire()
        finally:
            self._waiting.discard(key)
        try:
            yield
        finally:
            self._context.slots.release()

    async def end_between_attempts(self, key: PhaseKey) -> None:
        """End a phase whose next attempt does not come."""
        progress = self._context.progress
        await self._write(self._endings.failed(key, *ending_between_attempts(progress.status(key), progress.stop)))

    async def interrupt(self, key: PhaseKey, problem: str) -> None:
        """Record that a phase failed because it was interrupted."""
        await self._write(self._endings.failed(key, Failure(PhaseReason.INTERRUPTED, problem)))

    async def cancel_operation(self, key: PhaseKey) -> None:
        """Ask the operation that the current try of a phase has begun to roll back: the phase does not wait for it."""
        if self._context.recovery(key) is Recovery.ATTACH:
            with suppress(OperationNotFound):
                await self._context.operations.cancel(child_id(self._calls.key_text(key)))

    async def run_again(self, key: PhaseKey) -> None:
        """Record that the attempt of a phase was interrupted, and is made again."""
        await self._write(self._endings.interrupted(key))

    async def look_up(self, key: PhaseKey) -> bool:
        """
        Ask the function of an interrupted phase, which runs at most once, for its outcome, and record it.

        Returns:
            Whether the outcome is known: the phase is complete, or may run again.
        """
        phase = phase_of(self._context.pinned, key)
        function = self._context.functions.find(phase.function, phase.version)
        if function is None or function.check is None or key.place == DEFER:
            return False
        verdict, outputs = await function.check(self._calls.key_text(key))
        if verdict is Verdict.DONE:
            await self._write(self._endings.completed(key, self._calls.checked(key, outputs)))
        return verdict is not Verdict.UNKNOWN

    async def _passes(self, key: PhaseKey, phase: Phase) -> bool:
        """Whether the condition of a phase holds; otherwise the phase has ended."""
        try:
            if render_condition(phase, await read_parameters(self._context, key, phase, is_condition=True)):
                return True
            end = self._endings.skipped(key, "its condition is false", await stack_of_artifacts(self._context, key))
        except RenderingError as error:
            end = self._endings.never_begun(key, _failure_of(FunctionError(str(error), error.reason)))
        except PkgerError as error:
            end = self._endings.never_begun(key, _failure_of(self._calls.error_of(error)))
        await self._write(end, unless_stopped=key.place != DEFER)
        return False

    async def _attempt(self, key: PhaseKey, phase: Phase) -> Failure | None:
        """
        Make one attempt, unless the action set stops before.

        Returns:
            Why it failed, if another one may succeed. None: no other one follows.
        """
        progress = self._context.progress
        status = progress.status(key)
        if status.state is not PhaseState.RUNNING:
            record = PhaseRecord(key, PhaseState.RUNNING, status.next_attempt, status.next_try)
            if key.place == DEFER:
                reach("before_defer")
            events = self._endings.started(key, record.attempt)
            if not await self._context.journal.write(Records((record,)), *events, unless_stopped=key.place != DEFER):
                return None
            reach("after_phase_intent")
        try:
            outputs = await self._calls.outputs(key)
        except FunctionError as error:
            failure = _failure_of(error)
            if failure.is_worth_retry and self._has_attempts(key, phase):
                return failure
            state = PhaseState.CANCELLED if failure.reason is PhaseReason.CANCELLED else PhaseState.FAILED
            await self._write(self._endings.failed(key, failure, state))
        else:
            reach("after_phase_effect")
            stack = await stack_of_artifacts(self._context, key)
            await self._write(self._endings.completed(key, outputs, stack))
        if key.place == DEFER:
            reach("after_defer")
        return None

    async def _try_again(self, key: PhaseKey, phase: Phase, failure: Failure) -> bool:
        """Record that a phase is tried again, and wait; False: the action set stops, and the phase has ended."""
        assert phase.retry is not None  # noqa: S101 - only a phase with attempts is tried again
        status = self._context.progress.status(key)
        pause = min(phase.retry.backoff * 2 ** (status.attempt - 1), phase.retry.max_backoff)
        delay = round(pause * self._context.jitter())
        await self._write(self._endings.retried(key, failure, delay))
        if key.place == DEFER:
            await asyncio.sleep(delay / 1000)
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._told.stops.wait(), delay / 1000)
        if self._told.stops.is_set():
            await self.end_between_attempts(key)
            return False
        return True

    def _has_attempts(self, key: PhaseKey, phase: Phase) -> bool:
        attempts = phase.retry.attempts if phase.retry else 1
        is_stopped = self._is_stopped(key)
        return self._context.progress.status(key).attempt < attempts and not is_stopped

    def _is_stopped(self, key: PhaseKey) -> bool:
        return key.place != DEFER and self._context.progress.stop is not None

    async def _write(self, write: Write, unless_stopped: bool = False) -> None:
        if write.records.artifacts:
            reach("before_artifacts")
        events: Sequence[Event] = write.events
        await self._context.journal.write(write.records, *events, unless_stopped=unless_stopped)
        reach("after_phase_record")


def _failure_of(error: FunctionError) -> Failure:
    return Failure(error.reason, shortened(str(error)), error.error_reason, error.is_worth_retry)
