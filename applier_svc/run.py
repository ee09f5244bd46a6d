"""Carries a plan out stage by stage, and takes it back when a step fails."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pkger.model.v1 import operation_pb2

from applier_svc.effects import Effects
from applier_svc.feed import Happening
from applier_svc.journal import MemoryJournal
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown, outcome_to_pb
from applier_svc.undo import inverse, is_to_be_undone, is_undecidable
from services.core.errors import LeaseLost, TokenStale
from services.core.model import Plan, Step, Undo

log = logging.getLogger("pkger.applier")

CANCELLED = "the operation was cancelled"


@dataclass(frozen=True, slots=True)
class Result:
    """
    How a run ended.

    Attributes:
        state: The state of the operation.
        cause: What failed first; empty when nothing did.
        leftovers: Outcomes of failed steps after the seal, by step number.
    """

    state: operation_pb2.OperationState.ValueType
    cause: str
    leftovers: dict[int, Outcome]


class Run:
    """One run of one plan."""

    def __init__(
        self,
        plan: Plan,
        effects: Effects,
        journal: MemoryJournal,
        tell: Callable[[Happening], Awaitable[None]],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._effects = effects
        self._journal = journal
        self._tell = tell
        self._is_cancelled = is_cancelled
        self._sealed = False

    async def run(self) -> Result:
        """
        Do all steps, or undo those that were done.

        Never raises: a step that fails is an event, and so is a defect of this service.
        """
        try:
            cause = await self._forward()
            if not cause or self._sealed:
                return Result(operation_pb2.OPERATION_STATE_SUCCEEDED, cause, self._failures())
            return await self._back(cause)
        except (LeaseLost, TokenStale) as error:
            # Somebody else may be at work: not one write more, not even to undo.
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, str(error), {})

    async def take_back(self, cause: str) -> Result:
        """Undo a run that went well, as its outcome cannot be recorded; past the seal it stays."""
        if self._sealed:
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, {})
        try:
            return await self._back(cause)
        except (LeaseLost, TokenStale):
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, {})

    async def _forward(self) -> str:
        """Run the stages in order; returns what failed first, empty when nothing did."""
        cause = ""
        for index, group in groupby(self._plan.steps, key=lambda step: step.stage):
            if self._stopped():
                return CANCELLED
            steps = list(group)
            self._sealed = self._sealed or any(step.undo is Undo.NONE for step in steps)
            await self._tell(
                operation_pb2.StageStarted(stage=index, name=self._plan.stages[index], step_count=len(steps))
            )
            try:
                await self._do(steps)
            except (LeaseLost, TokenStale):
                raise
            except Exception as error:
                log.exception("stage failed")
                cause = cause or f"stage {self._plan.stages[index]!r}: {error}"
            cause = cause or self._first_failure(steps)
            if cause and not self._sealed:
                break
        return cause

    async def _do(self, steps: Sequence[Step]) -> None:
        async for outcomes in self._effects.send(steps, Direction.DO, self._stopped):
            ended = [outcome_to_pb(number, outcomes[number]) for number in sorted(outcomes)]
            await self._tell(operation_pb2.StepsEnded(outcomes=ended))

    async def _back(self, cause: str) -> Result:
        """Undo in reverse order of stages, from full pre-images."""
        outcomes = dict(self._journal.done)
        doubtful = [step for step in self._steps_of(outcomes) if is_undecidable(step, outcomes[step.number])]
        # A step with an intent and no outcome was cut off by a defect: nobody knows what came of it.
        doubtful += [step for step in self._plan.steps if step.number in self._journal.open]
        steps = [step for step in self._steps_of(outcomes) if is_to_be_undone(step, outcomes[step.number])]
        await self._tell(operation_pb2.UndoStarted(cause=cause, step_count=len(steps)))
        clean = not doubtful
        for _, group in groupby(reversed(steps), key=lambda step: step.stage):
            async for undone in self._effects.send([inverse(step) for step in group], Direction.UNDO, _never):
                clean = clean and all(isinstance(outcome, Done) for outcome in undone.values())
                ended = [outcome_to_pb(number, undone[number]) for number in sorted(undone, reverse=True)]
                await self._tell(operation_pb2.StepsUndone(outcomes=ended))
        if clean:
            return Result(operation_pb2.OPERATION_STATE_ROLLED_BACK, cause, {})
        return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, {})

    def _stopped(self) -> bool:
        return self._is_cancelled() and not self._sealed

    def _steps_of(self, numbers: Iterable[int]) -> list[Step]:
        return [self._plan.steps[number] for number in sorted(numbers)]

    def _failures(self) -> dict[int, Outcome]:
        return {
            number: outcome for number, outcome in sorted(self._journal.done.items()) if not isinstance(outcome, Done)
        }

    def _first_failure(self, steps: Sequence[Step]) -> str:
        """One sentence about the steps of a stage that failed."""
        failed = [(step, self._journal.done.get(step.number)) for step in steps]
        told = [
            f"{step.verb.value} {step.key}: {outcome.message}"
            for step, outcome in failed
            if isinstance(outcome, Failed | Unknown)
        ]
        if not told:
            return CANCELLED if any(isinstance(outcome, Skipped) for _, outcome in failed) else ""
        return told[0] + (f" (and {len(told) - 1} more)" if len(told) > 1 else "")


def _never() -> bool:
    """An undo is not to be stopped: the server finishes it on its own time (engine.md 3)."""
    return False
