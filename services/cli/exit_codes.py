"""Exit statuses of commands."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit statuses; 8 and 9 are reserved."""

    DONE = 0
    """Done, or nothing to do."""
    ERROR = 1
    """Any other error."""
    USAGE = 2
    """The command is mistyped; with ``--detailed-exitcode``, that is ``ERROR``."""
    CHANGES = 2
    """With ``--detailed-exitcode``: the plan has changes, or there is drift."""
    STALE = 3
    """The plan is stale: make a new one."""
    LOCKED = 4
    """Another operation holds the lease of the stack: retry later."""
    ROLLED_BACK = 5
    """An operation failed or was cancelled, and was rolled back."""
    BLOCKED = 6
    """An operation is blocked: it needs a decision."""
    CONFLICT = 7
    """Packages conflict: no versions of them go together as requested."""
    UNAUTHENTICATED = 10
    """The services need a token, and the command has none that they accept."""
