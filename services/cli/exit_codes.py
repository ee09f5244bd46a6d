"""With which status a command ends."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses of the command; 7 to 10 are reserved."""

    DONE = 0
    """Done, or nothing to do."""
    ERROR = 1
    """Anything else that is wrong."""
    USAGE = 2
    """The command is mistyped; with ``--detailed-exitcode`` that is ``ERROR``."""
    CHANGES = 2
    """With ``--detailed-exitcode``: there is something to do."""
    STALE = 3
    """What a plan was made from has changed: make a new one."""
    LOCKED = 4
    """Another operation is at work: try again later."""
    ROLLED_BACK = 5
    """An operation failed, or was cancelled, and what it did is undone."""
    BLOCKED = 6
    """An operation waits for somebody's decision."""
