"""How effects are sent: direction, stop condition and persistence."""

from collections.abc import Callable
from dataclasses import dataclass

from services.engine.operation import Direction


def never() -> bool:
    """
    An undo cannot be stopped: it runs to its end without its caller (docs/reference/engine.md, "Steps and stages").
    """
    return False


@dataclass(frozen=True, slots=True)
class SendMode:
    """
    How effects are sent.

    Attributes:
        direction: Whether the effects are steps of the plan or inverses of steps.
        is_stopped: Asked before an effect is sent for the first time; if true, the effect is skipped.
        until_resolved: Whether to retry for ``Timeouts.resolution`` if the driver does not answer.
    """

    direction: Direction
    is_stopped: Callable[[], bool] = never
    until_resolved: bool = False

    @property
    def place(self) -> str:
        """Prefix of the failpoints of the direction."""
        return "undo_" if self.direction is Direction.UNDO else ""
