"""A search: runs of one seed after another, and their findings."""

import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.databases import copy_databases
from tests.simulation.drawing import drawn
from tests.simulation.features import FEATURES
from tests.simulation.running import Result, run


@dataclass(slots=True)
class Findings:
    """
    The findings of a search.

    Attributes:
        first: The first run that showed each kind of violation.
        seeds: How many runs showed it.
        counts: How often each situation was reached, over all runs.
        runs: How many runs there were.
        points: Their scheduling points.
        operations: Their operations.
        virtual: Their virtual seconds.
        began: Start of the search, by the monotonic clock of the machine.
    """

    first: dict[str, Result] = field(default_factory=dict)
    seeds: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    runs: int = 0
    points: int = 0
    operations: int = 0
    virtual: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def add(self, result: Result) -> list[str]:
        """Add a run; returns the kinds of violation that it is the first to show."""
        new = [kind for kind in result.violations if kind not in self.first]
        self.first |= dict.fromkeys(new, result)
        self.seeds.update(result.violations.keys())
        self.counts.update(result.counts)
        self.runs += 1
        self.points += result.points
        self.operations += result.operations
        self.virtual += result.seconds
        return new

    def figures(self) -> str:
        """The size and the speed of the search as text."""
        seconds = max(time.monotonic() - self.began, 0.001)
        return (
            f"{self.runs:,} runs, {self.points:,} scheduling points, {self.operations:,} operations in {seconds:.1f} s:"
            f" {self.runs / seconds * 60:,.0f} runs and {self.points / seconds * 60:,.0f} points a minute;"
            f" virtual time ran {self.virtual / seconds:,.0f} times as fast"
        )


@contextmanager
def template() -> Iterator[Path]:
    """A folder with empty databases, for all runs of a process."""
    with tempfile.TemporaryDirectory() as folder:
        copy_databases(Path(folder), "stack", "platform")
        yield Path(folder)


def results(seeds: Iterable[int], features: Collection[str], folder: Path, *, known: bool = False) -> Iterator[Result]:
    """Run the scenario of each seed; *features* and *known* as of ``drawn``."""
    for seed in seeds:
        yield run(drawn(seed, features, known=known), folder)


def features_named(words: str) -> tuple[frozenset[str], bool]:
    """
    The features that a list of words names, and whether combinations that are known to fail are drawn, too.

    Args:
        words: Names separated by commas; "all": all features, with known failures; empty: all, without known failures.

    Raises:
        ValueError: A word is not the name of a feature.
    """
    if not words or words == "all":
        return frozenset(FEATURES), words == "all"
    named = [word.strip() for word in words.split(",")]
    for word in named:
        if word not in FEATURES:
            raise ValueError(f"{word!r} is no feature; they are all, {', '.join(FEATURES)}")
    return frozenset(named), True
