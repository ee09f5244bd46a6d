"""The steps that block an operation, the decisions that fit them, and the state of a step after a decision."""

from collections.abc import Sequence
from typing import NamedTuple

from services.core.errors import RequestInvalid
from services.core.model import Step
from services.engine.effects import effect_of, inverse_of
from services.engine.operation import BlockedReason, Decision, Direction
from services.engine.outcome import Failed, Outcome, RejectionReason, Unknown
from services.engine.progress import Progress
from services.engine.step_state import StepRecord, StepState

_GIVEN_UP = "given up by a decision"
_NOT_REMOVED = "not removed: the store was restored from a backup, and another writer may have written the secret since"
_SHOWN = 10


class BlockedStep(NamedTuple):
    """
    One step that blocks an operation.

    Attributes:
        step: The step of the plan.
        direction: Whether the step or its inverse is blocked.
        reason: Why it is blocked, for programs.
        message: Why it is blocked, in one sentence.
        found_resource_id: In a conflict: the resource that exists instead; empty when there is none, or another stack
            owns it.
    """

    step: Step
    direction: Direction
    reason: BlockedReason
    message: str
    found_resource_id: str = ""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions that fit."""
        if self.reason is BlockedReason.DEFECT:
            return (Decision.RETRY,)
        if not self._makes:
            return (Decision.RETRY, Decision.SKIP, Decision.FORCE, Decision.KEEP)
        return (Decision.RETRY, Decision.SKIP, *([Decision.KEEP] if self.found_resource_id else []), Decision.ADOPT)

    @property
    def _makes(self) -> bool:
        effect = effect_of(self.step)
        return (inverse_of(effect) if self.direction is Direction.UNDO else effect).makes

    def decided(self, decision: Decision, target: str, adopted: str) -> StepRecord | None:
        """
        The record of the step after *decision*; None for RETRY.

        Args:
            decision: One of ``decisions``.
            target: Id of the resource that the step is about; empty where there is none.
            adopted: With ADOPT: id of the adopted resource.
        """
        is_undo, number = self.direction is Direction.UNDO, self.step.number
        done = StepState.UNDONE if is_undo else StepState.DONE
        match decision:
            case Decision.RETRY:
                return None
            case Decision.FORCE:
                # Its state before it was sent: the next mutation is sent without an expectation.
                state = StepState.DONE if is_undo else StepState.PLANNED
                return StepRecord(number, state, target, is_forced=True)
            case Decision.ADOPT:
                return StepRecord(number, done, adopted)
            case Decision.KEEP if not self._removes:
                return StepRecord(number, done if is_undo else StepState.KEPT, self.found_resource_id or target)
            case _:
                given_up = StepState.UNDO_GIVEN_UP if is_undo else StepState.GIVEN_UP
                return StepRecord(number, given_up, target, _GIVEN_UP)

    @property
    def _removes(self) -> bool:
        effect = effect_of(self.step)
        turned = inverse_of(effect) if self.direction is Direction.UNDO else effect
        return turned.removes and not turned.links


class StepDecision(NamedTuple):
    """The decision about one blocked step; *resource_id* comes with ADOPT. None: a value that pkger does not know."""

    step: int
    decision: Decision | None
    resource_id: str = ""


def blocked_steps(progress: Progress) -> list[BlockedStep]:
    """The steps that need a decision, in the order of the plan."""
    blocked: list[BlockedStep] = []
    for effect in progress.effects:
        for direction, outcome in (
            # The unknown outcome of a secret does not block: a rollback deletes the secret, written or not.
            (Direction.DO, None if effect.is_of_secret else progress.outcome(effect.number)),
            (Direction.UNDO, progress.undo_outcome(effect.number)),
        ):
            if isinstance(outcome, Unknown | Failed) and (reason := _reason(outcome, direction)):
                found_resource_id = outcome.resource_id if isinstance(outcome, Unknown) else ""
                if isinstance(outcome, Failed) and reason is BlockedReason.CONFLICT:
                    found_resource_id = progress.resource(effect.number)
                blocked.append(BlockedStep(effect.step, direction, reason, outcome.message, found_resource_id))
    return blocked


def steps_of_defect(progress: Progress) -> list[BlockedStep]:
    """
    The steps that are open or blocked when a defect ends an attempt to resume an operation, sorted by step.

    RETRY is the only decision that fits. Other reasons of a block are reported once the defect is fixed.
    """
    blocked = [each._replace(reason=BlockedReason.DEFECT) for each in blocked_steps(progress)]
    for direction in Direction:
        for effect in progress.open(direction):
            step = progress.effects[effect.number].step
            blocked.append(BlockedStep(step, direction, BlockedReason.DEFECT, "it was sent, and its outcome is open"))
    return sorted(blocked, key=lambda each: each.step.number)


def reason_of(blocked: Sequence[BlockedStep]) -> BlockedReason:
    """
    The first reason among *blocked*. Without a blocked step, the operation is blocked because its end could not be
    recorded.
    """
    reasons = {each.reason for each in blocked}
    return next((reason for reason in BlockedReason if reason in reasons), BlockedReason.ROLLBACK)


def check_decisions(decisions: Sequence[StepDecision], blocked: Sequence[BlockedStep]) -> None:
    """
    Check that each decision fits a blocked step.

    Raises:
        RequestInvalid: A decision does not fit; names the first.
    """
    by_step = {each.step.number: each for each in blocked}
    seen: set[int] = set()
    for position, decision in enumerate(decisions):
        field, step = f"decisions[{position}]", by_step.get(decision.step)
        if step is None:
            numbers = ", ".join(str(number) for number in sorted(by_step)[:_SHOWN]) or "none"
            raise RequestInvalid(f"{field}.step", f"step {decision.step} is not blocked; blocked are: {numbers}")
        if decision.step in seen:
            raise RequestInvalid(f"{field}.step", f"step {decision.step} has two decisions; give one")
        seen.add(decision.step)
        if decision.decision not in step.decisions:
            fitting = ", ".join(each.value.lower() for each in step.decisions)
            chosen = repr(decision.decision.value.lower()) if decision.decision else "an unknown decision"
            raise RequestInvalid(f"{field}.decision", f"{chosen} does not fit step {decision.step}; choose: {fitting}")
        if (decision.decision is Decision.ADOPT) != bool(decision.resource_id):
            raise RequestInvalid(f"{field}.resource_id", "give the id of the resource with adopt, and with adopt only")


def decided_records(
    decisions: Sequence[StepDecision], blocked: Sequence[BlockedStep], progress: Progress
) -> list[StepRecord]:
    """The records of the steps after *decisions*; a step that is retried has none."""
    by_step = {each.step.number: each for each in blocked}
    records = [
        by_step[each.step].decided(each.decision, progress.resource(each.step), each.resource_id)
        for each in decisions
        if each.decision
    ]
    return [record._replace(before_ids=progress.before_ids(record.step)) for record in records if record]


def records_of_consent(progress: Progress) -> list[StepRecord]:
    """
    The records of steps after the consent to continue on a restored store: no undo of a secret is sent again.

    The operation may have ended after the backup, and a later operation may have written its secrets since. Other undos
    are safe: they expect the content that the operation wrote.
    """
    begun = {StepState.UNDO_INTENT, StepState.UNDO_FAILED, StepState.UNDO_UNKNOWN}
    return [
        StepRecord(effect.number, StepState.UNDO_GIVEN_UP, progress.resource(effect.number), _NOT_REMOVED)
        for effect in progress.effects
        if effect.is_of_secret and progress.state(effect.number) in begun
    ]


def _reason(outcome: Outcome, direction: Direction) -> BlockedReason | None:
    match outcome:
        case Unknown(is_conflict=is_conflict):
            return BlockedReason.CONFLICT if is_conflict else BlockedReason.UNKNOWN_OUTCOME
        case Failed(reason=RejectionReason.CHANGED) if direction is Direction.UNDO:
            return BlockedReason.CONFLICT
        case Failed() if direction is Direction.UNDO:
            return BlockedReason.ROLLBACK
        case _:
            return None
