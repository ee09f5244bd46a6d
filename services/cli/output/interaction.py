"""How a command prints, asks for approval and waits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interaction:
    """
    How a command prints, asks for approval and waits.

    Attributes:
        output: "text", "json" or "yaml".
        quiet: Whether only data and errors are printed.
        full: Whether plans are shown uncut.
        yes: Whether plans run without approval.
        wait: Seconds to wait for another operation of the stack to end.
    """

    output: str = "text"
    quiet: bool = False
    full: bool = False
    yes: bool = False
    wait: float = 0
