"""The baselines of the resources of stacks, as stored."""

from collections.abc import Collection, Mapping
from typing import Protocol

from services.core.model import Baseline, Key


class BaselinesReading(Protocol):
    """Read access to baselines."""

    def lacking(self, stack: str, keys: Collection[Key]) -> list[Key]:
        """Return the *keys* without a baseline, in any order; all *keys* belong to entries of the stack."""

    def of(self, stack: str, keys: Collection[Key]) -> list[Baseline]:
        """Read the stored baselines of a stack for *keys*, in any order."""

    def page(self, stack: str, after: Key, most: int) -> list[Baseline]:
        """Read at most *most* baselines of a stack after *after*, sorted by kind and name."""


class Baselines(BaselinesReading, Protocol):
    """Read and write access to baselines; a baseline is removed with its entry."""

    def put(self, stack: str, baselines: Collection[Baseline]) -> None:
        """
        Write baselines of existing entries; each replaces the baseline that its entry has.

        A baseline without a spec changes only the missing labels, and only of an entry that has a baseline.
        """

    def rebind(self, stack: str, ids: Mapping[str, str]) -> None:
        """Replace resource ids in the references of the baselines of a stack; *ids* maps old ids to new ones."""
