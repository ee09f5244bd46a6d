"""Bounds that several parts share."""

from services.core.errors import PlanTooLarge

MAX_PACKAGE_BYTES = 8 * 1024 * 1024
"""
Most UTF-8 text of all sources of one package together.

A plan travels to the store in one message, with each spec that it writes once or, of an update, twice: at this size it
stays far below the message limit of 64 MiB.
"""

_STEP_BYTES = 64
"""What a step adds to the record of a stack beyond what its plan has: the id of its resource."""

_OTHER_BYTES = 64 * 1024
"""What a message has beside a plan or a record: the stack, the operation, an event."""


def refuse_too_large(plan_bytes: int, step_count: int, limit: int) -> None:
    """
    Refuse a plan that could not be started, or whose operation could not be ended.

    A plan travels whole when it is stored and when it starts. The record that ends its operation has no more than the
    entries of the plan, which are a part of it, and the ids that its steps made. All else comes in parts.

    Args:
        plan_bytes: Header, body and content of the plan.
        step_count: Number of its steps.
        limit: Largest message.

    Raises:
        PlanTooLarge: Says by how much.
    """
    size = plan_bytes + _STEP_BYTES * step_count + _OTHER_BYTES
    if size > limit:
        raise PlanTooLarge(size, limit)
