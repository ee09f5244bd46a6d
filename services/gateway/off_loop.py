"""Work on much text, off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MUCH = 100_000
"""So many characters take a few milliseconds; less is done at once."""

_THREAD = ThreadPoolExecutor(1, "documents")
"""One thread: Python runs one at a time, so that more would only make the loop wait for each of them."""


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What *work* on *size* characters comes to, while the loop goes on with other requests if that is much."""
    if size < MUCH:
        return work(*args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_THREAD, lambda: work(*args, **kwargs))
