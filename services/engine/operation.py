"""How far an operation is, and what keeps it from its end (docs/reference/engine.md, "States")."""

from enum import StrEnum


class OperationState(StrEnum):
    """As in operation.proto, which says what each means."""

    PREPARING = "PREPARING"
    APPLYING = "APPLYING"
    ROLLING_BACK = "ROLLING_BACK"
    BLOCKED = "BLOCKED"
    SUCCEEDED = "SUCCEEDED"
    ROLLED_BACK = "ROLLED_BACK"
    FAILED = "FAILED"


FINISHED = frozenset({OperationState.SUCCEEDED, OperationState.ROLLED_BACK, OperationState.FAILED})
"""Nothing happens in such an operation any more."""


class Direction(StrEnum):
    """Whether a step is carried out or taken back: two effects, each with an outcome of its own."""

    DO = "DO"
    UNDO = "UNDO"


class BlockedReason(StrEnum):
    """As in operation.proto; what somebody has to look at first comes first."""

    STORE_RESTORED = "STORE_RESTORED"
    DEFECT = "DEFECT"
    CONFLICT = "CONFLICT"
    UNKNOWN_OUTCOME = "UNKNOWN_OUTCOME"
    ROLLBACK = "ROLLBACK"


class Decision(StrEnum):
    """A way out for one blocked step, as in operation.proto, which says what each means."""

    RETRY = "RETRY"
    SKIP = "SKIP"
    FORCE = "FORCE"
    KEEP = "KEEP"
    ADOPT = "ADOPT"
