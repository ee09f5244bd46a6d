"""
Virtual time for asynchronous tests: no wait takes real time, and the same test takes the same course each time.

A folder whose ``conftest.py`` imports ``pytest_asyncio_loop_factories`` runs its tests on virtual time, except for
those that are marked ``real_time``. Services on virtual time are connected in memory (``tests/transport.py``): they may
use databases and threads, but neither sockets nor processes.
"""

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any

import pytest

CALLBACKS_SECONDS = 0.000_01
"""Virtual duration of the callbacks between two looks at the timers, so that times of different events differ."""

LONGEST_SECONDS = 100_000.0
"""Virtual time after which a test waits for something that does not happen; loops of services have timers for ever."""

EPOCH = 1_800_000_000_000_000
"""The time of day at which a loop begins, in microseconds since 1970."""


class Stalled(Exception):
    """The test waits for something that can no longer happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that advances its time to the next timer when nothing can run. Functions for threads run in callbacks."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self._wait))

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def clock(self) -> int:
        """The time of day, a ``Clock`` (services/system.py)."""
        return EPOCH + round(self._now * 1_000_000)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run *func* in one callback."""
        future = self.create_future()
        self.call_soon(_work, future, func, args)
        return future

    def _wait(self, seconds: float | None) -> None:
        """Advance the time by *seconds*; None: there is no timer."""
        self._now += CALLBACKS_SECONDS if seconds == 0.0 else seconds or 0.0
        if seconds is None or self._now > LONGEST_SECONDS:
            self._now = 0.0
            raise Stalled(f"nothing happens within {LONGEST_SECONDS:,.0f} s of virtual time")


class _Selector(selectors.SelectSelector):
    """Advances the time in place of waiting; the loop uses its own pipe only to be woken by threads and signals."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        super().__init__()
        self._wait = wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return no events: there are no sockets."""
        self._wait(timeout)
        return []


def _work(future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of a test."""
    if item.get_closest_marker("real_time"):
        return {"real_time": asyncio.new_event_loop}
    return {"virtual_time": VirtualLoop}
