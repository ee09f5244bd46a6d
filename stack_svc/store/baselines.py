"""What platforms held of the resources of stacks after their last write, as the store keeps it."""

from collections.abc import Collection, Mapping
from typing import Protocol

from services.core.model import Baseline, Key


class BaselinesReading(Protocol):
    """Baselines, read."""

    def lacking(self, stack: str, keys: Collection[Key]) -> list[Key]:
        """Tell which of *keys*, of entries of a stack, have no baseline, in any order."""

    def of(self, stack: str, keys: Collection[Key]) -> list[Baseline]:
        """Read the baselines of a stack for *keys*, as far as there are any, in any order."""

    def page(self, stack: str, after: Key, most: int) -> list[Baseline]:
        """Read at most so many baselines of a stack behind *after*, sorted by kind and name."""


class Baselines(BaselinesReading, Protocol):
    """Baselines, read and written; they go with their entries."""

    def put(self, stack: str, baselines: Collection[Baseline]) -> None:
        """
        Write baselines of entries that exist, in the place of those that they have.

        One without a spec says only which labels are missing, and is left out where there is none to change.
        """

    def rebind(self, stack: str, ids: Mapping[str, str]) -> None:
        """Let references of the baselines of a stack to some ids be to others."""
