"""Operations as messages and back: records and outcomes of steps, events, blocked steps and decisions."""

from collections.abc import Iterable, Mapping
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from services.engine.claims import ClaimHolder
from services.engine.conclusion import Conclusion, WriteRecord
from services.engine.counts import counts_in_effect
from services.engine.decisions import BlockedStep, StepDecision
from services.engine.journal_fold import JournalEntry, Sent, StepsEnded
from services.engine.late_writes import LateWrite
from services.engine.operation import BlockedReason, Decision, Direction, OperationState
from services.engine.outcome import Done, Failed, GivenUp, Outcome, RejectionReason, Skipped, Unknown
from services.engine.step_state import StepRecord, StepState
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import baseline_to_pb, key_fields
from services.rpc.convert.plans import bare_step_from_pb, counts_fields, record_changes_to_pb, step_fields
from services.rpc.parts import parts

STATES = Numbers(OperationState, operation_pb2.OperationState, "OPERATION_STATE")
REJECTIONS = Numbers(RejectionReason, operation_pb2.RejectionReason, "REJECTION_REASON")
_STEP_STATES = Numbers(StepState, journal_pb2.StepState, "STEP_STATE")
_DIRECTIONS = Numbers(Direction, operation_pb2.Direction, "DIRECTION")
_BLOCKED_REASONS = Numbers(BlockedReason, operation_pb2.BlockedReason, "BLOCKED_REASON")
EVENT_BYTES = 3900
"""
Largest event without its resource ids, in bytes. With its frame it is smaller than 4 KiB, the limit of
docs/architecture.md, "An apply, from its request to its record".
"""

_FRAME_BYTES = 4
_NUMBER_BYTES = 3
"""Bytes of a step in a list of numbers, up to two million steps."""

_DECISIONS = Numbers(Decision, operation_pb2.Decision, "DECISION")


def rejection_from_pb(number: int) -> RejectionReason | None:
    """Why a platform rejected a mutation; None if this version does not know the reason."""
    return REJECTIONS.find(number)


def rejection_number(reason: RejectionReason | None) -> Any:
    """The number of a reason; 0 for none."""
    return REJECTIONS.number(reason) if reason else operation_pb2.REJECTION_REASON_UNSPECIFIED


def step_record_fields(record: StepRecord) -> Any:
    """The journal record of a step, as part of another message."""
    return {
        "step": record.step,
        "state": _STEP_STATES.number(record.state),
        "resource_id": record.resource_id,
        "message": record.message,
        "reason": rejection_number(record.reason),
        "before_ids": record.before_ids,
        "observed_spec_json": record.observed,
        "forced": record.is_forced,
    }


def step_record_from_pb(message: journal_pb2.StepRecord) -> StepRecord:
    """
    Translate the journal record of a step.

    Raises:
        RequestInvalid: It has no state.
    """
    return StepRecord(
        message.step,
        _STEP_STATES.member(message.state),
        message.resource_id,
        message.message,
        rejection_from_pb(message.reason),
        tuple(message.before_ids),
        message.observed_spec_json,
        message.forced,
    )


def outcome_to_pb(step: int, outcome: Outcome) -> operation_pb2.StepOutcome:
    """The outcome of step number *step*, as part of an event."""
    message = operation_pb2.StepOutcome(step=step)
    match outcome:
        case Done(resource_id):
            message.done.resource_id = resource_id
        case Failed(text, reason):
            message.failed.message = text
            message.failed.reason = rejection_number(reason)
        case Unknown(text):
            message.unknown.message = text
        case Skipped(text) | GivenUp(text):
            message.skipped.message = text
    return message


def direction_from_pb(number: int, field: str) -> Direction:
    """
    Translate the direction in which steps run: forward, or undo.

    Raises:
        RequestInvalid: It is invalid; the error names *field*.
    """
    return _DIRECTIONS.member(number, field)


def entry_from_pb(records: journal_pb2.StoredRecords, events: journal_pb2.StoredEvents) -> JournalEntry:
    """
    Translate one entry of a journal: its events and step records.

    Raises:
        RequestInvalid: A record has no state, or an event no direction.
    """
    converted = map(_event_from_pb, events.events)
    return JournalEntry([each for each in converted if each], list(map(step_record_from_pb, records.steps)))


def _event_from_pb(event: operation_pb2.OperationEvent) -> Sent | StepsEnded | None:
    match event.WhichOneof("event"):
        case "steps_sent":
            return Sent(_DIRECTIONS.member(event.steps_sent.direction), list(event.steps_sent.steps))
        case "steps_ended":
            return StepsEnded(Direction.DO, dict(map(_outcome_from_pb, event.steps_ended.outcomes)))
        case "steps_undone":
            return StepsEnded(Direction.UNDO, dict(map(_outcome_from_pb, event.steps_undone.outcomes)))
        case _:
            return None


def _outcome_from_pb(message: operation_pb2.StepOutcome) -> tuple[int, Outcome]:
    """The number of a step, and its outcome as far as the event has it."""
    match message.WhichOneof("outcome"):
        case "done":
            return message.step, Done(message.done.resource_id)
        case "failed":
            return message.step, Failed(message.failed.message, rejection_from_pb(message.failed.reason))
        case "unknown":
            return message.step, Unknown(message.unknown.message)
        case _:
            return message.step, Skipped(message.skipped.message)


def steps_sent_to_pb(steps: Iterable[int], direction: Direction) -> list[operation_pb2.StepsSent]:
    """The events that journal the intents of steps, or of their inverses."""
    cut = parts(sorted(steps), lambda _: _NUMBER_BYTES, EVENT_BYTES)
    return [operation_pb2.StepsSent(direction=_DIRECTIONS.number(direction), steps=part) for part in cut]


def steps_waiting_to_pb(steps: Iterable[int], direction: Direction, holder: ClaimHolder) -> operation_pb2.StepsWaiting:
    """The event that *steps* wait for claims of *holder*."""
    return operation_pb2.StepsWaiting(
        direction=_DIRECTIONS.number(direction),
        steps=steps,
        stack_id=holder.stack,
        stack_name=holder.stack_name,
        operation_id=holder.operation,
    )


def outcomes_to_pb(
    outcomes: Mapping[int, Outcome], direction: Direction
) -> list[operation_pb2.StepsEnded] | list[operation_pb2.StepsUndone]:
    """The events with the outcomes of steps; the outcomes of undos are in reverse order."""
    is_undo = direction is Direction.UNDO
    messages = [outcome_to_pb(step, outcomes[step]) for step in sorted(outcomes, reverse=is_undo)]
    cut = parts(messages, lambda each: each.ByteSize() - len(each.done.resource_id) + _FRAME_BYTES, EVENT_BYTES)
    if is_undo:
        return [operation_pb2.StepsUndone(outcomes=part) for part in cut]
    return [operation_pb2.StepsEnded(outcomes=part) for part in cut]


def late_writes_to_pb(writes: Iterable[LateWrite], problem: str) -> list[operation_pb2.LateEffects]:
    """The late effects, and why the platform could not be read; *problem* is empty if it was read."""
    effects = [
        operation_pb2.LateEffect(key=key_fields(each.key), resource_id=each.resource_id, message=each.message)
        for each in writes
    ]
    messages = [
        operation_pb2.LateEffects(effects=part)
        for part in parts(effects, lambda each: each.ByteSize() + _FRAME_BYTES, EVENT_BYTES)
    ]
    return [*messages, operation_pb2.LateEffects(problem=problem)] if problem else messages


def blocked_reason_to_pb(reason: BlockedReason) -> operation_pb2.BlockedReason.ValueType:
    """Translate the reason why an operation is blocked."""
    number: operation_pb2.BlockedReason.ValueType = _BLOCKED_REASONS.number(reason)
    return number


def blocked_step_to_pb(blocked: BlockedStep) -> operation_pb2.BlockedStep:
    """Translate a step that blocks its operation; the step itself has its verb and ids, but no content."""
    step = blocked.step._replace(old_spec=None, new_spec=None, references=(), old_references=())
    return operation_pb2.BlockedStep(
        step=step_fields(step),
        direction=_DIRECTIONS.number(blocked.direction),
        reason=_BLOCKED_REASONS.number(blocked.reason),
        message=blocked.message,
        found_resource_id=blocked.found_resource_id,
        decisions=map(_DECISIONS.number, blocked.decisions),
    )


def blocked_step_from_pb(message: operation_pb2.BlockedStep) -> BlockedStep:
    """Translate a step that blocks its operation."""
    return BlockedStep(
        bare_step_from_pb(message.step),
        _DIRECTIONS.member(message.direction),
        _BLOCKED_REASONS.member(message.reason),
        message.message,
        message.found_resource_id,
    )


def decision_from_pb(message: applier_pb2.StepDecision) -> StepDecision:
    """Translate the decision about a step; a decision that this version does not know is None."""
    return StepDecision(message.step, _DECISIONS.find(message.decision), message.resource_id)


def record_to_pb(write: WriteRecord) -> journal_pb2.Record:
    """Translate the changes of the record of a stack."""
    return journal_pb2.Record(
        changes=record_changes_to_pb(write.changes),
        sources=write.sources,
        platform_changed=write.has_changed,
        secrets_written=write.has_secrets,
        baselines=map(baseline_to_pb, write.baselines),
        is_in_sync=write.is_in_sync,
    )


def finished_to_pb(conclusion: Conclusion, has_stack: bool) -> operation_pb2.Finished:
    """The last event of an operation; *has_stack*: whether the stack remains. The store adds its generation."""
    return operation_pb2.Finished(
        state=STATES.number(conclusion.end.state),
        cause=conclusion.cause,
        counts=counts_fields(counts_in_effect(conclusion.progress)),
        leftover_count=conclusion.leftover_count,
        no_change=conclusion.is_unchanged,
        stack_id=conclusion.stack_id if has_stack else "",
    )
