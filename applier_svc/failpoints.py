"""Failpoints: named places in the run of an operation at which a test kills or stops the process."""

import os
import signal
from collections.abc import Callable

VARIABLE = "PKGER_FAILPOINT"
"""
``NAME`` or ``NAME:COUNT``: the process dies when it reaches that failpoint, or reaches it for the COUNTth time. With
``:STOP`` appended, it is stopped there until SIGCONT.
"""

STATUS = 86
"""Exit status of a process that died at a failpoint."""

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
"""All failpoints of an operation with a plan, in the order in which it reaches them."""

ACTION_NAMES = (
    "after_reserve",
    "after_phase_intent",
    "after_emit",
    "after_phase_effect",
    "after_phase_record",
    "after_child_begin",
    "after_child_end",
    "before_artifacts",
    "before_defer",
    "after_defer",
)
"""The other failpoints of an action set, in the order in which it reaches them."""

Hook = Callable[[str], None]
"""Receives the name of the failpoint that an operation reached."""


def deadly(words: str) -> Hook:
    """
    Make a hook that kills or stops the process once.

    Args:
        words: Value of ``PKGER_FAILPOINT``; empty: the process is neither killed nor stopped.
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
    """Replace the hook of the process by *hook*."""
    global _hook  # noqa: PLW0603 - one for each process
    _hook = hook


def reach(name: str) -> None:
    """Call the hook: an operation has reached the failpoint *name*."""
    _hook(name)
