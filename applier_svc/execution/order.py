"""How effects are sent: which way, until when, for how long."""

from collections.abc import Callable
from dataclasses import dataclass

from services.engine.operation import Direction


def never() -> bool:
    """
    An undo is not to be stopped: the server finishes it on its own time (docs/reference/engine.md, "Steps and stages").
    """
    return False


@dataclass(frozen=True, slots=True)
class Order:
    """
    How effects are sent.

    Attributes:
        direction: Whether they are steps of the plan or inverses of such.
        is_stopped: Asked before anything is sent for the first time; when true, it is skipped.
        until_resolved: Whether to ask a driver that does not answer for as long as the timeouts allow.
    """

    direction: Direction
    is_stopped: Callable[[], bool] = never
    until_resolved: bool = False

    @property
    def place(self) -> str:
        """What the failpoints of the direction are called."""
        return "undo_" if self.direction is Direction.UNDO else ""
