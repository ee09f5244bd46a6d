"""Limits that several services share."""

from services.core.errors import PlanTooLarge

MAX_PACKAGE_BYTES = 8 * 1024 * 1024
"""
Largest UTF-8 text of all sources of one package together.

The steps of a plan contain each written spec once, and twice for an update. With sources of this size, they stay far
below the message limit of 64 MiB, even where they cannot be compressed.
"""

MOST_ENTRIES = 10_000
"""Largest number of entries of a list or map in a request of a client."""

MOST_PACKAGES = 200
"""Largest number of packages that one request changes (docs/dependencies.md, "Which versions go together")."""

LONGEST_NAME = 200
"""Largest length of a name in a request of a client, in characters."""

LONGEST_DESCRIPTION = 2_000
"""Largest length of a description, in characters."""

LONGEST_ADDRESS = 2_048
"""Largest length of the address of a repository, in characters."""

_STEP_BYTES = 64
"""Bytes that a step adds to the record of a stack beyond its plan: the id of its resource."""

_OTHER_BYTES = 64 * 1024
"""Bytes of a message beside the plan or record: the stack, the operation, an event."""


def refuse_too_large(plan_bytes: int, step_count: int, limit: int) -> None:
    """
    Refuse a plan that is too large to start, or to end its operation.

    A plan is sent whole when it is stored. The record that ends its operation contains at most the entries of the plan
    and the ids of created resources. Everything else is sent in parts.

    Args:
        plan_bytes: Size of the plan. The planner counts header and body as they are, and diffs and summary as they are
            stored; the store counts what it gets, as it does not decode it.
        step_count: Number of its steps.
        limit: Largest message.

    Raises:
        PlanTooLarge: Names the size and the limit.
    """
    size = plan_bytes + _STEP_BYTES * step_count + _OTHER_BYTES
    if size > limit:
        raise PlanTooLarge(size, limit)
