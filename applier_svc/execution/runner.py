"""Runs a plan or rolls it back from the state of its journal, one move of the scheduler after another."""

from collections.abc import Callable, Sequence

from applier_svc.execution.context import ExecutionContext
from applier_svc.execution.executor import Executor
from applier_svc.execution.journal_protocol import OutcomeRefused
from applier_svc.execution.secrets import LOST
from applier_svc.execution.send_mode import SendMode
from services.engine.decisions import BlockedStep, StepDecision, decided_records, records_of_consent
from services.engine.effects import AnyEffect
from services.engine.operation import Direction
from services.engine.outcome import Outcome, Unknown
from services.engine.scheduler import (
    Block,
    Finish,
    LookUp,
    Move,
    RetryCreations,
    RollBack,
    RunStage,
    Seal,
    Undo,
    next_move,
)

End = Finish | Block


class Runner:
    """One run of one plan."""

    def __init__(self, context: ExecutionContext, executor: Executor, is_cancelled: Callable[[], bool]) -> None:
        self._context = context
        self._executor = executor
        self._journal = context.journal
        self._progress = context.journal.progress
        self._is_cancelled = is_cancelled

    async def decide(self, decisions: Sequence[StepDecision], blocked: Sequence[BlockedStep]) -> None:
        """
        Record the decisions for blocked steps, before any other move.

        Raises:
            PkgerError: As ``run``; the decisions count if they were stored.
        """
        # All steps that block an operation have the same direction.
        decided = decided_records(decisions, blocked, self._progress)
        records = await self._context.lookup.with_live_specs(decided)
        await self._journal.decide(records, blocked[0].direction)

    async def consent(self) -> None:
        """
        Record the consent to continue on a restored store, before any other move.

        Raises:
            PkgerError: As ``run``.
        """
        if records := records_of_consent(self._progress):
            await self._journal.decide(records, Direction.UNDO)

    async def run(self, cause: str = "") -> End:
        """
        Run all steps, or undo the done ones; a failed step is an event and raises nothing.

        Args:
            cause: Why the operation has to roll back although no step failed; empty: it does not have to.

        Raises:
            PkgerError: Nothing more may be sent, or the journal cannot be written. The next holder of the lease resumes
                from the journal.
        """
        self._progress.cause = cause
        while True:
            lost = self._context.secrets.lost(self._progress)
            move = next_move(self._progress, self._context.traits, self._is_cancelled(), lost)
            try:
                if isinstance(move, Finish | Block):
                    # No request may take effect after the end.
                    await self._context.lookup.settle()
                    return move
                await self._make(move)
            except OutcomeRefused as error:
                await self._journal.record(error.outcomes, error.direction)

    async def _make(self, move: Move) -> None:
        match move:
            case LookUp(undone, done):
                await self._context.lookup.look_up(undone, Direction.UNDO)
                await self._context.lookup.look_up(done, Direction.DO)
            case RunStage(index, name, effects):
                await self._journal.start_stage(index, name, len(effects))
                await self._executor.send(effects, SendMode(Direction.DO, self._is_stopped))
            case Seal():
                await self._journal.seal()
            case RetryCreations(cause, stages, lost):
                self._progress.cause, self._progress.has_retried_creations = cause, True
                await self._resend(stages, lost)
            case RollBack(cause, step_count):
                # A request without a response may arrive late, even if its retry is done: it would overwrite the undo.
                await self._context.lookup.settle(until_resolved=True)
                await self._journal.roll_back(cause, step_count)
            case Undo(effects):
                await self._executor.send(effects, SendMode(Direction.UNDO, until_resolved=True))

    async def _resend(self, stages: Sequence[Sequence[AnyEffect]], lost: Sequence[AnyEffect]) -> None:
        if lost:
            outcomes: dict[int, Outcome] = {effect.number: Unknown(LOST) for effect in lost}
            await self._journal.record(outcomes, Direction.DO)
        for effects in stages:
            await self._executor.send(effects, SendMode(Direction.DO, until_resolved=True))

    def _is_stopped(self) -> bool:
        return self._is_cancelled() and not self._progress.sealed
