"""Runs the work of a command in an event loop, with the deadline of ``--timeout``."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from services.cli.common import common
from services.cli.errors import CommandFailed
from services.core.errors import Reason
from services.rpc.call import loop_time, until

T = TypeVar("T")

_EARLIER_SECONDS = 0.5


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run *work*; its calls end at the deadline."""
    return asyncio.run(_within(common().timeout, work))


async def _within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    if seconds is None:
        return await work
    end = loop_time() + seconds
    with until(end):
        try:
            return await work
        except CommandFailed as error:
            # A service that calls another one has a slightly earlier deadline.
            if error.reason != Reason.SERVICE_UNAVAILABLE.value or loop_time() < end - _EARLIER_SECONDS:
                raise
            timed_out = CommandFailed(f"--timeout {seconds:g} is over: {error.message}", error.code)
            timed_out.reason, timed_out.metadata = error.reason, error.metadata
            raise timed_out from error
