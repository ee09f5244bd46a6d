"""What keeps an operation from its end, which ways out there are, and what becomes of a step that takes one."""

from collections.abc import Sequence

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.outcomes import Failed, Outcome, Unknown
from applier_svc.progress import Progress
from services.core.errors import RequestInvalid
from services.core.model import Plan
from services.rpc.convert.plans import step_fields

_DO, _UNDO = operation_pb2.DIRECTION_DO, operation_pb2.DIRECTION_UNDO
_RETRY, _SKIP, _FORCE, _KEEP, _ADOPT = (
    operation_pb2.DECISION_RETRY,
    operation_pb2.DECISION_SKIP,
    operation_pb2.DECISION_FORCE,
    operation_pb2.DECISION_KEEP,
    operation_pb2.DECISION_ADOPT,
)
_CONFLICT, _UNKNOWN_OUTCOME, _ROLLBACK = (
    operation_pb2.BLOCKED_REASON_CONFLICT,
    operation_pb2.BLOCKED_REASON_UNKNOWN_OUTCOME,
    operation_pb2.BLOCKED_REASON_ROLLBACK,
)
_GIVEN_UP = "somebody gave it up"


def blocked_steps(plan: Plan, progress: Progress) -> list[operation_pb2.BlockedStep]:
    """The steps that somebody has to look at, sorted by step, each with the decisions that fit."""
    found: list[operation_pb2.BlockedStep] = []
    for direction, ended in ((_DO, progress.done), (_UNDO, progress.undone)):
        for number, outcome in ended.items():
            reason = _reason(outcome, direction)
            # An operation whose secrets are in doubt turns back, which removes them whether they were written or not.
            if reason and not (direction == _DO and plan.steps[number].is_secret):
                found.append(_blocked(plan, number, direction, outcome, reason))
    return sorted(found, key=lambda each: each.step)


def reason_of(
    blocked: Sequence[operation_pb2.BlockedStep],
) -> operation_pb2.BlockedReason.ValueType:
    """What an operation is BLOCKED by; without any step, its outcome could not be recorded."""
    reasons = {each.reason for each in blocked}
    return next((reason for reason in (_CONFLICT, _UNKNOWN_OUTCOME) if reason in reasons), _ROLLBACK)


def check_decisions(
    decisions: Sequence[applier_pb2.StepDecision], blocked: Sequence[operation_pb2.BlockedStep]
) -> None:
    """
    See to it that each decision fits a blocked step.

    Raises:
        RequestInvalid: Names the first that does not.
    """
    by_step = {each.step: each for each in blocked}
    seen: set[int] = set()
    for position, decision in enumerate(decisions):
        field, step = f"decisions[{position}]", by_step.get(decision.step)
        if step is None:
            told = ", ".join(str(number) for number in sorted(by_step)[:10]) or "none"
            raise RequestInvalid(f"{field}.step", f"step {decision.step} is not blocked; blocked are: {told}")
        if decision.step in seen:
            raise RequestInvalid(f"{field}.step", f"step {decision.step} is decided twice")
        seen.add(decision.step)
        if decision.decision not in step.decisions:
            fitting = ", ".join(decision_word(each) for each in step.decisions)
            problem = f"{decision_word(decision.decision)!r} does not fit step {decision.step}; what does: {fitting}"
            raise RequestInvalid(f"{field}.decision", problem)
        if (decision.decision == _ADOPT) != bool(decision.remote_id):
            raise RequestInvalid(f"{field}.remote_id", "goes with adopt, and adopt with it: the id of the resource")


def records_of(
    decisions: Sequence[applier_pb2.StepDecision],
    blocked: Sequence[operation_pb2.BlockedStep],
    targets: Sequence[str],
) -> list[journal_pb2.StepRecord]:
    """
    What the journal knows of the steps once it is decided; nothing of those that are tried again.

    Args:
        decisions: As of ``check_decisions``.
        blocked: The blocked steps.
        targets: Id of the resource that each step of the plan is about, by number; empty where there is none.
    """
    by_step = {each.step: each for each in blocked}
    return [
        _record(decision, by_step[decision.step], targets[decision.step])
        for decision in decisions
        if decision.decision != _RETRY
    ]


def decision_word(decision: int) -> str:
    """A decision as people write it; its number when this version does not know it."""
    if decision not in operation_pb2.Decision.values():
        return str(decision)
    return operation_pb2.Decision.Name(operation_pb2.Decision.ValueType(decision)).removeprefix("DECISION_").lower()


def _reason(
    outcome: Outcome, direction: operation_pb2.Direction.ValueType
) -> operation_pb2.BlockedReason.ValueType | None:
    match outcome:
        case Unknown(is_conflict=is_conflict):
            return _CONFLICT if is_conflict else _UNKNOWN_OUTCOME
        case Failed() if direction == _UNDO:
            return _ROLLBACK
        case _:
            return None


def _blocked(
    plan: Plan,
    number: int,
    direction: operation_pb2.Direction.ValueType,
    outcome: Outcome,
    reason: operation_pb2.BlockedReason.ValueType,
) -> operation_pb2.BlockedStep:
    step = plan_pb2.Step(**step_fields(plan.steps[number]))
    found = outcome.found if isinstance(outcome, Unknown) else ""
    blocked = operation_pb2.BlockedStep(
        step=number, key=step.key, verb=step.verb, direction=direction, reason=reason, found_id=found
    )
    if step.HasField("label"):
        blocked.label.CopyFrom(step.label)
    if isinstance(outcome, Unknown | Failed):
        blocked.message = outcome.message
    blocked.decisions.extend(_fitting(blocked))
    return blocked


def _creates(blocked: operation_pb2.BlockedStep) -> bool:
    return blocked.verb == (plan_pb2.VERB_CREATE if blocked.direction == _DO else plan_pb2.VERB_DELETE)


def _deletes(blocked: operation_pb2.BlockedStep) -> bool:
    return blocked.verb == (plan_pb2.VERB_DELETE if blocked.direction == _DO else plan_pb2.VERB_CREATE)


def _fitting(blocked: operation_pb2.BlockedStep) -> list[operation_pb2.Decision.ValueType]:
    if not _creates(blocked):
        return [_RETRY, _SKIP, _FORCE, _KEEP]
    return [_RETRY, _SKIP, *([_KEEP] if blocked.found_id else []), _ADOPT]


def _record(
    decision: applier_pb2.StepDecision, blocked: operation_pb2.BlockedStep, target: str
) -> journal_pb2.StepRecord:
    """Which state a step is in once it is decided, and with which resource."""
    is_undo = blocked.direction == _UNDO
    done = journal_pb2.STEP_STATE_UNDONE if is_undo else journal_pb2.STEP_STATE_DONE
    given_up = journal_pb2.STEP_STATE_UNDO_GIVEN_UP if is_undo else journal_pb2.STEP_STATE_GIVEN_UP
    record = journal_pb2.StepRecord(step=blocked.step, remote_id=target)
    match decision.decision:
        case operation_pb2.DECISION_FORCE:
            # Where it was before it was sent: what is sent next writes over whatever is there.
            record.state = journal_pb2.STEP_STATE_DONE if is_undo else journal_pb2.STEP_STATE_PLANNED
        case operation_pb2.DECISION_ADOPT:
            record.state, record.remote_id = done, decision.remote_id
        case operation_pb2.DECISION_KEEP if not _deletes(blocked):
            record.state = done if is_undo else journal_pb2.STEP_STATE_KEPT
            record.remote_id = blocked.found_id or target
        case _:
            record.state, record.message = given_up, _GIVEN_UP
    return record
