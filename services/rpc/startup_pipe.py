"""Reports to the parent process that this server listens, or why it cannot."""

import contextlib
import os

VARIABLE = "PKGER_READY_PIPE"
"""The environment variable with the descriptor of a pipe to the parent, if a parent started the server."""

LISTENING = b"listening\n"


def report_listening() -> None:
    """Report that this server listens; a server that answers at its address may be another one."""
    _send(LISTENING)


def report_problem(problem: str) -> None:
    """Report why this server cannot start."""
    _send(problem.encode(errors="replace")[:4000])


def _send(message: bytes) -> None:
    if descriptor := os.environ.pop(VARIABLE, ""):
        # A parent that closed its end no longer needs the report.
        with contextlib.suppress(OSError):
            os.write(int(descriptor), message)
            os.close(int(descriptor))
