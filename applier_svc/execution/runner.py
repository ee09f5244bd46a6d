"""Runs a plan, or takes it back, move by move as the scheduler says; from wherever its journal is."""

from collections.abc import Callable, Sequence

from applier_svc.execution.exchange import Exchange
from applier_svc.execution.executor import Executor
from applier_svc.execution.order import Order
from applier_svc.execution.secrets import LOST
from services.engine.decisions import BlockedStep, StepDecision, decided_records
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

    def __init__(self, exchange: Exchange, executor: Executor, is_cancelled: Callable[[], bool]) -> None:
        self._exchange = exchange
        self._executor = executor
        self._journal = exchange.journal
        self._progress = exchange.journal.progress
        self._is_cancelled = is_cancelled

    async def decide(self, decisions: Sequence[StepDecision], blocked: Sequence[BlockedStep]) -> None:
        """
        Take what somebody decided for blocked steps as known, before anything else is done.

        Raises:
            PkgerError: As ``run``; the decisions count if they were stored.
        """
        # An operation is blocked in the direction in which it went.
        decided = decided_records(decisions, blocked, self._progress)
        records = await self._exchange.inquiry.with_what_is_there(decided)
        await self._journal.decide(records, blocked[0].direction)

    async def run(self, cause: str = "") -> End:
        """
        Do all steps, or undo those that were done; a step that fails is an event and no error.

        Args:
            cause: Why all is to be taken back, for a reason that lies in no step; empty: there is none yet.

        Raises:
            PkgerError: Nothing more may be sent or noted; whoever gets the lease next carries on from the journal.
        """
        self._progress.cause = cause
        while True:
            lost = self._exchange.secrets.lost(self._progress)
            move = next_move(self._progress, self._exchange.traits, self._is_cancelled(), lost)
            if isinstance(move, Finish | Block):
                # What may still arrive would come after the end.
                await self._exchange.inquiry.settle()
                return move
            await self._make(move)

    async def _make(self, move: Move) -> None:
        match move:
            case LookUp(undone, done):
                await self._exchange.inquiry.look_up(undone, Direction.UNDO)
                await self._exchange.inquiry.look_up(done, Direction.DO)
            case RunStage(index, name, effects):
                await self._journal.start_stage(index, name, len(effects))
                await self._executor.send(effects, Order(Direction.DO, self._is_stopped))
            case Seal():
                await self._journal.seal()
            case RetryCreations(cause, stages, lost):
                self._progress.cause, self._progress.has_retried_creations = cause, True
                await self._ask_again(stages, lost)
            case RollBack(cause, step_count):
                # What got no answer may still arrive, also where it was sent again and done: on what the undo restores.
                await self._exchange.inquiry.settle(is_stubborn=True)
                await self._journal.turn_back(cause, step_count)
            case Undo(effects):
                await self._executor.send(effects, Order(Direction.UNDO, is_stubborn=True))

    async def _ask_again(self, stages: Sequence[Sequence[AnyEffect]], lost: Sequence[AnyEffect]) -> None:
        if lost:
            outcomes: dict[int, Outcome] = {effect.number: Unknown(LOST) for effect in lost}
            await self._journal.record(outcomes, Direction.DO)
        for effects in stages:
            await self._executor.send(effects, Order(Direction.DO, is_stubborn=True))

    def _is_stopped(self) -> bool:
        return self._is_cancelled() and not self._progress.sealed
