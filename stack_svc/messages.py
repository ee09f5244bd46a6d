"""Stacks, plans, operations and what is known of them, as messages and back."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import journal_pb2, stack_pb2

from services.core.errors import RequestInvalid
from services.core.model import Target
from services.engine.operation import OperationState
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import entries_from_pb, entry_fields, key_to_pb, target_from_pb, target_to_pb
from services.rpc.convert.operations import KINDS, STATES
from stack_svc import stacks
from stack_svc.endings import Abandon, Ending, Outcome, Record, Remove, StalePlan
from stack_svc.events import Event
from stack_svc.inventory import Ownership
from stack_svc.journal import Beginning, Planned
from stack_svc.operations import Operation
from stack_svc.plans import NewPlan, PlanState, StoredPlan
from stack_svc.stacks import Choice, Named, Stack

_PLAN_STATE = Numbers(PlanState, plan_pb2.PlanState, "PLAN_STATE")


def choice(request: stack_pb2.GetStackRequest | journal_pb2.BeginOperationRequest) -> Choice:
    """
    How a request names a stack.

    Raises:
        RequestInvalid: It names none, or by a name that is none for a stack.
    """
    match request.WhichOneof("stack"):
        case "id":
            return request.id
        case "named":
            stacks.check_name(request.named.name, "named.name")
            return Named(target_from_pb(request.named.target), request.named.name)
        case _:
            raise RequestInvalid("stack", "name it by id or by target and name")


def beginning_from_pb(request: journal_pb2.BeginOperationRequest) -> Beginning:
    """
    Translate a new operation.

    Raises:
        RequestInvalid: It names no stack, or its kind is no value to send.
    """
    asked: Choice | Target | Planned
    match request.WhichOneof("stack"):
        case "none":
            asked = target_from_pb(request.none)
        case "plan":
            asked = Planned(request.plan)
        case _:
            asked = choice(request)
    return Beginning(
        name=request.operation,
        choice=asked,
        create_missing=request.create_missing,
        kind=KINDS.member(request.kind) if request.kind else None,
        holder=request.holder,
        ttl=microseconds(request.ttl),
        request_id=request.request_id,
        request_digest=request.request_digest,
    )


def microseconds(duration: Duration) -> int:
    """A span of time."""
    return duration.ToMicroseconds()


def timestamp(microseconds: int) -> Timestamp:
    """A time in microseconds since 1970."""
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time


def stack_to_pb(stack: Stack) -> stack_pb2.Stack:
    """Translate a stack."""
    record = stack.record
    return stack_pb2.Stack(
        id=record.id,
        target=target_to_pb(record.target),
        name=record.name,
        description=stack.description,
        config_json=stack.config,
        generation=record.generation,
        sources=record.sources,
        create_time=timestamp(stack.create_time),
        update_time=timestamp(stack.update_time),
        resources=map(entry_fields, record.resources),
        resource_count=stack.resource_count,
    )


def ownership_to_pb(owner: Ownership) -> stack_pb2.Ownership:
    """Translate who owns a resource."""
    return stack_pb2.Ownership(
        resource=stack_pb2.ResourceRef(kind=owner.key.kind, id=owner.resource_id),
        stack_id=owner.stack,
        stack_name=owner.stack_name,
        key=key_to_pb(owner.key),
    )


def state_to_pb(state: OperationState) -> operation_pb2.OperationState.ValueType:
    """Translate how far an operation is."""
    number: operation_pb2.OperationState.ValueType = STATES.number(state)
    return number


def operation_to_pb(operation: Operation, blocked_by: bytes = b"") -> operation_pb2.Operation:
    """Translate an operation, with what it is blocked by in its wire format."""
    message = operation_pb2.Operation(
        name=operation.name,
        kind=KINDS.number(operation.kind),
        state=STATES.number(operation.state),
        stack_id="" if operation.nameless else operation.stack,
        stack_name=operation.stack_name,
        target=target_to_pb(operation.target),
        cause=operation.cause,
        create_time=timestamp(operation.create_time),
        update_time=timestamp(operation.update_time),
        holder=operation.holder,
        step_count=operation.step_count,
        done_count=operation.done_count,
    )
    message.MergeFromString(blocked_by)
    return message


def listed_to_pb(operation: Operation, blocked_by: bytes) -> operation_pb2.Operation:
    """Translate an operation as one of many: without the steps that block it."""
    message = operation_to_pb(operation, blocked_by)
    message.ClearField("blocked_steps")
    return message


def plan_from_pb(body: bytes) -> NewPlan:
    """
    What a plan in its wire format says of itself.

    Raises:
        RequestInvalid: It is no plan, or has no name.
    """
    try:
        plan = plan_pb2.Plan.FromString(body)
    except DecodeError as error:
        raise RequestInvalid("plan", f"is no pkger.model.v1.Plan in its wire format: {error}") from None
    if not plan.name:
        raise RequestInvalid("plan.name", "must not be empty")
    return NewPlan(
        name=plan.name,
        stack=plan.stack_id,
        stack_name=plan.stack_name,
        target=target_from_pb(plan.target),
        digest=plan.digest,
        base_generation=plan.base_generation,
        ends_stack=plan.ends_stack,
        step_count=len(plan.steps),
        body=body,
    )


def plan_to_pb(plan: StoredPlan, body: bytes = b"") -> plan_pb2.Plan:
    """Translate a plan; without its *body* it says nothing of what it would do."""
    message = plan_pb2.Plan.FromString(body) if body else _header(plan)
    message.state = _PLAN_STATE.number(plan.state)
    message.operation = plan.operation
    message.create_time.CopyFrom(timestamp(plan.create_time))
    if plan.expires is not None:
        message.expire_time.CopyFrom(timestamp(plan.expires))
    return message


def event_from_pb(message: operation_pb2.OperationEvent, field: str, is_a: str = "") -> Event:
    """
    Translate an event.

    Args:
        message: The event.
        field: Where it stands in the request, for the error.
        is_a: What it has to be; empty: anything.

    Raises:
        RequestInvalid: It says nothing, or something else.
    """
    happening = message.WhichOneof("event")
    if happening is None or (is_a and happening != is_a):
        raise RequestInvalid(field, f"the event must have {is_a or 'something that happened'}")
    return Event(message.seq, message.SerializeToString())


def accepted_from_pb(message: operation_pb2.OperationEvent) -> Event:
    """
    Translate the first event of an operation; the plan is kept beside it.

    Raises:
        RequestInvalid: It is another one.
    """
    if message.seq != 1:
        raise RequestInvalid("accepted", "the first event has seq 1")
    if message.accepted.HasField("plan"):
        raise RequestInvalid("accepted", "the plan travels beside the event")
    return event_from_pb(message, "accepted", is_a="accepted")


def events_to_pb(bodies: Iterable[bytes], plan: bytes) -> list[operation_pb2.OperationEvent]:
    """Translate events; the first one of an operation gets its *plan* back."""
    events = [operation_pb2.OperationEvent.FromString(body) for body in bodies]
    if events and events[0].seq == 1:
        events[0].accepted.plan.ParseFromString(plan)
    return events


def ending_from_pb(request: journal_pb2.FinishOperationRequest) -> Ending:
    """
    Translate the end of an operation.

    Raises:
        RequestInvalid: A part of it is missing, or no value to send.
    """
    return Ending(
        STATES.member(request.state) if request.state else OperationState.FAILED,
        _outcome(request),
        request.base_generation,
        request.finished.finished.cause or request.cause,
        event_from_pb(request.finished, "finished", is_a="finished") if request.HasField("finished") else None,
        operation_pb2.Operation(
            blocked_reason=request.blocked_reason, blocked_steps=request.blocked_steps
        ).SerializeToString(),
        StalePlan(request.stale_plan.plan, request.stale_plan.problem) if request.HasField("stale_plan") else None,
    )


def _header(plan: StoredPlan) -> plan_pb2.Plan:
    return plan_pb2.Plan(
        name=plan.name,
        target=target_to_pb(plan.target),
        stack_id=plan.stack,
        stack_name=plan.stack_name,
        base_generation=plan.base_generation,
        digest=plan.digest,
        ends_stack=plan.ends_stack,
    )


def _outcome(request: journal_pb2.FinishOperationRequest) -> Outcome:
    match request.WhichOneof("outcome"):
        case "record":
            record = request.record
            return Record(entries_from_pb(record.resources), tuple(record.sources), record.platform_changed)
        case "abandon":
            return Abandon()
        case "remove":
            return Remove()
        case _:
            raise RequestInvalid("outcome", "must be set")
