"""What a call carries from service to service: its request id, its deadline, and how much at most."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from services.machine import Ids

MESSAGE_LIMIT = 64 * 1024 * 1024
"""Largest message in either direction, in bytes (issue 2)."""

REQUEST_ID_KEY = "x-request-id"
"""Metadata key of the request id, both ways."""

MARGIN_SECONDS = 1.0
MARGIN_SHARE = 0.1
"""
What a service keeps of its caller's deadline when it calls another service: this share, and at most these seconds.

The inner deadline expires first, so the service has time left to answer which service did not answer.
"""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the call being served; empty outside of calls."""

deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""When the caller stops waiting, by ``loop_time``."""


def loop_time() -> float:
    """Seconds on the clock of the running loop, which is never set back. All deadlines and durations are by it."""
    return asyncio.get_running_loop().time()


def time_left(limit: float | None) -> float | None:
    """
    How long a downstream call may take: less than the caller waits, by a margin.

    Args:
        limit: What the downstream call is given at most, in seconds; None for no limit of its own.

    Returns:
        Seconds, never negative; None when neither the caller nor *limit* sets an end.
    """
    left = max(deadline.get() - loop_time(), 0.0)
    left -= min(left * MARGIN_SHARE, MARGIN_SECONDS)
    left = min(left, math.inf if limit is None else limit)
    return None if math.isinf(left) else max(left, 0.0)


def new_request_id(ids: Ids) -> str:
    """Draw a request id, for a call whose caller gave none."""
    return ids.token(16)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Make *moment*, by ``loop_time``, the deadline of all downstream calls in the block."""
    token = deadline.set(moment)
    try:
        yield
    finally:
        deadline.reset(token)
