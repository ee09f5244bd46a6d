"""The states of a phase and of an action set, and the one table of transitions (docs/actions.md, "States")."""

from collections.abc import Mapping
from enum import StrEnum


class PhaseState(StrEnum):
    """As in action.proto, where each value is described."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"


class ActionSetState(StrEnum):
    """As in action.proto, where each value is described."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    BLOCKED = "BLOCKED"


class StopReason(StrEnum):
    """As in action_set.proto, where each value is described."""

    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"
    NOT_RESERVED = "NOT_RESERVED"
    STORE_RESTORED = "STORE_RESTORED"


_S = PhaseState

TRANSITIONS: Mapping[PhaseState, frozenset[PhaseState]] = {
    # A phase that waits for its next attempt ends as its last one did when the action set stops.
    _S.PENDING: frozenset({_S.RUNNING, _S.SKIPPED, _S.FAILED, _S.CANCELLED}),
    # A running phase runs again after an interruption, and with new outputs. It is pending again before another
    # attempt, and when its applier is told to stop.
    _S.RUNNING: frozenset({_S.RUNNING, _S.PENDING, _S.COMPLETE, _S.FAILED, _S.CANCELLED}),
    _S.COMPLETE: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
    _S.SKIPPED: frozenset(),
}
"""The states that may follow each state; a phase without a record is pending."""

ENDED = frozenset(state for state, following in TRANSITIONS.items() if not following)
"""The states without a transition."""

ACTION_SET_TRANSITIONS: Mapping[ActionSetState, frozenset[ActionSetState]] = {
    ActionSetState.PENDING: frozenset({ActionSetState.RUNNING, ActionSetState.STOPPING, ActionSetState.BLOCKED}),
    ActionSetState.RUNNING: frozenset({ActionSetState.COMPLETE, ActionSetState.STOPPING, ActionSetState.BLOCKED}),
    ActionSetState.STOPPING: frozenset({ActionSetState.FAILED, ActionSetState.CANCELLED, ActionSetState.BLOCKED}),
    ActionSetState.BLOCKED: frozenset({ActionSetState.PENDING, ActionSetState.RUNNING, ActionSetState.STOPPING}),
    ActionSetState.COMPLETE: frozenset(),
    ActionSetState.FAILED: frozenset(),
    ActionSetState.CANCELLED: frozenset(),
}
"""The states that may follow each state of an action set."""
