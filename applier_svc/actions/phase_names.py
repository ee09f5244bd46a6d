"""The names of the actions and phases of an action set, as its events have them, and the ids of their operations."""

from hashlib import sha256

from pkger.model.v1 import action_pb2

from services.actions.definitions import Phase
from services.actions.folding import PhaseKey
from services.actions.pinned import PinnedActionSet

_ID_DIGITS = 16


def phase_of(pinned: PinnedActionSet, key: PhaseKey) -> Phase:
    """The phase with *key*."""
    return pinned.actions[key.action].phase(key.place)


def ref_of(pinned: PinnedActionSet, key: PhaseKey) -> action_pb2.PhaseRef:
    """The reference to a phase in events."""
    return action_pb2.PhaseRef(
        action=key.action,
        action_name=pinned.actions[key.action].name,
        index=key.place,
        phase=phase_of(pinned, key).name,
    )


def child_id(key: str) -> str:
    """The id of the operation that the call with *key* begins."""
    return sha256(key.encode()).hexdigest()[:_ID_DIGITS]
