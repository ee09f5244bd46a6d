"""The bounds of a resolution."""

from collections.abc import Callable
from dataclasses import dataclass

from planner_svc.resolution.search import Budget

Seconds = float


def _no_time() -> Seconds:
    return 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """
    How much a resolution may take.

    Attributes:
        steps: The number of steps of the search.
        seconds: The time of the resolution.
        explanation_steps: The number of steps of the search for why there is no solution, and what would help.
        explanation_seconds: The time of that.
        held_back_seconds: The time for why packages are held back by changes that are known.
        clock: A clock of any start. By default it stands still, so only steps are bounded.
    """

    steps: int = 1_000_000
    seconds: Seconds = 10
    explanation_steps: int = 1_000_000
    explanation_seconds: Seconds = 5
    held_back_seconds: Seconds = 1
    clock: Callable[[], Seconds] = _no_time

    def budget(self) -> Budget:
        """The budget of a resolution that starts now."""
        return self._budget(self.steps, self.seconds)

    def explanation_budget(self) -> Budget:
        """The budget of an explanation that starts now."""
        return self._budget(self.explanation_steps, self.explanation_seconds)

    def held_back_budget(self) -> Budget:
        """The budget of what holds packages back, which starts now."""
        return self._budget(self.explanation_steps, self.held_back_seconds)

    def _budget(self, steps: int, seconds: Seconds) -> Budget:
        end = self.clock() + seconds
        return Budget(steps, lambda: self.clock() >= end)
