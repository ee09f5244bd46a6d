"""The terminal of the user, if there is one: for questions, even if standard input is something else."""

import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from services.cli.common import caller
from services.cli.output.escapes import escaped
from services.cli.process.interrupts import Interrupts

_LINE_BYTES = 4096
"""The longest line that a terminal returns."""


class Terminal:
    """Shows questions and reads answers."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing

    @classmethod
    @contextmanager
    def opened(cls) -> Iterator[Self | None]:
        """The controlling terminal, or standard input if that is a terminal; else None."""
        if (descriptor := controlling_terminal()) is None:
            streams = caller()
            yield cls(streams.stdin, streams.stderr.fileno()) if os.isatty(streams.stdin) else None
            return
        try:
            yield cls(descriptor, descriptor)
        finally:
            os.close(descriptor)

    async def confirm(self, question: str, interrupts: Interrupts) -> bool:
        """
        Ask a question; only ``y`` and ``yes`` confirm.

        Raises:
            CommandFailed: The user pressed Ctrl-C.
        """
        return (await self.ask(f"{question} [y/N] ", interrupts)).strip().lower() in {"y", "yes"}

    async def ask(self, question: str, interrupts: Interrupts, hidden: bool = False) -> str:
        """
        The line that is typed after *question*; empty at the end of input.

        Args:
            question: The text to show.
            interrupts: An interrupt ends the question.
            hidden: Whether the answer is not shown.

        Raises:
            CommandFailed: The user pressed Ctrl-C.
        """
        with self._without_echo() if hidden else _nothing():
            os.write(self._writing, escaped(question).encode())
            await interrupts.readable(self._reading)
            typed = os.read(self._reading, _LINE_BYTES)
        if hidden or not typed:
            os.write(self._writing, b"\n")
        return typed.decode(errors="surrogateescape").rstrip("\r\n")

    @contextmanager
    def _without_echo(self) -> Iterator[None]:
        before = termios.tcgetattr(self._reading)
        silent = [*before]
        silent[3] &= ~termios.ECHO
        # TCSAFLUSH discards input that was typed before the question.
        termios.tcsetattr(self._reading, termios.TCSAFLUSH, silent)
        try:
            yield
        finally:
            termios.tcsetattr(self._reading, termios.TCSADRAIN, before)


def controlling_terminal() -> int | None:
    """A new descriptor of the controlling terminal of the caller; None if there is none."""
    if (path := caller().terminal) is None:
        return None
    try:
        return os.open(path, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None


@contextmanager
def _nothing() -> Iterator[None]:
    yield
