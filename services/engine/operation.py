"""The states of an operation, the reasons why it is blocked, and the decisions (docs/reference/engine.md, "States")."""

from enum import StrEnum


class OperationState(StrEnum):
    """As in operation.proto, where each value is described."""

    PREPARING = "PREPARING"
    APPLYING = "APPLYING"
    ROLLING_BACK = "ROLLING_BACK"
    BLOCKED = "BLOCKED"
    SUCCEEDED = "SUCCEEDED"
    ROLLED_BACK = "ROLLED_BACK"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


FINISHED = frozenset(
    {OperationState.SUCCEEDED, OperationState.ROLLED_BACK, OperationState.FAILED, OperationState.CANCELLED}
)
"""The states without a transition."""


class Direction(StrEnum):
    """Whether a step is performed or undone: two effects, each with its own outcome."""

    DO = "DO"
    UNDO = "UNDO"


class BlockedReason(StrEnum):
    """As in operation.proto, the most urgent reason first."""

    STORE_RESTORED = "STORE_RESTORED"
    DEFECT = "DEFECT"
    CONFLICT = "CONFLICT"
    UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME"
    ROLLBACK = "ROLLBACK"


class Decision(StrEnum):
    """A decision about one blocked step, as in operation.proto, where each value is described."""

    RETRY = "RETRY"
    SKIP = "SKIP"
    FORCE = "FORCE"
    KEEP = "KEEP"
    ADOPT = "ADOPT"
