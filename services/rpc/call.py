"""The context of a call that passes from service to service, request id and deadline, and the limits of a call."""

import asyncio
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from services.access.authentication import NOBODY, Caller
from services.system import Ids

MESSAGE_LIMIT = 64 * 1024 * 1024
"""Largest message in either direction, in bytes (docs/clients.md, "Limits")."""

LONGEST_CALL_SECONDS = 600.0
"""
The deadline of a call without one, unless its method is in ``ENDLESS``: a client that stops to read would keep its
response in memory for ever.
"""

ENDLESS = frozenset(
    {
        "/grpc.health.v1.Health/Watch",
        "/pkger.stack.v1.StackService/WatchStack",
        *(
            f"/pkger.applier.v1.ApplierService/{name}"
            for name in (
                "Apply",
                "ApplyPlan",
                "ImportResources",
                "RecoverOperation",
                "RollbackStack",
                "UninstallStack",
                "WatchOperation",
            )
        ),
    }
)
"""Methods that last as long as an operation, or as somebody watches; a test compares them with the contracts."""

REQUEST_ID_KEY = "x-request-id"
"""Metadata key of the request id, both ways."""

_REQUEST_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)
"""The request ids of callers that are used, over HTTP as well."""

MARGIN_SECONDS = 1.0
MARGIN_SHARE = 0.1
"""
The margin that a service keeps of its caller's deadline in a downstream call: this share, at most these seconds.

The inner deadline expires first, so the service has time to report which service did not respond.
"""

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""Id of the current call; empty outside of calls."""

caller: ContextVar[Caller] = ContextVar("caller", default=NOBODY)
"""The caller of the current call, as the door of its listener knows it; ``NOBODY`` outside of served calls."""

deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)
"""The deadline of the current call, by ``loop_time``."""


def loop_time() -> float:
    """Seconds on the monotonic clock of the running loop, by which all deadlines and durations are."""
    return asyncio.get_running_loop().time()


def time_left(limit: float | None) -> float | None:
    """
    The timeout of a downstream call: the time until the deadline of the current call, less a margin.

    Args:
        limit: Most seconds for the downstream call; None for no limit of its own.

    Returns:
        Seconds, never negative; None without a deadline and a *limit*.
    """
    left = max(deadline.get() - loop_time(), 0.0)
    left -= min(left * MARGIN_SHARE, MARGIN_SECONDS)
    left = min(left, math.inf if limit is None else limit)
    return None if math.isinf(left) else max(left, 0.0)


def new_request_id(ids: Ids) -> str:
    """Draw a request id, for a call without one."""
    return ids.token(16)


def usable_request_id(sent: str | bytes | None, ids: Ids) -> str:
    """
    The request id of a served call: the one that its caller *sent*, or a new one.

    A long id, or one with other characters, is replaced: every service that works for the call writes it into each line
    of its log, and sends it on.
    """
    return sent if isinstance(sent, str) and _REQUEST_ID.fullmatch(sent) else new_request_id(ids)


@contextmanager
def until(moment: float) -> Iterator[None]:
    """Make *moment*, by ``loop_time``, the deadline of all downstream calls in the block."""
    token = deadline.set(moment)
    try:
        yield
    finally:
        deadline.reset(token)
