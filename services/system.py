"""The inputs of a process from its machine: the time of day, random values, and the name of the process."""

import os
import random
import resource
import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

Clock = Callable[[], int]
"""
Returns the time of day, in microseconds since 1970, UTC. It may be set forward and back; durations need the clock of
the event loop.
"""


class Ids(Protocol):
    """Draws random values: unique ids, and jitter."""

    def token(self, size: int) -> str:
        """Draw *size* bytes, as twice as many hexadecimal digits."""

    def salt(self, size: int) -> bytes:
        """Draw *size* bytes that nobody can guess."""

    def fraction(self) -> float:
        """Draw a number from 0 to 1, 1 excluded, for jitter."""


class MachineIds:
    """Random values from the operating system."""

    def token(self, size: int) -> str:
        """Draw *size* bytes, as twice as many hexadecimal digits."""
        return secrets.token_hex(size)

    def salt(self, size: int) -> bytes:
        """Draw *size* bytes that nobody can guess."""
        return secrets.token_bytes(size)

    def fraction(self) -> float:
        """Draw a number from 0 to 1, 1 excluded, for jitter."""
        return random.random()  # noqa: S311 - nothing secret depends on it


def machine_clock() -> int:
    """Read the clock of the machine."""
    return time.time_ns() // 1000


def leave_no_core() -> None:
    """
    Keep this process, and those that it starts, from leaving a core dump, which would hold the secrets in its memory.

    A limit of 0 does not hold where the kernel pipes dumps to a program (core(5)), such as systemd-coredump. A limit of
    1 byte holds there, too, and is too small for a file. The hard limit stays, so that ``prlimit`` can allow a dump.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0 if hard == 0 else 1, hard))


def raise_open_files() -> None:
    """
    Raise the limit of open files of this process to what the system allows it.

    Each connection is a file. The usual soft limit of 1,024 is for programs that call ``select``; idle connections of
    one client would reach it, and nobody else could connect.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS may report no hard limit, and refuses that as a soft one.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def prepare_process() -> None:
    """Prepare this process for serving: it leaves no core, its files are for its user alone, and it may open many."""
    leave_no_core()
    os.umask(0o077)
    raise_open_files()


def process_name() -> str:
    """Name of this process, unique among all machines: host name and process id."""
    return f"{socket.gethostname()}/{os.getpid()}"
