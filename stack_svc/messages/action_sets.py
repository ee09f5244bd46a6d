"""Action sets as messages, for those who read them."""

from collections.abc import Iterator

from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import action_pb2

from services.actions.definitions import ActionObject
from services.actions.life import ActionSetState
from services.core.errors import RequestInvalid
from services.core.model import Target
from services.engine.operation import FINISHED, OperationState
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import target_to_pb
from services.rpc.parts import parts
from stack_svc.messages.fields import choice_from_pb, timestamp
from stack_svc.messages.operations import operation_to_pb
from stack_svc.messages.snapshots import snapshot_to_pb
from stack_svc.rules import sanitize
from stack_svc.rules.action_sets import WholeActionSet, message_of
from stack_svc.rules.journal_replay import action_records_of
from stack_svc.store.action_sets import ActionSetFilter, Progress, StoredActionSet
from stack_svc.store.operations import Operation

_STATES = Numbers(ActionSetState, action_pb2.ActionSetState, "ACTION_SET_STATE")

_PROGRESS = {
    ActionSetState.PENDING: Progress(OperationState.APPLYING, has_begun=False),
    ActionSetState.RUNNING: Progress(OperationState.APPLYING, has_begun=True),
    ActionSetState.STOPPING: Progress(OperationState.ROLLING_BACK),
    ActionSetState.COMPLETE: Progress(OperationState.SUCCEEDED),
    ActionSetState.FAILED: Progress(OperationState.FAILED),
    ActionSetState.CANCELLED: Progress(OperationState.CANCELLED),
    ActionSetState.BLOCKED: Progress(OperationState.BLOCKED),
}
"""The state of an action set follows from the state of its operation, and from whether a phase has begun."""


def filter_from_pb(request: action_set_pb2.ListActionSetsRequest) -> ActionSetFilter:
    """
    Translate the filters of a list of action sets.

    Raises:
        RequestInvalid: The stack is not named by its name, or a state is not valid.
    """
    stack = choice_from_pb(request.stack) if request.HasField("stack") else None
    if isinstance(stack, str):
        raise RequestInvalid("stack", "name the stack by its name and target; objects of action sets have no ids")
    return ActionSetFilter(
        stack,
        sanitize.clean(request.blueprint),
        [_PROGRESS[_STATES.member(state, "states")] for state in request.states],
        sanitize.clean(request.predecessor),
        {sanitize.clean(key): sanitize.clean(text) for key, text in request.labels.items()},
    )


def listed_to_pb(listed: tuple[StoredActionSet, Operation]) -> action_pb2.ActionSet:
    """Translate an action set in a list, with its operation."""
    action_set, operation = listed
    state = _state_of(action_set, operation)
    message = action_pb2.ActionSet(
        name=action_set.name,
        operation_id=operation.id,
        state=_STATES.number(state),
        labels=action_set.labels,
        predecessor=action_set.predecessor,
        cause=operation.cause,
        progress=_percent(action_set, operation, state),
        author=operation.author,
        create_time=timestamp(operation.create_time),
        end_time=timestamp(operation.update_time) if operation.state in FINISHED else None,
        blueprints=action_set.blueprints,
        objects=map(_object_to_pb, action_set.objects),
    )
    if action_set.ttl is not None:
        message.ttl.FromMicroseconds(action_set.ttl)
    return message


def whole_to_pb(whole: WholeActionSet) -> Iterator[action_set_pb2.GetActionSetResponse]:
    """Translate an action set with its journal, in parts."""
    first = action_set_pb2.GetActionSetResponse(
        action_set=message_of(whole.body), operation=operation_to_pb(whole.operation)
    )
    for snapshot in whole.unknown:
        first.deleted_snapshots[snapshot].SetInParent()
    for deleted in whole.deleted:
        message = action_pb2.DeletedSnapshot(
            deleted_by=deleted.deleted_by, delete_time=snapshot_to_pb(deleted).delete_time
        )
        first.deleted_snapshots[deleted.id].CopyFrom(message)
    yield first
    for some in parts(action_records_of(whole.rows), action_set_pb2.ActionRecords.ByteSize):
        yield action_set_pb2.GetActionSetResponse(records=some)


def _state_of(action_set: StoredActionSet, operation: Operation) -> ActionSetState:
    alike = {Progress(operation.state, has_begun=action_set.has_begun), Progress(operation.state)}
    return next(state for state, progress in _PROGRESS.items() if progress in alike)


def _percent(action_set: StoredActionSet, operation: Operation, state: ActionSetState) -> int:
    """The percentage of the phases that ended; 100 only when it is complete."""
    if state is ActionSetState.COMPLETE:
        return 100
    return min(99, 100 * operation.done_count // action_set.phase_count)


def _object_to_pb(value: ActionObject) -> action_pb2.ActionObject:
    target = target_to_pb(Target(value.platform, value.org))
    return action_pb2.ActionObject(kind=value.kind, name=value.name, stack=value.stack, target=target)
