"""Keeps the collector of cyclic garbage out of the way while packages are parsed."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOST_YOUNG = 200_000
"""From so many new objects on, a collection no longer waits for calls that always overlap."""


class _Pause:
    """How many calls run that no collection is to disturb."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._was_enabled = False

    def begin(self) -> None:
        with self._lock:
            if not self._calls:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._calls += 1

    def end(self) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls and self._was_enabled:
                gc.enable()
            elif self._was_enabled and gc.get_count()[0] > _MOST_YOUNG:
                gc.collect(0)


_PAUSE = _Pause()
"""Of the process, as the collector is one of the process."""


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Collect no cyclic garbage meanwhile.

    To parse makes a million values and hardly a cycle: walks over those that live took a twentieth of the time.
    """
    _PAUSE.begin()
    try:
        yield
    finally:
        _PAUSE.end()
