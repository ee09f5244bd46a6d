"""What a command gets from its caller: standard streams, environment, terminal and signals."""

import os
import signal
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import IO, Self, TextIO

_COLUMNS = 80
"""Columns of a terminal whose size is unknown."""


@dataclass(frozen=True, slots=True)
class Caller:
    """
    The caller of a command: a shell, or a program that calls the command in its own process.

    Attributes:
        stdin: Descriptor of standard input.
        stdout: Standard output.
        stderr: Standard error.
        environ: The environment.
        terminal: Path of the controlling terminal, which may be absent; None: there is none.
        signals: Signals that interrupt the command. Only the main thread of a process can handle signals.
    """

    stdin: int
    stdout: TextIO
    stderr: TextIO
    environ: Mapping[str, str]
    terminal: str | None = None
    signals: Collection[signal.Signals] = ()

    @classmethod
    def of_process(cls) -> Self:
        """The caller of this process."""
        return cls(0, sys.stdout, sys.stderr, os.environ, "/dev/tty", (signal.SIGINT, signal.SIGTERM))

    def columns(self, stream: IO[str]) -> int:
        """The width of the terminal that *stream* writes to; ``COLUMNS`` of the environment overrides it."""
        if (columns := self.environ.get("COLUMNS", "")).isdecimal() and int(columns):
            return int(columns)
        try:
            return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
        except (OSError, ValueError):
            return _COLUMNS
