"""Why a phase failed or was cancelled."""

from enum import StrEnum


class PhaseReason(StrEnum):
    """As in action.proto, where each value is described."""

    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    INTERRUPTED = "INTERRUPTED"
    TEMPLATE = "TEMPLATE"
    ARGUMENT_INVALID = "ARGUMENT_INVALID"
    SECRET_MISSING = "SECRET_MISSING"  # noqa: S105 - a reason, not a secret
    REFUSED = "REFUSED"
    FUNCTION_UNAVAILABLE = "FUNCTION_UNAVAILABLE"
    OUTPUT_TOO_LARGE = "OUTPUT_TOO_LARGE"
    CHILD_ROLLED_BACK = "CHILD_ROLLED_BACK"
    CHILD_BLOCKED = "CHILD_BLOCKED"
