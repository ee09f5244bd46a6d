"""Carries a plan out stage by stage, and takes it back when a step fails; from wherever its journal is."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from pkger.model.v1 import operation_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.effects import Effects
from applier_svc.feed import Happening
from applier_svc.ids import Ids
from applier_svc.journal import Journal
from applier_svc.outcomes import Direction, Done, Failed, GivenUp, Outcome, Outcomes, Skipped, Unknown, outcome_to_pb
from applier_svc.repeating import is_remembered
from applier_svc.secrets import in_doubt, what_stays
from applier_svc.undo import inverse, is_to_be_undone, seals
from services.core.model import Plan, PlatformTraits, Step, Verb

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
    """One run of one plan."""

    def __init__(
        self,
        plan: Plan,
        platform: PlatformTraits,
        effects: Effects,
        journal: Journal,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._platform = platform
        self._effects = effects
        self._journal = journal
        self._progress = journal.progress
        self._is_cancelled = is_cancelled

    async def decide(self, records: Sequence[journal_pb2.StepRecord], direction: Direction, ids: Ids) -> None:
        """
        Take what somebody decided for blocked steps as known, before anything else is done.

        Args:
            records: All that is known of the steps from now on.
            direction: Whether the steps are blocked, or their inverses.
            ids: Ids that earlier steps made; learns from the records.

        Raises:
            PkgerError: As ``run``; the decisions count if they were stored.
        """
        done, told = _DECIDED[direction]
        outcomes: Outcomes = {}
        for record in records:
            if record.state in done:
                outcomes[record.step] = Done(record.remote_id)
            elif record.message:
                outcomes[record.step] = GivenUp(record.message)
        await self._journal.decide(records, told(outcomes) if outcomes else None, self._plan, ids)

    async def run(self) -> Result:
        """
        Do all steps, or undo those that were done; a step that fails is an event and no error.

        Raises:
            PkgerError: Nothing more may be sent or noted; whoever gets the lease next carries on from the journal.
        """
        await self._find_out()
        if self._progress.turned_back:
            return await self.take_back(self._progress.turned_back)
        cause = await self._forward()
        if self._is_stuck():
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, self._leftovers())
        if cause and not self._progress.sealed:
            return await self.take_back(cause)
        return Result(operation_pb2.OPERATION_STATE_SUCCEEDED, cause, self._leftovers())

    async def take_back(self, cause: str) -> Result:
        """
        Undo in reverse order of stages, from full pre-images; past the seal everything stays.

        Raises:
            PkgerError: As ``run``.
        """
        if self._progress.sealed:
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, self._leftovers())
        if unanswered := in_doubt(self._plan, self._progress):
            await self._journal.record(unanswered, Direction.DO, _told_ended(unanswered))
        if any(
            step.is_secret and isinstance(self._progress.done.get(step.number), Unknown) for step in self._plan.steps
        ):
            # One that arrives late would come back after it was removed.
            await self._effects.settle()
        # First it has to be known what there is to undo: what is in doubt may need what the undo takes away.
        await self._send_again()
        outcomes = self._progress.done
        if any(
            isinstance(outcome, Unknown) and not self._plan.steps[number].is_secret
            for number, outcome in outcomes.items()
        ):
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause)
        wanted = [
            self._plan.steps[number]
            for number in sorted(outcomes)
            if is_to_be_undone(self._plan.steps[number], outcomes[number]) and number not in self._progress.stays
        ]
        # An inverse of which the platform does not tell what became of it is not sent again: somebody has to look.
        steps = [step for step in wanted if not (self._progress.was_undone(step) or self._is_undo_in_doubt(step))]
        if not self._progress.turned_back:
            cause += what_stays(self._plan, self._progress)
        await self._journal.turn_back(cause, operation_pb2.UndoStarted(cause=cause, step_count=len(steps)))
        for _, group in groupby(reversed(steps), key=lambda step: step.stage):
            inverses = [inverse(step) for step in group]
            await self._effects.send(inverses, Direction.UNDO, _never, _told_undone, stubborn=True)
        if not all(self._progress.was_undone(step) for step in wanted):
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause)
        return Result(operation_pb2.OPERATION_STATE_ROLLED_BACK, cause)

    async def _forward(self) -> str:
        """Run what is left of the stages in order; returns what failed first, empty when nothing did."""
        cause = self._failure(self._plan.steps) or self._effects.secrets.lost(self._plan, self._progress)
        for index, group in groupby(self._plan.steps, key=lambda step: step.stage):
            if self._is_stopped() or self._is_stuck() or (cause and not self._progress.sealed):
                break
            steps = [step for step in group if step.number not in self._progress.done]
            if not steps:
                continue
            if not self._progress.sealed and any(map(seals, steps)):
                # Cancelling is over from here on, so that the line between undone and finished is drawn once.
                await self._journal.seal()
            name = self._plan.stages[index]
            started = operation_pb2.StageStarted(stage=index, name=name, step_count=len(steps))
            await self._journal.tell(started)
            await self._effects.send(steps, Direction.DO, self._is_stopped, _told_ended)
            cause = cause or self._failure(steps)
        return cause or (CANCELLED if self._is_stopped() else "")

    async def _find_out(self) -> None:
        """Find out what became of what an applier before this one sent, of the undo first (engine.md 5)."""
        sent = self._progress.open
        undone = [inverse(self._plan.steps[number]) for number in sorted(sent) if sent[number] is Direction.UNDO]
        done = [self._plan.steps[number] for number in sorted(sent) if sent[number] is Direction.DO]
        await self._effects.resolve(undone, Direction.UNDO, _told_undone)
        await self._effects.resolve(done, Direction.DO, _told_ended)

    async def _send_again(self) -> None:
        """Send the creations again of which the platform remembers whether it made them: its answer tells."""
        progress = self._progress
        unanswered = [
            step
            for step in self._plan.steps
            if progress.may_have_happened(step, Direction.DO)
            and is_remembered(step, self._platform)
            # An inverse of one does not need to know, and what is to be taken back is not to be written first.
            and not step.is_secret
        ]
        for _, group in groupby(unanswered, key=lambda step: step.stage):
            await self._effects.send(list(group), Direction.DO, _never, _told_ended, stubborn=True)

    def _is_stuck(self) -> bool:
        """
        Whether somebody has to look before the operation goes on.

        Past the seal that is so only where it is not known what a creation made: whatever else is in doubt is recorded
        already, and stays so.
        """
        unknown = [
            self._plan.steps[number] for number, outcome in self._progress.done.items() if isinstance(outcome, Unknown)
        ]
        if self._progress.sealed:
            return any(step.verb is Verb.CREATE for step in unknown)
        return any(not is_remembered(step, self._platform) for step in unknown)

    def _is_undo_in_doubt(self, step: Step) -> bool:
        is_unknown = isinstance(self._progress.undone.get(step.number), Unknown)
        return is_unknown and not is_remembered(inverse(step), self._platform)

    def _is_stopped(self) -> bool:
        return self._is_cancelled() and not self._progress.sealed

    def _leftovers(self) -> Mapping[int, Outcome]:
        return {
            number: outcome for number, outcome in sorted(self._progress.done.items()) if not isinstance(outcome, Done)
        }

    def _failure(self, steps: Sequence[Step]) -> str:
        """One sentence about the steps that failed; empty when none did."""
        ended = [(step, self._progress.done.get(step.number)) for step in steps]
        told = [
            f"{step.verb.value} {step.key}: {outcome.message}"
            for step, outcome in ended
            if isinstance(outcome, Failed | Unknown)
        ]
        if not told:
            return CANCELLED if any(isinstance(outcome, Skipped) for _, outcome in ended) else ""
        return told[0] + (f" (and {len(told) - 1} more)" if len(told) > 1 else "")


def _told_ended(outcomes: Outcomes) -> operation_pb2.StepsEnded:
    return operation_pb2.StepsEnded(outcomes=[outcome_to_pb(number, outcomes[number]) for number in sorted(outcomes)])


def _told_undone(outcomes: Outcomes) -> operation_pb2.StepsUndone:
    undone = [outcome_to_pb(number, outcomes[number]) for number in sorted(outcomes, reverse=True)]
    return operation_pb2.StepsUndone(outcomes=undone)


def _never() -> bool:
    """An undo is not to be stopped: the server finishes it on its own time (engine.md 3)."""
    return False


_DECIDED: Mapping[Direction, tuple[Collection[int], Callable[[Outcomes], Happening]]] = {
    Direction.DO: ((journal_pb2.STEP_STATE_DONE, journal_pb2.STEP_STATE_KEPT), _told_ended),
    Direction.UNDO: ((journal_pb2.STEP_STATE_UNDONE,), _told_undone),
}
"""By which states a decided step, or its inverse, counts as done, and how decisions are told."""
