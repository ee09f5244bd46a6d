"""Runs the work of a command in a loop of its own, for as long as it may take."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from services.cli.options import common
from services.rpc.call import loop_time, until

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do *work*; its calls end when the time that was typed is over."""
    return asyncio.run(_within(common().timeout, work))


async def _within(seconds: float | None, work: Coroutine[Any, Any, T]) -> T:
    if seconds is None:
        return await work
    with until(loop_time() + seconds):
        return await work
