"""Translates between messages and the values of the store: stacks, plans, operations and their parts."""

from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b, sha256
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.stack.v1 import policy_pb2, stack_pb2

from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.core.model import Baseline, InventoryEntry, Key, RecordChanges, ResourceKey, Target
from services.engine.claims import Claim, Refusal
from services.engine.operation import FINISHED, OperationState
from services.kinds.package_text import KeptPackage
from services.rpc.convert.claims import claim_from_pb, claim_to_pb
from services.rpc.convert.drift import counts_fields
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import (
    baseline_from_pb,
    check_stack_ref,
    entry_from_pb,
    key_fields,
    key_from_pb,
    new_target_from_pb,
    object_fields,
    target_from_pb,
    target_to_pb,
)
from services.rpc.convert.operations import STATES, direction_from_pb, step_record_from_pb
from services.rpc.convert.plans import KINDS, record_changes_from_pb, use_from_pb
from services.rpc.convert.policies import checked_policy, policy_from_pb, policy_to_pb
from stack_svc.rules import pages, sanitize, stacks
from stack_svc.rules.finish import AbandonOutcome, FinishRequest, Outcome, RecordOutcome, RemoveOutcome, StalePlan
from stack_svc.rules.operations import Advance, BeginRequest, JournalWrite, PlanRef, Start, Writes
from stack_svc.rules.plans import NewPlan
from stack_svc.rules.requests import RequestId
from stack_svc.rules.updates import StackUpdate
from stack_svc.rules.urls import checked_urls
from stack_svc.rules.watching import Phase, PhaseChange, WatchPosition
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.operations import Blocks, Operation, OperationFilter
from stack_svc.store.owners import Owner
from stack_svc.store.plans import Part, PlanState, StoredPlan
from stack_svc.store.revisions import Revision
from stack_svc.store.stacks import Choice, Stack, StackFilter, StackName

MOST_CHOSEN = 1000
"""Largest number of ids or names in a request for a list of stacks (stack.proto)."""

_LATEST = 2**63 - 1
"""After every time that the store can hold."""

_NOT_OF_A_RUN = ("begun", "package_invalid", "accepted", "finished")
"""Events that are not stored, or that another request than AdvanceOperation stores."""

_PLAN_STATE = Numbers(PlanState, plan_pb2.PlanState, "PLAN_STATE")


def target_of(message: object_pb2.Target, field: str = "target") -> Target:
    """
    Translate a target; *field* is its field in the request.

    Raises:
        RequestInvalid: A store cannot hold its names.
    """
    target = target_from_pb(message)
    sanitize.checked_name(target.platform, f"{field}.platform")
    sanitize.checked_name(target.org, f"{field}.org")
    return target


def new_target_of(message: object_pb2.Target) -> Target:
    """
    Translate the target of a new stack.

    Raises:
        RequestInvalid: A name in it is not valid, or a store cannot hold it.
    """
    new_target_from_pb(message)
    return target_of(message)


def choice_from_pb(stack: object_pb2.StackRef) -> Choice:
    """
    Translate the way in which a request names a stack.

    Raises:
        RequestInvalid: It names none, or its name is not valid for a stack.
    """
    check_stack_ref(stack)
    if stack.id:
        return stack.id
    stacks.check_name(stack.name, "stack.name")
    return StackName(target_of(stack.target, "stack.target"), stack.name)


def request_from_pb(key: journal_pb2.RequestKey) -> RequestId:
    """Translate the key of a request; without a key, it is a request without an id."""
    return RequestId(key.id, [key.digest])


def beginning_from_pb(request: journal_pb2.BeginOperationRequest, new_stack: str) -> BeginRequest:
    """
    Translate a new operation; if a stack is created for it, its id is *new_stack*.

    Raises:
        RequestInvalid: It names no stack, or its kind is not valid.
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
        new_stack=new_stack,
        request=request_from_pb(request.request),
    )


def microseconds(duration: Duration) -> int:
    """Translate a span of time."""
    return duration.ToMicroseconds()


def timestamp(microseconds: int) -> Timestamp:
    """Translate a time in microseconds since 1970."""
    time = Timestamp()
    time.FromMicroseconds(microseconds)
    return time


def stack_to_pb(stack: Stack, drift_check: DriftCheck | None = None) -> stack_pb2.Stack:
    """Translate a stack without its inventory; *drift_check* is its last drift detection, if the response has it."""
    record = stack.record
    return stack_pb2.Stack(
        id=record.id,
        target=target_to_pb(record.target),
        name=record.name,
        description=stack.description,
        generation=record.generation,
        sources=record.sources,
        create_time=timestamp(stack.create_time),
        update_time=timestamp(stack.update_time),
        resource_count=stack.resource_count,
        revision=record.revision,
        package_digest=record.package_digest,
        policy=policy_to_pb(record.policy) if record.policy else None,
        urls=record.urls,
        etag=stacks.etag_of(stack),
        last_drift_check=_drift_check_fields(drift_check) if drift_check else None,
    )


def _drift_check_fields(drift_check: DriftCheck) -> Any:
    return {
        "time": timestamp(drift_check.time),
        "generation": drift_check.generation,
        "counts": counts_fields(drift_check.counts),
    }


def revision_to_pb(revision: Revision, stack_id: str) -> stack_pb2.Revision:
    """Translate a revision, without its package; *stack_id* is the id of its stack."""
    return stack_pb2.Revision(
        stack_id=stack_id,
        number=revision.number,
        kind=KINDS.number(revision.kind),
        package_digest=revision.package_digest,
        sources=revision.sources,
        author=revision.author,
        operation_id=revision.operation,
        leftover_count=revision.leftover_count,
        rollback_of=revision.rollback_of,
        create_time=timestamp(revision.create_time),
    )


def revision_objects_to_pb(package: KeptPackage, is_shown: bool) -> stack_pb2.RevisionObjects:
    """Translate the package of a revision; if it *is_shown* to people, addresses are masked."""
    message = stack_pb2.RevisionObjects(
        objects=map(object_fields, package.objects), untouched=map(key_fields, sorted(package.untouched))
    )
    for item in message.objects if is_shown else ():
        item.spec_json = masked(item.spec_json)
        for written in item.written:
            written.value_json = masked(written.value_json)
    return message


def stacks_filter_from_pb(request: stack_pb2.ListStacksRequest) -> StackFilter:
    """
    Translate the filters of a list of stacks.

    Raises:
        RequestInvalid: There are too many ids or names, or a pattern that is too long for any name.
    """
    for field, values in (("stack_ids", request.stack_ids), ("names", request.names)):
        if len(values) > MOST_CHOSEN:
            raise RequestInvalid(field, f"at most {MOST_CHOSEN:,}, and not {len(values):,}")
    if len(request.name_glob) > 2 * stacks.LONGEST_NAME:
        raise RequestInvalid("name_glob", f"a pattern has at most {2 * stacks.LONGEST_NAME} characters")
    return StackFilter(
        target_of(request.target) if request.HasField("target") else None,
        frozenset(map(sanitize.clean, request.stack_ids)),
        frozenset(map(sanitize.clean, request.names)),
        sanitize.clean(request.name_glob),
    )


def stacks_from_pb(request: stack_pb2.ListRevisionsRequest) -> frozenset[str]:
    """
    Translate the ids of the stacks whose revisions are requested together.

    Raises:
        RequestInvalid: There are too many, or one stack is named in another way as well.
    """
    if request.HasField("stack"):
        raise RequestInvalid("stack", "name one stack here, or several in stack_ids, and not both")
    if len(request.stack_ids) > MOST_CHOSEN:
        raise RequestInvalid("stack_ids", f"at most {MOST_CHOSEN:,}, and not {len(request.stack_ids):,}")
    return frozenset(map(sanitize.clean, request.stack_ids))


def policy_of(message: policy_pb2.Policy) -> dict[str, Any]:
    """
    Translate the policy of a stack.

    Raises:
        RequestInvalid: It is not valid; the error names the field.
    """
    return checked_policy(policy_from_pb(message))


def update_from_pb(request: stack_pb2.UpdateStackRequest, allow_jsonnet: bool) -> StackUpdate:
    """
    Translate an update of a stack.

    Raises:
        RequestInvalid: The parser would not fetch one of the URLs, or the policy is not valid.
        EncodingInvalid: A URL is the address of a program, and programs are not evaluated.
    """
    return StackUpdate(
        request.name if request.HasField("name") else None,
        request.description if request.HasField("description") else None,
        checked_urls(request.urls.urls, "urls.urls", allow_jsonnet) if request.HasField("urls") else None,
        request.etag,
        policy_of(request.policy) if request.HasField("policy") else None,
    )


def record_digest(stack: Stack | None, drift_check: DriftCheck | None = None) -> str:
    """A digest of a stack as clients see it, with its last drift detection *drift_check*; empty for no stack."""
    if stack is None:
        return ""
    return blake2b(stack_to_pb(stack, drift_check).SerializeToString(deterministic=True), digest_size=8).hexdigest()


def position_from_pb(position: str) -> WatchPosition:
    """
    Translate the position at which a watcher resumes.

    Raises:
        RequestInvalid: This service did not make *position*.
    """
    start: tuple[str, str, str, int, str] = ("", "", "", 0, "")
    return WatchPosition(*pages.place_of(position, start, "position", "position"))


def change_to_pb(
    stack_id: str, change: PhaseChange | Stack | None, position: WatchPosition, drift_check: DriftCheck | None = None
) -> stack_pb2.WatchStackResponse:
    """Translate a change of ``watching.changes``; *drift_check* is the last drift detection of the stack."""
    message = stack_pb2.WatchStackResponse(position=pages.token_of(tuple(position)))
    match change:
        case PhaseChange(operation, Phase.BEGUN):
            message.operation_begun.CopyFrom(operation_to_pb(operation))
        case PhaseChange(operation, Phase.BLOCKED):
            message.operation_blocked.CopyFrom(operation_to_pb(operation))
        case PhaseChange(operation, _):
            message.operation_ended.CopyFrom(operation_to_pb(operation))
        case None:
            message.gone.stack_id = stack_id
        case _:
            message.stack.CopyFrom(stack_to_pb(change, drift_check))
    return message


def holder_to_pb(resource: ResourceKey, owner: Owner, label_ids: Sequence[str]) -> stack_pb2.ResourceHolder:
    """Translate the owner or a user of a resource, with the ids of the labels that its record wants on it."""
    kind, resource_id = resource
    return stack_pb2.ResourceHolder(
        resource=object_pb2.ResourceId(kind=kind, id=resource_id),
        stack_id=owner.stack,
        stack_name=owner.stack_name,
        key=object_pb2.ObjectKey(kind=kind, name=owner.name),
        operation_id=owner.operation,
        since=timestamp(owner.since),
        label_ids=label_ids,
    )


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
    is_blocked = operation.state is OperationState.BLOCKED
    return operation_pb2.CANCEL_EFFECT_BLOCKED if is_blocked else operation_pb2.CANCEL_EFFECT_ROLLS_BACK


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
        _time(request.since, "since") if request.HasField("since") else 0,
        _time(request.until, "until") if request.HasField("until") else _LATEST,
    )


def plan_from_pb(plan: journal_pb2.NewPlan, attachments: Iterable[journal_pb2.Attachment] = ()) -> NewPlan:
    """
    Translate a plan to be stored, with its short *attachments*.

    Raises:
        RequestInvalid: It has no name or no kind, or an attachment has no digest.
    """
    header, counts = plan.header, plan.header.counts
    return NewPlan(
        id=sanitize.checked_name(header.id, "plan.header.id"),
        stack=header.stack_id,
        stack_name=header.stack_name,
        target=target_of(header.target),
        digest=header.digest,
        base_generation=header.base_generation,
        kind=KINDS.member(header.kind),
        step_count=sum(
            (counts.creates, counts.updates, counts.deletes, counts.attaches, counts.detaches, counts.secrets)
        ),
        package_digest=header.package_digest,
        baselines_digest=plan.baselines_digest,
        rollback_of=header.rollback_of,
        creates_nameless_stack=plan.creates_nameless_stack,
        message=header.SerializeToString(),
        parts=tuple(Part(each.view, each.part, each.masked_part) for each in plan.parts),
        attachments={sanitize.checked_name(each.digest, "attachments.digest"): each.body for each in attachments},
    )


def plan_to_pb(plan: StoredPlan, header: bytes) -> plan_pb2.Plan:
    """Translate a plan: its *header* as it was stored, with its state, its operation and its times."""
    message = plan_pb2.Plan.FromString(header)
    message.id = plan.id
    message.state = _PLAN_STATE.number(plan.state)
    message.operation_id = plan.operation
    message.create_time.CopyFrom(timestamp(plan.create_time))
    if plan.expires is not None:
        message.expire_time.CopyFrom(timestamp(plan.expires))
    return message


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


def _start_from_pb(start: journal_pb2.Start, operation: str, limit: int) -> Start:
    idle_plan = plan_from_pb(start.idle_plan) if start.HasField("idle_plan") else None
    if idle_plan and not start.idle_plan.header.no_change:
        raise RequestInvalid("start.idle_plan", "it has something to do; store it first, and send its id")
    if idle_plan:
        idle_plan.refuse_too_large(limit)
    if not (name := idle_plan.id if idle_plan else start.plan_id):
        raise RequestInvalid("start.plan_id", "must not be empty")
    if start.accepted.seq != 1:
        raise RequestInvalid("start.accepted", "must have seq 1, as it is the first event")
    _check_event(start.accepted, "start.accepted", operation, is_a="accepted")
    write = JournalWrite(1, b"", _stored_events([start.accepted]), [1])
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
        ).SerializeToString(),
        _stored_events(message.events),
        [event.seq for event in message.events],
        steps,
    )


def _advance_from_pb(message: journal_pb2.JournalWrite) -> Advance:
    claims, released = claims_from_pb(message.claims, "claims"), claims_from_pb(message.released, "released")
    return Advance(claims, released, message.done_count, message.seal, message.rollback, message.cause)


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


def ending_from_pb(request: journal_pb2.FinishOperationRequest) -> FinishRequest:
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
        journal_pb2.StoredRecords(digest=sha256(request.SerializeToString()).digest()).SerializeToString(),
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


def _time(moment: Timestamp, field: str) -> int:
    """
    The first microsecond that is not before *moment*.

    Raises:
        RequestInvalid: It is not a valid timestamp; the error names *field*.
    """
    try:
        return -(-moment.ToNanoseconds() // 1000)
    except ValueError as error:
        raise RequestInvalid(field, str(error)) from None


def checked_key(message: object_pb2.ObjectKey) -> Key:
    """
    Translate the key of an object.

    Raises:
        RequestInvalid: A store cannot hold it.
    """
    return Key(sanitize.checked_name(message.kind, "key.kind"), sanitize.checked_name(message.name, "key.name"))


def imports_from_pb(request: journal_pb2.RecordImportRequest) -> list[tuple[InventoryEntry, Baseline]]:
    """
    Translate the resources that are imported into the record.

    Raises:
        RequestInvalid: A key or an id is not valid, or not every entry has a baseline.
    """
    if len(request.entries) != len(request.baselines):
        raise RequestInvalid("baselines", f"{len(request.baselines)} do not fit {len(request.entries)} entries")
    return [_import(*each) for each in zip(request.entries, request.baselines, strict=True)]


def _import(entry: object_pb2.InventoryEntry, baseline: journal_pb2.Baseline) -> tuple[InventoryEntry, Baseline]:
    key, resource_id = checked_key(entry.key), sanitize.checked_name(entry.resource_id, "entry.resource_id")
    return (
        entry_from_pb(entry)._replace(key=key, resource_id=resource_id),
        baseline_from_pb(baseline)._replace(key=key),
    )


def _cleaned(entry: InventoryEntry) -> InventoryEntry:
    """*entry* with texts that every store can hold."""
    key, labels = _cleaned_key(entry.key), tuple(map(_cleaned_key, entry.associations))
    return entry._replace(key=key, resource_id=sanitize.clean(entry.resource_id), associations=labels)


def _cleaned_baseline(baseline: Baseline) -> Baseline:
    return baseline._replace(key=_cleaned_key(baseline.key))


def _cleaned_key(key: Key) -> Key:
    return Key(sanitize.clean(key.kind), sanitize.clean(key.name))


def _outcome(request: journal_pb2.FinishOperationRequest) -> Outcome:
    match request.WhichOneof("outcome"):
        case "record":
            record = request.record
            changes = record_changes_from_pb(record.changes)
            return RecordOutcome(
                RecordChanges(
                    tuple(map(_cleaned, changes.entries)),
                    tuple(map(_cleaned_key, changes.removed)),
                    tuple(map(_cleaned_key, changes.staying)),
                    changes.staying_labels,
                    tuple(map(_cleaned_key, changes.taken_over)),
                ),
                tuple(record.sources),
                record.platform_changed,
                record.secrets_written,
                [_cleaned_baseline(baseline_from_pb(each)) for each in record.baselines],
                record.is_in_sync,
            )
        case "abandon":
            return AbandonOutcome()
        case "remove":
            keys = (_cleaned_key(key_from_pb(key)) for key in request.remove.staying)
            return RemoveOutcome(tuple(keys), tuple(map(use_from_pb, request.remove.staying_labels)))
        case _:
            raise RequestInvalid("outcome", "must be set")
