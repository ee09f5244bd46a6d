"""Operations, their writes and their ends as messages."""

from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from typing import Any

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import operation_pb2

from services.actions.snapshots import snapshot_id
from services.core.errors import RequestInvalid
from services.core.model import OperationKind, RecordChanges, Target
from services.engine.claims import Claim, Refusal
from services.engine.operation import FINISHED, OperationState
from services.rpc.convert.claims import claim_from_pb, claim_to_pb
from services.rpc.convert.objects import baseline_from_pb, key_from_pb, target_to_pb
from services.rpc.convert.operations import STATES, direction_from_pb, step_record_from_pb
from services.rpc.convert.plans import KINDS, record_changes_from_pb, use_from_pb
from stack_svc.messages.action_set_writes import action_change_from_pb, new_action_set_from_pb, stored_action
from stack_svc.messages.fields import (
    LATEST,
    choice_from_pb,
    microseconds,
    microseconds_of,
    request_from_pb,
    storable_entry,
    storable_key,
    target_of,
    timestamp,
)
from stack_svc.messages.plans import plan_from_pb
from stack_svc.messages.stacks import policy_of, storable_baseline
from stack_svc.rules import sanitize
from stack_svc.rules.finish import AbandonOutcome, FinishRequest, Outcome, RecordOutcome, RemoveOutcome, StalePlan
from stack_svc.rules.operations import (
    ActionSetStart,
    Advance,
    BeginRequest,
    JournalWrite,
    Parent,
    PlanRef,
    Start,
    Writes,
)
from stack_svc.rules.reservations import Holder
from stack_svc.rules.stacks import NewStack
from stack_svc.rules.urls import checked_urls
from stack_svc.store.operations import Blocks, Operation, OperationFilter
from stack_svc.store.stacks import Choice, Stack

_NOT_OF_A_RUN = ("begun", "package_invalid", "accepted", "finished")
"""Events that are not stored, or that another request than AdvanceOperation stores."""


def begin_request_from_pb(request: journal_pb2.BeginOperationRequest, new_id: str) -> BeginRequest:
    """
    Translate a new operation; if a stack is created for it, its id is *new_id*.

    Raises:
        RequestInvalid: It names no stack, or its kind, or what a new stack gets, is not valid.
    """
    stack_choice: Choice | Target | PlanRef
    match request.WhichOneof("subject"):
        case "target":
            stack_choice = target_of(request.target)
        case "plan_id":
            stack_choice = PlanRef(request.plan_id)
        case _:
            stack_choice = choice_from_pb(request.stack)
    return BeginRequest(
        id=sanitize.checked_name(request.operation_id, "operation_id"),
        choice=stack_choice,
        create_missing=request.create_missing,
        kind=KINDS.member(request.kind) if request.kind else None,
        holder=request.holder,
        author=request.author,
        ttl=microseconds(request.ttl),
        new_stack=_new_stack_from_pb(request.new_stack, new_id),
        request=request_from_pb(request.request),
        parent=Parent(request.parent.operation_id, request.parent.token) if request.HasField("parent") else None,
    )


def _new_stack_from_pb(message: journal_pb2.NewStack, new_id: str) -> NewStack:
    # An address of a program is accepted, as the stack may have had it before. Where programs are not evaluated, the
    # parser refuses it.
    urls = checked_urls(message.urls, "new_stack.urls", allow_jsonnet=True)
    return NewStack(new_id, message.description, urls, policy_of(message.policy))


def claims_from_pb(claims: Iterable[journal_pb2.Claim], field: str) -> list[Claim]:
    """
    Translate claims.

    Raises:
        RequestInvalid: A claim is empty; the error names *field*.
    """
    return [claim_from_pb(claim, f"{field}[{position}]") for position, claim in enumerate(claims)]


def refused_to_pb(refused: Refusal) -> journal_pb2.RefusedClaim:
    """Translate a refused claim, with the conflicting stack and operation."""
    holder = refused.holder
    return journal_pb2.RefusedClaim(
        claim=claim_to_pb(refused.claim),
        stack_id=holder.stack,
        stack_name=holder.stack_name,
        operation_id=holder.operation,
        since=timestamp(holder.since),
        in_use=refused.in_use,
    )


def holder_to_pb(holder: Holder) -> action_set_pb2.Reservation:
    """Translate who has a stack that was to be reserved."""
    return action_set_pb2.Reservation(
        stack_name=holder.stack_name, operation_id=holder.operation, action_set=holder.action_set
    )


def state_to_pb(state: OperationState) -> operation_pb2.OperationState.ValueType:
    """Translate the state of an operation."""
    number: operation_pb2.OperationState.ValueType = STATES.number(state)
    return number


def operation_to_pb(operation: Operation, blocked_steps: bytes = b"") -> operation_pb2.Operation:
    """Translate an operation; *blocked_steps* are its blocked steps, in the form of ``operations.Blocks.body``."""
    blocked_reason: Any = operation.blocks.reason
    message = operation_pb2.Operation(
        id=operation.id,
        kind=KINDS.number(operation.kind),
        state=STATES.number(operation.state),
        stack_id="" if operation.stackless else operation.stack,
        stack_name=operation.stack_name,
        target=target_to_pb(operation.target),
        cause=operation.cause,
        create_time=timestamp(operation.create_time),
        update_time=timestamp(operation.update_time),
        holder=operation.holder,
        step_count=operation.step_count,
        done_count=operation.done_count,
        blocked_reason=blocked_reason,
        blocked_step_count=operation.blocks.step_count,
        plan_id=operation.plan,
        author=operation.author,
        action_set=operation.action_set,
        parent=operation.parent,
    )
    if operation.state in FINISHED:
        message.end_time.CopyFrom(message.update_time)
    last = operation_pb2.OperationEvent.FromString(operation.last_event)
    if last.HasField("finished"):
        message.result.CopyFrom(last.finished)
    message.MergeFromString(blocked_steps)
    return message


def cancel_effect_to_pb(operation: Operation) -> operation_pb2.CancelEffect.ValueType:
    """The effect of a request to cancel an unfinished operation."""
    if operation.sealed:
        return operation_pb2.CANCEL_EFFECT_SEALED
    if operation.state is OperationState.BLOCKED:
        return operation_pb2.CANCEL_EFFECT_BLOCKED
    is_action_set = operation.kind is OperationKind.ACTION
    return operation_pb2.CANCEL_EFFECT_STOPS if is_action_set else operation_pb2.CANCEL_EFFECT_ROLLS_BACK


def filter_from_pb(request: journal_pb2.ListOperationsRequest) -> OperationFilter:
    """
    Translate the filters of a list of operations.

    Raises:
        RequestInvalid: A target, a state, a kind or a time is not valid.
    """
    return OperationFilter(
        request.stack_id,
        target_of(request.target) if request.HasField("target") else None,
        [STATES.member(state, "states") for state in request.states],
        [KINDS.member(kind, "kinds") for kind in request.kinds],
        microseconds_of(request.since, "since") if request.HasField("since") else 0,
        microseconds_of(request.until, "until") if request.HasField("until") else LATEST,
    )


def writes_from_pb(
    request: journal_pb2.AdvanceOperationRequest | journal_pb2.FinishOperationRequest, limit: int
) -> Writes:
    """
    Translate the writes of a running operation.

    Args:
        request: The request that has them.
        limit: Largest message, in bytes, between the services.

    Raises:
        RequestInvalid: A write is not valid.
        PlanTooLarge: The plan with nothing to do is too large.
    """
    start = _start_from_pb(request.start, request.operation_id, limit) if request.HasField("start") else None
    return Writes(
        start, [(_write_from_pb(each, request.operation_id), _advance_from_pb(each)) for each in request.writes]
    )


def _start_from_pb(start: journal_pb2.Start, operation: str, limit: int) -> Start | ActionSetStart:
    if start.accepted.seq != 1:
        raise RequestInvalid("start.accepted", "must have seq 1, as it is the first event")
    _check_event(start.accepted, "start.accepted", operation, is_a="accepted")
    write = JournalWrite(1, b"", _stored_events([start.accepted]), [1])
    if start.HasField("action_set"):
        if start.accepted.accepted.action_set != start.action_set.name or start.claims:
            raise RequestInvalid("start.accepted", "must name the action set, which has no claims")
        return ActionSetStart(new_action_set_from_pb(start.action_set, operation), write)
    idle_plan = plan_from_pb(start.idle_plan) if start.HasField("idle_plan") else None
    if idle_plan and (idle_plan.packages or not start.idle_plan.header.no_change):
        raise RequestInvalid("start.idle_plan", "it has something to do; store it first, and send its id")
    if idle_plan:
        idle_plan.refuse_too_large(limit)
    if not (name := idle_plan.id if idle_plan else start.plan_id):
        raise RequestInvalid("start.plan_id", "must not be empty")
    claims = claims_from_pb(start.claims, "start.claims")
    return Start(name, start.accepted.accepted.digest, write, claims, idle_plan)


def _write_from_pb(message: journal_pb2.JournalWrite, operation: str) -> JournalWrite:
    steps = [step_record_from_pb(record).step for record in message.steps]
    for event in message.events:
        _check_event(event, "events", operation, is_none_of=_NOT_OF_A_RUN)
        if event.HasField("steps_sent"):
            direction_from_pb(event.steps_sent.direction, "events")
        steps += event.steps_sent.steps
        for ended in (event.steps_ended, event.steps_undone):
            steps += [outcome.step for outcome in ended.outcomes]
    return JournalWrite(
        message.position,
        journal_pb2.StoredRecords(
            steps=message.steps,
            seal=message.seal,
            rollback=message.rollback,
            cause=message.cause,
            done_count=message.done_count,
            action=stored_action(message.action) if message.HasField("action") else None,
            snapshots=map(snapshot_id, message.snapshots),
        ).SerializeToString(deterministic=True),
        _stored_events(message.events),
        [event.seq for event in message.events],
        steps,
    )


def _advance_from_pb(message: journal_pb2.JournalWrite) -> Advance:
    claims, released = claims_from_pb(message.claims, "claims"), claims_from_pb(message.released, "released")
    action = action_change_from_pb(message)
    stops = action is not None and action.stops
    return Advance(
        claims,
        released,
        message.done_count,
        message.seal,
        message.rollback or stops,
        message.action.cause if stops else message.cause,
        action,
    )


def _check_event(
    message: operation_pb2.OperationEvent,
    field: str,
    operation: str,
    is_a: str = "",
    is_none_of: Collection[str] = (),
) -> None:
    """
    Check an event of *operation* in *field*: its type must be *is_a*, or any when that is empty.

    Raises:
        RequestInvalid: It is empty, of another type, of a type in *is_none_of*, or of another operation.
    """
    event_type = message.WhichOneof("event")
    if event_type is None or (is_a and event_type != is_a) or event_type in is_none_of:
        raise RequestInvalid(field, f"the event must be {is_a or 'an event of a running operation'}")
    if message.operation_id != operation:
        raise RequestInvalid(field, f"the event belongs to operation {message.operation_id!r}, and not to {operation}")


def _stored_events(events: Iterable[operation_pb2.OperationEvent]) -> bytes:
    return journal_pb2.StoredEvents(events=events).SerializeToString()


def finish_request_from_pb(request: journal_pb2.FinishOperationRequest) -> FinishRequest:
    """
    Translate the end of an operation.

    Raises:
        RequestInvalid: A part of it is missing or not valid.
    """
    finished = request.finished if request.HasField("finished") else None
    if finished:
        _check_event(finished, "finished", request.operation_id, is_a="finished")
    return FinishRequest(
        request.position,
        journal_pb2.StoredRecords(
            digest=sha256(request.SerializeToString(deterministic=True)).digest()
        ).SerializeToString(),
        STATES.member(request.state) if request.state else OperationState.FAILED,
        _outcome(request),
        request.base_generation,
        request.finished.finished.cause or request.cause,
        finished,
        Blocks(
            request.blocked_reason,
            len(request.blocked_steps),
            _stored_steps(request.blocked_steps),
        ),
        StalePlan(request.stale_plan.plan_id, request.stale_plan.problem) if request.HasField("stale_plan") else None,
        request.seen_token if request.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED else 0,
        request.finished.finished.leftover_count,
        request.token_shown,
    )


def blocked_event(operation: Operation, cause: str, stack: Stack | None, now: int) -> bytes:
    """The last event of an operation that the store blocks; see ``blocking.MakeEvent``."""
    event = operation_pb2.OperationEvent(
        operation_id=operation.id,
        seq=operation.last_seq + 1,
        time=timestamp(now),
        finished=operation_pb2.Finished(
            state=STATES.number(OperationState.BLOCKED),
            cause=cause,
            stack_id=stack.record.id if stack else "",
            generation=stack.record.generation if stack else 0,
        ),
    )
    return _stored_events([event])


def defect_from_pb(steps: Sequence[operation_pb2.BlockedStep]) -> Blocks:
    """The blocks of an operation that a defect keeps from being resumed."""
    return Blocks(operation_pb2.BLOCKED_REASON_DEFECT, len(steps), _stored_steps(steps))


def _stored_steps(steps: Sequence[operation_pb2.BlockedStep]) -> bytes:
    return operation_pb2.Operation(blocked_steps=steps).SerializeToString()


def _outcome(request: journal_pb2.FinishOperationRequest) -> Outcome:
    match request.WhichOneof("outcome"):
        case "record":
            record = request.record
            changes = record_changes_from_pb(record.changes)
            return RecordOutcome(
                RecordChanges(
                    tuple(map(storable_entry, changes.entries)),
                    tuple(map(storable_key, changes.removed)),
                    tuple(map(storable_key, changes.staying)),
                    changes.staying_labels,
                    tuple(map(storable_key, changes.taken_over)),
                ),
                tuple(record.sources),
                record.platform_changed,
                record.secrets_written,
                [storable_baseline(baseline_from_pb(each)) for each in record.baselines],
                record.is_in_sync,
            )
        case "abandon":
            return AbandonOutcome()
        case "remove":
            keys = (storable_key(key_from_pb(key)) for key in request.remove.staying)
            return RemoveOutcome(tuple(keys), tuple(map(use_from_pb, request.remove.staying_labels)))
        case _:
            raise RequestInvalid("outcome", "must be set")
