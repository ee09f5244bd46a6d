"""Pauses the cyclic garbage collector while a package is parsed or planned."""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from services.rpc.error_frames import forget_variables

_MOST_YOUNG = 200_000
"""The number of new objects beyond which a collection runs although calls overlap without a gap."""


class _Pause:
    """Counts the running calls during which no collection starts."""

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
"""One for the process, as the collector is."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """
    Run no collection of cyclic garbage inside the context.

    Parsing and planning make a million values and hardly a cycle; collections took a twentieth of their time. An error
    makes a cycle of all of them, so it keeps none.
    """
    _PAUSE.begin()
    try:
        yield
    except BaseException as error:
        forget_variables(error)
        raise
    finally:
        _PAUSE.end()
