"""What an operation of kind ACTION writes: its action set, and the records of its phases."""

from zlib import compress

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import action_pb2

from services.actions.definitions import ActionObject
from services.actions.pinned import LARGEST_PINNED
from services.core.errors import RequestInvalid
from services.rpc.convert.phases import PHASE_STATES
from stack_svc.messages.fields import microseconds, target_of
from stack_svc.messages.snapshots import new_snapshot
from stack_svc.rules import sanitize
from stack_svc.rules.action_sets import NewActionSet, reserved_of
from stack_svc.rules.operations import ActionChange
from stack_svc.store.action_sets import StoredActionSet

_FIELD = "start.action_set"


def new_action_set_from_pb(message: action_set_pb2.NewActionSet, operation: str) -> NewActionSet:
    """
    Translate the action set that *operation* starts with.

    Raises:
        RequestInvalid: A field of it is missing or not valid.
    """
    name = sanitize.checked_name(message.name, f"{_FIELD}.name")
    if not message.pinned_json or len(message.pinned_json.encode()) > LARGEST_PINNED:
        raise RequestInvalid(f"{_FIELD}.pinned_json", f"must be JSON text of at most {LARGEST_PINNED:,} bytes")
    if message.phase_count < 1:
        raise RequestInvalid(f"{_FIELD}.phase_count", "must be at least 1")
    for stack in message.reserved:
        target_of(stack.target, f"{_FIELD}.reserved.target")
        sanitize.checked_name(stack.name, f"{_FIELD}.reserved.name")
    header = StoredActionSet(
        name,
        operation,
        message.phase_count,
        sanitize.clean(message.predecessor),
        tuple(map(sanitize.clean, message.blueprints)),
        tuple(map(_object_from_pb, message.objects)),
        {sanitize.clean(key): sanitize.clean(text) for key, text in message.labels.items()},
        microseconds(message.ttl) if message.HasField("ttl") else None,
    )
    # Equal messages have equal texts, by which a repeated start is recognised.
    body = compress(message.SerializeToString(deterministic=True))
    return NewActionSet(header, body, reserved_of(message), tuple(message.snapshots))


def action_change_from_pb(message: journal_pb2.JournalWrite) -> ActionChange | None:
    """
    Translate the part of a write that only action sets have; None: it has none.

    Raises:
        RequestInvalid: The state of a phase is not valid, or a text is no manifest of a snapshot.
    """
    if not message.HasField("action") and not message.snapshots:
        return None
    for phase in message.action.phases:
        PHASE_STATES.member(phase.state, "action.phases.state")
    return ActionChange(
        bool(message.action.phases),
        message.action.stop != action_set_pb2.STOP_REASON_UNSPECIFIED,
        message.action.reserve,
        list(map(new_snapshot, message.snapshots)),
    )


def stored_action(message: action_set_pb2.ActionRecords) -> action_set_pb2.ActionRecords:
    """The records of an action set as they are stored, without the time that a reader gets."""
    stored = action_set_pb2.ActionRecords()
    stored.CopyFrom(message)
    stored.ClearField("write_time")
    return stored


def _object_from_pb(message: action_pb2.ActionObject) -> ActionObject:
    target = target_of(message.target, f"{_FIELD}.objects.target")
    kind, name, stack = map(sanitize.clean, (message.kind, message.name, message.stack))
    return ActionObject(kind, name, stack, target.platform, target.org)
