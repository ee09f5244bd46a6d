"""What a process takes from the machine that it runs on: the time of day, chance, and its name there."""

import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from typing import Protocol

Clock = Callable[[], int]
"""Tells the time of day, in microseconds since 1970, UTC. It may be set forward and back; durations need the loop's."""


class Ids(Protocol):
    """What is drawn at random: ids that nobody else has, and jitter."""

    def token(self, size: int) -> str:
        """Draw *size* bytes, as twice as many hexadecimal digits."""

    def salt(self, size: int) -> bytes:
        """Draw *size* bytes that nobody can guess."""

    def fraction(self) -> float:
        """Draw a number from 0 to 1, 1 excluded, for jitter."""


class MachineIds:
    """The operating system's source of chance."""

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


def process_name() -> str:
    """Name of this process among those of all machines: host name and process id."""
    return f"{socket.gethostname()}/{os.getpid()}"
