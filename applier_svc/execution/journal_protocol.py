"""Where an execution notes what it is about to do, and what came of it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from services.engine.claims import Refusal
from services.engine.operation import Direction
from services.engine.outcome import Outcome
from services.engine.progress import Progress
from services.engine.step_life import StepRecord


class Journal(Protocol):
    """
    The journal of one operation; one call stands for one transaction.

    Attributes:
        progress: What is written.
    """

    progress: Progress

    async def intend(
        self, steps: Sequence[int], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> list[Refusal]:
        """
        Note which steps are about to be sent; nothing is sent before this returns.

        Returns:
            Which of them need what another stack has; if there are any, nothing is noted.
        """

    async def wait(self, refusals: Sequence[Refusal], direction: Direction) -> None:
        """Publish which steps wait, and for whom."""

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Note that steps were sent and certainly had no effect."""

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        """Note how steps ended, and publish it."""

    async def decide(self, records: Sequence[StepRecord], direction: Direction) -> None:
        """Note what somebody decided for steps, or for their inverses, and publish it."""

    async def start_stage(self, index: int, name: str, step_count: int) -> None:
        """Publish that a stage is about to run."""

    async def seal(self) -> None:
        """Pass the point of no return."""

    async def roll_back(self, cause: str, step_count: int) -> None:
        """From now on what was done is taken back."""
