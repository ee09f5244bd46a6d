"""Places of an operation at which a hook is called: a process that was told so dies there, or stands still."""

import os
import signal
from collections.abc import Callable

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
    "after_rollback",
    "after_undo_intent",
    "after_undo_send",
    "after_undo_record",
    "before_finish",
    "after_finish",
    "after_claim",
)
"""All places, in the order in which an operation comes by."""

Hook = Callable[[str], None]
"""Gets the name of the place that an operation has reached."""


def deadly(words: str) -> Hook:
    """
    Make a hook by which the process dies, or stands still, once.

    Args:
        words: What ``PKGER_FAILPOINT`` says; empty: it goes on everywhere.
    """
    place, *more = words.split(":")
    left = int(next((word for word in more if word != "STOP"), "1"))

    def hook(name: str) -> None:
        nonlocal left
        if name != place:
            return
        left -= 1
        if left == 0 and "STOP" in more:
            signal.raise_signal(signal.SIGSTOP)
        elif left == 0:
            os._exit(STATUS)

    return hook


_hook = deadly("")


def install(hook: Hook) -> None:
    """Make *hook* the one that is called from now on."""
    global _hook  # noqa: PLW0603 - one for each process
    _hook = hook


def reach(name: str) -> None:
    """Call the hook: an operation is at the place *name*."""
    _hook(name)
