"""What one operation intended and what came of it."""

from collections.abc import Mapping, Sequence

from applier_svc.outcomes import Direction, Done, Outcome
from services.core.model import Key, Plan, Step, Verb


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

    def created_and_left(self, plan: Plan) -> set[Key]:
        """Keys of the resources that were created and not deleted again."""
        return {
            plan.steps[number].key
            for number, outcome in self.done.items()
            if plan.steps[number].verb is Verb.CREATE
            and isinstance(outcome, Done)
            and not isinstance(self.undone.get(number), Done)
        }
