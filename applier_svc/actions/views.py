"""Action sets as clients see them."""

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import action_pb2, operation_pb2

from applier_svc.actions.phase_names import child_id, phase_of, ref_of
from services.actions.durations import Milliseconds
from services.actions.folding import (
    ActionSetProgress,
    ActionShape,
    Microseconds,
    PhaseKey,
    PhaseStatus,
    Shape,
    folded,
)
from services.actions.pinned import PinnedActionSet, blueprint_names, objects_of, read_pinned
from services.actions.pruning import pruned_stack
from services.actions.resolving import EarlierActionSet
from services.actions.signatures import Recovery, SignatureTable
from services.rpc.convert.phases import (
    ACTION_SET_STATES,
    PHASE_STATES,
    action_object_to_pb,
    outputs_text,
    reason_number,
    records_from_pb,
)

_STATES = {
    operation_pb2.OPERATION_STATE_ROLLING_BACK: action_pb2.ACTION_SET_STATE_STOPPING,
    operation_pb2.OPERATION_STATE_BLOCKED: action_pb2.ACTION_SET_STATE_BLOCKED,
    operation_pb2.OPERATION_STATE_SUCCEEDED: action_pb2.ACTION_SET_STATE_COMPLETE,
    operation_pb2.OPERATION_STATE_FAILED: action_pb2.ACTION_SET_STATE_FAILED,
    operation_pb2.OPERATION_STATE_CANCELLED: action_pb2.ACTION_SET_STATE_CANCELLED,
}


def shape_of(pinned: PinnedActionSet) -> Shape:
    """What the order of an action set depends on; its stacks count as reserved."""
    return Shape(
        [ActionShape(len(each.action.phases), each.action.defer_phase is not None) for each in pinned.actions],
        pinned.sequential,
    )


def stored_to_pb(stored: action_set_pb2.GetActionSetResponse, table: SignatureTable) -> action_pb2.ActionSet:
    """
    A stored action set, with its phases.

    Raises:
        ValueError: Its pinned text or its journal cannot be read.
    """
    pinned = read_pinned(stored.action_set.pinned_json)
    progress = folded(shape_of(pinned), map(records_from_pb, stored.records))
    return action_set_to_pb(pinned, progress, stored.operation, table, stored.deleted_snapshots)


def earlier_action_set(stored: action_set_pb2.GetActionSetResponse) -> EarlierActionSet:
    """
    A stored action set as the predecessor of another one.

    Raises:
        ValueError: Its pinned text or its journal cannot be read.
    """
    pinned = read_pinned(stored.action_set.pinned_json)
    progress = folded(shape_of(pinned), map(records_from_pb, stored.records))
    state = ACTION_SET_STATES.member(_state(progress, stored.operation))
    return EarlierActionSet(pinned, state, progress.artifacts)


def action_set_to_pb(
    pinned: PinnedActionSet,
    progress: ActionSetProgress,
    operation: operation_pb2.Operation,
    table: SignatureTable,
    deleted: Mapping[str, action_pb2.DeletedSnapshot],
) -> action_pb2.ActionSet:
    """
    An action set with its phases.

    Args:
        pinned: The action set.
        progress: How far it is.
        operation: Its operation; an empty one if it does not run.
        table: The functions, which say which phases begin operations.
        deleted: The deleted snapshots among the texts of its artifacts, by id.
    """
    return action_pb2.ActionSet(
        name=pinned.name,
        operation_id=operation.id,
        state=_state(progress, operation),
        actions=[_action(pinned, index, progress, operation, table, deleted) for index in range(len(pinned.actions))],
        labels=pinned.labels,
        predecessor=pinned.predecessor,
        sequential=pinned.sequential,
        timeout=_duration(pinned.timeout),
        wait=_duration(pinned.wait),
        ttl=_duration(pinned.ttl),
        cause=operation.cause,
        failures=[_failure(pinned, key, progress.status(key)) for key in progress.failures],
        progress=progress.percent,
        author=operation.author,
        create_time=operation.create_time if operation.HasField("create_time") else None,
        end_time=operation.end_time if operation.HasField("end_time") else None,
        blueprints=blueprint_names(pinned),
        objects=map(action_object_to_pb, objects_of(pinned)),
    )


def _state(progress: ActionSetProgress, operation: operation_pb2.Operation) -> action_pb2.ActionSetState.ValueType:
    if operation.state in _STATES:
        return _STATES[operation.state]
    has_begun = any(map(progress.has_begun, range(len(progress.shape.actions))))
    return action_pb2.ACTION_SET_STATE_RUNNING if has_begun else action_pb2.ACTION_SET_STATE_PENDING


def _action(
    pinned: PinnedActionSet,
    index: int,
    progress: ActionSetProgress,
    operation: operation_pb2.Operation,
    table: SignatureTable,
    deleted: Mapping[str, action_pb2.DeletedSnapshot],
) -> action_pb2.Action:
    action = pinned.actions[index]
    *phases, last = [_phase(pinned, key, progress.status(key), operation, table) for key in progress.shape.keys(index)]
    has_defer_phase = action.action.defer_phase is not None
    rendered = {name: values for (of_action, name), values in progress.artifacts.items() if of_action == index}
    return action_pb2.Action(
        name=action.name,
        blueprint=action.blueprint,
        digest=action.digest,
        object=action_object_to_pb(action.object) if action.object else None,
        options=action.options,
        input_artifacts=_artifacts(action.artifacts, deleted),
        phases=phases if has_defer_phase else [*phases, last],
        defer_phase=last if has_defer_phase else None,
        artifacts=_artifacts(rendered, deleted),
    )


def _artifacts(
    artifacts: Mapping[str, Mapping[str, str]], deleted: Mapping[str, action_pb2.DeletedSnapshot]
) -> Iterator[action_pb2.Artifact]:
    for name, values in sorted(artifacts.items()):
        yield action_pb2.Artifact(name=name, values=values, deleted_snapshots=_deleted(values, deleted))


def _deleted(
    values: Mapping[str, str], deleted: Mapping[str, action_pb2.DeletedSnapshot]
) -> Iterable[action_pb2.DeletedSnapshot]:
    for key, text in sorted(values.items()):
        if (snapshot := deleted.get(text)) is not None:
            yield action_pb2.DeletedSnapshot(key=key, deleted_by=snapshot.deleted_by, delete_time=snapshot.delete_time)


def _phase(
    pinned: PinnedActionSet,
    key: PhaseKey,
    status: PhaseStatus,
    operation: operation_pb2.Operation,
    table: SignatureTable,
) -> action_pb2.Phase:
    phase = phase_of(pinned, key)
    signature = table.find(phase.function, phase.version)
    begins_operation = signature is not None and signature.recovery is Recovery.ATTACH and status.try_number > 0
    call = f"{operation.id}/{key.action}/{key.place}/{status.try_number}"
    return action_pb2.Phase(
        name=phase.name,
        function=phase.function,
        version=phase.version or 0,
        state=PHASE_STATES.number(status.state),
        attempt=status.attempt,
        start_time=_timestamp(status.start_time),
        end_time=_timestamp(status.end_time),
        outputs_json=outputs_text(status.outputs),
        reason=reason_number(status.reason),
        error_reason=status.error_reason,
        message=status.message,
        interruptions=status.interruptions,
        operation_id=child_id(call) if begins_operation else "",
        pruned_stack=pruned_stack(phase, pinned.actions[key.action].object),
    )


def _failure(pinned: PinnedActionSet, key: PhaseKey, status: PhaseStatus) -> action_pb2.PhaseFailure:
    return action_pb2.PhaseFailure(
        phase=ref_of(pinned, key),
        function=phase_of(pinned, key).function,
        attempt=status.attempt,
        reason=reason_number(status.reason),
        error_reason=status.error_reason,
        message=status.message,
    )


def _duration(length: Milliseconds | None) -> Duration | None:
    if length is None:
        return None
    duration = Duration()
    duration.FromMilliseconds(length)
    return duration


def _timestamp(time: Microseconds | None) -> Timestamp | None:
    if time is None:
        return None
    timestamp = Timestamp()
    timestamp.FromMicroseconds(time)
    return timestamp
