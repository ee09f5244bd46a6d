"""What a call carries from service to service: its request id, its deadline, and how much at most."""

import math
import time
from contextvars import ContextVar

MESSAGE_LIMIT = 64 * 1024 * 1024
"""Largest message in either direction, in bytes (issue 2)."""

REQUEST_ID_KEY = "x-request-id"
"""Metadata key of the request id, both ways."""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the call being served; empty outside of calls."""

deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When the caller stops waiting, on the monotonic clock."""


def time_left(limit: float | None) -> float | None:
    """
    How long a downstream call may take.

    Args:
        limit: What the downstream call is given at most, in seconds; None for no limit of its own.

    Returns:
        Seconds, never negative; None when neither the caller nor *limit* sets an end.
    """
    left = min(deadline.get() - time.monotonic(), math.inf if limit is None else limit)
    return None if math.isinf(left) else max(left, 0.0)
