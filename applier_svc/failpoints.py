"""Places where a test can make the process die, as if its power were cut, or stand still (engine.md 10)."""

import os
import signal

VARIABLE = "PKGER_FAILPOINT"
"""
``NAME`` or ``NAME:COUNT``: the process dies when it reaches that place, or does so for the COUNTth time. With ``:STOP``
behind it, it stands still there until it gets SIGCONT.
"""

STATUS = 86
"""Exit status of a process that died at one."""

NAMES = (
    "after_begin",
    "after_start",
    "after_intent",
    "after_send",
    "after_record",
    "after_seal",
    "after_turn_back",
    "after_undo_intent",
    "after_undo_send",
    "after_undo_record",
    "before_finish",
    "after_finish",
    "after_claim",
)
"""All places, in the order in which an operation comes by."""

_name, *_more = os.environ.get(VARIABLE, "").split(":")
_stops = "STOP" in _more
_left = int(next((word for word in _more if word != "STOP"), "1"))


def reach(name: str) -> None:
    """Die here, or stand still, when a test wants it."""
    global _left  # noqa: PLW0603 - a process dies once
    if name == _name:
        _left -= 1
        if not _left and _stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif not _left:
            os._exit(STATUS)
