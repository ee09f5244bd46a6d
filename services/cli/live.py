"""The line at the end of a terminal that tells what is going on, written anew every second."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from services.cli.escapes import one_line
from services.rpc.call import loop_time

SECOND = 1.0
SILENT_SECONDS = 10.0
"""How often a sign of life goes to what is no terminal, such as a log."""

HANGING_SECONDS = 5.0
"""After so long without news, it is said for whom the command waits."""


class Live:
    """
    A sign of life while something takes its time.

    At a terminal it is one line of standard error that is written anew; elsewhere a line every ten seconds.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty() and not quiet
        self._quiet = quiet
        self._doing: Callable[[], str] | None = None
        self._waits_for = ""
        self._began = self._news = self._told = 0.0
        self._is_shown = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._began = self._news = self._told = loop_time()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.clear()

    def show(self, doing: Callable[[], str], waits_for: str) -> None:
        """Tell from now on what *doing* says, and for whom the command waits when there is no news."""
        self._doing, self._waits_for = doing, waits_for
        self._began = self._news = self._told = loop_time()
        self._draw()

    def wait_for(self, whom: str) -> None:
        """Say from now on that the command waits for *whom* when there is no news."""
        self._waits_for = whom

    def hide(self) -> None:
        """Nothing is going on."""
        self._doing = None
        self.clear()

    @contextmanager
    def printing(self) -> Iterator[None]:
        """There is news, which other lines tell: make room for them."""
        self.clear()
        try:
            yield
        finally:
            self._news = loop_time()
            self._draw()

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_shown = False

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SECOND)
            self._draw()

    def _draw(self) -> None:
        if self._doing is None or self._quiet:
            return
        now = loop_time()
        if not self._is_terminal:
            if now - self._told >= SILENT_SECONDS:
                self._told = now
                self._stream.write(f"{one_line(self._line(now))}\n")
                self._stream.flush()
            return
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r{one_line(self._line(now))[:width]}\x1b[K")
        self._stream.flush()
        self._is_shown = True

    def _line(self, now: float) -> str:
        assert self._doing is not None  # noqa: S101 - looked at before
        told = f"{self._doing()}, {now - self._began:.0f} s"
        silent = now - self._news
        # What does not fit into the line is cut at its end.
        return told if silent < HANGING_SECONDS else f"waiting for {self._waits_for} since {silent:.0f} s; {told}"
