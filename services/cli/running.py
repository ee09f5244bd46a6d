"""Runs the work of a command in a loop of its own, for as long as it may take."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from services.cli.errors import Failed
from services.cli.options import common
from services.core.errors import Reason
from services.rpc.call import loop_time, until

T = TypeVar("T")

_EARLIER_SECONDS = 0.5


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do *work*; its calls end when the time that was typed is over."""
    return asyncio.run(_within(common().timeout, work))


async def _within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    if seconds is None:
        return await work
    end = loop_time() + seconds
    with until(end):
        try:
            return await work
        except Failed as error:
            # A service that waits for another one is told a little earlier.
            if error.reason != Reason.SERVICE_UNAVAILABLE.value or loop_time() < end - _EARLIER_SECONDS:
                raise
            told = Failed(f"--timeout {seconds:g} is over: {error.message}", error.code)
            told.reason, told.metadata = error.reason, error.metadata
            raise told from error
