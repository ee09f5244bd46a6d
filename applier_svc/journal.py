"""What one operation intended and what came of it."""

from collections.abc import Mapping, Sequence

from applier_svc.outcomes import Direction, Done, Outcome
from services.core.model import Step


class MemoryJournal:
    """
    A journal that lasts as long as its operation: what the undo goes by.

    A durable one (engine.md 8) takes its place where recovery after a crash is wanted; nothing else has to change.

    Attributes:
        done: How each step ended, by its number.
        undone: How the undo of each step ended, by its number.
        open: Numbers of the steps with an intent and no outcome yet.
    """

    def __init__(self) -> None:
        self.done: dict[int, Outcome] = {}
        self.undone: dict[int, Outcome] = {}
        self.open: set[int] = set()

    async def intend(self, steps: Sequence[Step], direction: Direction) -> None:
        """Note that *steps* are about to be sent."""
        self.open |= {step.number for step in steps}

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        """Note how steps ended."""
        ended = self.done if direction is Direction.DO else self.undone
        ended |= outcomes
        self.open -= outcomes.keys()

    def took_effect(self, step: Step) -> bool:
        """Whether *step* was certainly carried out."""
        return isinstance(self.done.get(step.number), Done)

    def was_undone(self, step: Step) -> bool:
        """Whether *step* was certainly taken back."""
        return isinstance(self.undone.get(step.number), Done)
