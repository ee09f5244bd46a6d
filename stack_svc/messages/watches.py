"""Changes of a stack, for its watchers, as messages."""

from hashlib import blake2b

from pkger.stack.v1 import stack_pb2

from services.rpc import page_tokens
from stack_svc.messages.operations import operation_to_pb
from stack_svc.messages.stacks import stack_to_pb
from stack_svc.rules.watching import Phase, PhaseChange, Snapshot, WatchPosition
from stack_svc.store.stacks import Stack


def record_digest(seen: Snapshot) -> str:
    """A digest of a stack as clients see it; empty for no stack."""
    if seen.stack is None:
        return ""
    message = stack_to_pb(seen.stack, seen.drift, seen.reservation)
    return blake2b(message.SerializeToString(deterministic=True), digest_size=8).hexdigest()


def position_from_pb(position: str) -> WatchPosition:
    """
    Translate the position at which a watcher resumes.

    Raises:
        RequestInvalid: This service did not make *position*.
    """
    start: tuple[str, str, str, int, str] = ("", "", "", 0, "")
    return WatchPosition(*page_tokens.place_of(position, start, "position", "position"))


def change_to_pb(
    stack_id: str, change: PhaseChange | Stack | None, position: WatchPosition, seen: Snapshot
) -> stack_pb2.WatchStackResponse:
    """Translate a change of ``watching.changes`` in *seen*."""
    message = stack_pb2.WatchStackResponse(position=page_tokens.token_of(tuple(position)))
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
            message.stack.CopyFrom(stack_to_pb(change, seen.drift, seen.reservation))
    return message
