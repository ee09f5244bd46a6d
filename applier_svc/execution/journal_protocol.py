"""The journal as the execution of a plan needs it: intents before effects, outcomes after them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from services.engine.claims import Refusal
from services.engine.operation import Direction
from services.engine.outcome import Outcome
from services.engine.progress import Progress
from services.engine.step_state import StepRecord


class OutcomeRefused(Exception):
    """
    The platform reports a resource as newly created, but another stack already has it. That is a fault of the platform,
    so the outcome of the creation is unknown. A call of the journal had recorded it as done, to be stored later;
    ``outcomes`` are to be recorded instead.
    """

    def __init__(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        super().__init__()
        self.outcomes = outcomes
        self.direction = direction


class JournalWriter(Protocol):
    """
    The journal of one operation; every call may raise ``OutcomeRefused``.

    Attributes:
        progress: The fold of the journal.
    """

    progress: Progress

    async def intend(
        self, steps: Sequence[int], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> list[Refusal]:
        """
        Write the intents of *steps*; nothing is sent before this returns.

        Returns:
            The claims that are refused because of another stack; if there are any, nothing is written.
        """

    async def wait(self, refusals: Sequence[Refusal], direction: Direction) -> None:
        """Publish which steps wait, and for which operation or stack."""

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Record that steps were sent and certainly had no effect."""

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction, may_wait: bool = False) -> None:
        """Record the outcomes of steps, and publish them; if they *may_wait*, together with the next write."""

    async def flush(self) -> None:
        """Store what waits for the next write."""

    async def decide(self, records: Sequence[StepRecord], direction: Direction) -> None:
        """Record the decisions for steps, or for their inverses, and publish them."""

    async def start_stage(self, index: int, name: str, step_count: int) -> None:
        """Publish that a stage is about to run."""

    async def seal(self) -> None:
        """Pass the seal: no step is undone from now on."""

    async def roll_back(self, cause: str, step_count: int) -> None:
        """Record that the operation rolls back from now on, and publish it."""
