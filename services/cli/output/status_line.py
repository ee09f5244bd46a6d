"""The status line: the last line of a terminal, which shows the progress and is rewritten every second."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self, TextIO

from services.cli.common import caller
from services.cli.output.escapes import one_line
from services.rpc.call import loop_time

SECOND = 1.0
SILENT_SECONDS = 10.0
"""How often a status line is written to a stream that is not a terminal, such as a log."""

HANGING_SECONDS = 5.0
"""After so long without an event, the status line says what the command waits for."""


class StatusLine:
    """
    Shows the progress of a command while it waits.

    At a terminal, one line of standard error is rewritten; elsewhere, a line is written every ten seconds.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self._caller = caller()
        self._stream = stream or self._caller.stderr
        self._is_terminal = self._stream.isatty() and not quiet
        self._quiet = quiet
        self._doing: Callable[[], str] | None = None
        self._waits_for = ""
        self._began = self._last_change = self._printed = 0.0
        self._is_shown = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._began = self._last_change = self._printed = loop_time()
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *exception: object) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self.clear()

    def show(self, doing: Callable[[], str], waits_for: str) -> None:
        """Show the text of *doing* from now on, and *waits_for* once there are no events."""
        self._doing, self._waits_for = doing, waits_for
        self._began = self._last_change = self._printed = loop_time()
        self._draw()

    def wait_for(self, service: str) -> None:
        """Name *service* from now on as what the command waits for."""
        self._waits_for = service

    def hide(self) -> None:
        """Show nothing from now on."""
        self._doing = None
        self.clear()

    @contextmanager
    def printing(self) -> Iterator[None]:
        """Clear the line while the block prints other lines, and count that as an event."""
        self.clear()
        try:
            yield
        finally:
            self._last_change = loop_time()
            self._draw()

    def clear(self) -> None:
        """Erase the line."""
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
            if now - self._printed >= SILENT_SECONDS:
                self._printed = now
                self._stream.write(f"{one_line(self._line(now))}\n")
                self._stream.flush()
            return
        width = self._caller.columns(self._stream) - 1
        self._stream.write(f"\r{one_line(self._line(now))[:width]}\x1b[K")
        self._stream.flush()
        self._is_shown = True

    def _line(self, now: float) -> str:
        assert self._doing is not None  # noqa: S101 - _draw has checked it
        progress = f"{self._doing()}, {now - self._began:.0f} s"
        silent = now - self._last_change
        # A long line is cut at its end, so the cause of a wait comes first.
        waiting = f"waiting for {self._waits_for} since {silent:.0f} s; "
        return progress if silent < HANGING_SECONDS else waiting + progress
