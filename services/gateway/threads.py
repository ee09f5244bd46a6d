"""Runs work on large texts in a thread, off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

OFF_LOOP_FROM = 100_000
"""Characters from which on work runs in the thread: they take a few milliseconds."""

_THREAD = ThreadPoolExecutor(1, "documents")
"""One thread: Python runs one thread at a time, so that the event loop would wait for each further one."""


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of *work* on *size* characters; work on large texts runs in the thread, and the loop goes on."""
    if size < OFF_LOOP_FROM:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREAD, lambda: work(*args, **kwargs))
