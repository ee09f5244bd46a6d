"""What a server tells the process that started it: that it listens, or why it cannot."""

import contextlib
import os

VARIABLE = "PKGER_READY_PIPE"
"""Descriptor of a pipe to the parent, in the environment of a server that was started by one."""

LISTENING = b"listening\n"


def report_listening() -> None:
    """Say that this server listens: what others find at its address may be somebody else's."""
    _send(LISTENING)


def report_problem(problem: str) -> None:
    """Say why this server cannot start."""
    _send(problem.encode(errors="replace")[:4000])


def _send(message: bytes) -> None:
    if descriptor := os.environ.pop(VARIABLE, ""):
        # A parent that does not listen any more knows enough.
        with contextlib.suppress(OSError):
            os.write(int(descriptor), message)
            os.close(int(descriptor))
