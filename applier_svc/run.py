"""Carries a plan out stage by stage, and takes it back when a step fails."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pkger.model.v1 import operation_pb2

from applier_svc.effects import Effects, Outcomes
from applier_svc.feed import Happening
from applier_svc.journal import MemoryJournal
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown, outcome_to_pb
from applier_svc.undo import inverse, is_to_be_undone, is_undecidable
from services.core.model import Plan, Step, Undo

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
    cause: str = ""
    leftovers: Mapping[int, Outcome] = field(default_factory=dict)


class Run:
    """
    One run of one plan.

    Attributes:
        sealed: Whether it went past the point of no return: what was done stays, whatever fails (engine.md 3).
    """

    def __init__(
        self,
        plan: Plan,
        effects: Effects,
        journal: MemoryJournal,
        tell: Callable[[Happening], Awaitable[None]],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self.sealed = False
        self._plan = plan
        self._effects = effects
        self._journal = journal
        self._tell = tell
        self._is_cancelled = is_cancelled

    async def run(self) -> Result:
        """Do all steps, or undo those that were done; a step that fails is an event and no error."""
        cause = await self._forward()
        if self._effects.halted:
            return self._blocked(str(self._effects.halted))
        if cause and not self.sealed:
            return await self._back(cause)
        return Result(operation_pb2.OPERATION_STATE_SUCCEEDED, cause, self._leftovers())

    async def take_back(self, cause: str) -> Result:
        """Undo a run that went well, as its outcome cannot be recorded; past the seal it stays."""
        return self._blocked(cause) if self.sealed else await self._back(cause)

    async def _forward(self) -> str:
        """Run the stages in order; returns what failed first, empty when nothing did."""
        cause = ""
        for index, group in groupby(self._plan.steps, key=lambda step: step.stage):
            if self._effects.halted or self._is_stopped() or (cause and not self.sealed):
                break
            steps = list(group)
            # Cancelling is over from here on, so that the line between undone and finished is drawn once.
            self.sealed = self.sealed or any(step.undo is Undo.NONE for step in steps)
            name = self._plan.stages[index]
            await self._tell(operation_pb2.StageStarted(stage=index, name=name, step_count=len(steps)))
            await self._effects.send(steps, Direction.DO, self._is_stopped, self._tell_ended)
            cause = cause or self._first_failure(steps)
        return cause or (CANCELLED if self._is_stopped() else "")

    async def _back(self, cause: str) -> Result:
        """Undo in reverse order of stages, from full pre-images."""
        outcomes = dict(self._journal.done)
        ended = [self._plan.steps[number] for number in sorted(outcomes)]
        doubtful = any(is_undecidable(step, outcomes[step.number]) for step in ended)
        steps = [step for step in ended if is_to_be_undone(step, outcomes[step.number])]
        await self._tell(operation_pb2.UndoStarted(cause=cause, step_count=len(steps)))
        for _, group in groupby(reversed(steps), key=lambda step: step.stage):
            await self._effects.send([inverse(step) for step in group], Direction.UNDO, _never, self._tell_undone)
        if self._effects.halted:
            return self._blocked(f"{cause}; the undo was cut off: {self._effects.halted}")
        if doubtful or not all(isinstance(outcome, Done) for outcome in self._journal.undone.values()):
            return self._blocked(cause)
        return Result(operation_pb2.OPERATION_STATE_ROLLED_BACK, cause)

    async def _tell_ended(self, outcomes: Outcomes) -> None:
        ended = [outcome_to_pb(number, outcomes[number]) for number in sorted(outcomes)]
        await self._tell(operation_pb2.StepsEnded(outcomes=ended))

    async def _tell_undone(self, outcomes: Outcomes) -> None:
        undone = [outcome_to_pb(number, outcomes[number]) for number in sorted(outcomes, reverse=True)]
        await self._tell(operation_pb2.StepsUndone(outcomes=undone))

    def _is_stopped(self) -> bool:
        return self._is_cancelled() and not self.sealed

    def _blocked(self, cause: str) -> Result:
        return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, self._leftovers() if self.sealed else {})

    def _leftovers(self) -> Mapping[int, Outcome]:
        return {
            number: outcome for number, outcome in sorted(self._journal.done.items()) if not isinstance(outcome, Done)
        }

    def _first_failure(self, steps: Sequence[Step]) -> str:
        """One sentence about the steps of a stage that failed; empty when none did."""
        ended = [(step, self._journal.done.get(step.number)) for step in steps]
        told = [
            f"{step.verb.value} {step.key}: {outcome.message}"
            for step, outcome in ended
            if isinstance(outcome, Failed | Unknown)
        ]
        if not told:
            return CANCELLED if any(isinstance(outcome, Skipped) for _, outcome in ended) else ""
        return told[0] + (f" (and {len(told) - 1} more)" if len(told) > 1 else "")


def _never() -> bool:
    """An undo is not to be stopped: the server finishes it on its own time (engine.md 3)."""
    return False
