"""
The seam to the search: what a search is asked, and what it answers.

Packages have values: ``ABSENT``, and one for each version. A set of values is the bits of an integer, value 3 being bit
3; a negative integer has all values but some.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

ABSENT = 0
"""The value of a package that is not there. A need that allows it is met without the package."""

NEVER = 1
"""A value that no package has: it keeps sets of values from being empty, which a search may not accept."""

FIRST = 2
"""The lowest value that is a version."""

Values = int
Assignment = dict[str, int]
"""The values of packages; those without one are absent."""


class SearchLimit(Exception):
    """A bound was reached, so it is unknown whether there is a solution."""


class SearchFault(Exception):
    """A search gave an answer that is none."""


class Budget:
    """
    What a search may still use.

    Attributes:
        steps: The number of steps that are left.
    """

    def __init__(self, steps: int, is_over: Callable[[], bool]) -> None:
        """Allow a number of *steps*, until *is_over* says that the time is up."""
        self.steps = steps
        self._is_over = is_over

    def use(self, steps: int) -> None:
        """
        Take *steps* off.

        Raises:
            SearchLimit: There are not as many, or the time is up.
        """
        self.steps -= steps
        self.check()

    def check(self) -> None:
        """
        Look at both bounds.

        Raises:
            SearchLimit: One of them is reached.
        """
        if self.is_used_up():
            raise SearchLimit

    def is_used_up(self) -> bool:
        """Whether one of the bounds is reached."""
        return self.steps <= 0 or self._is_over()


class Question(Protocol):
    """Packages with the values that they can have, and what these need."""

    @property
    def roots(self) -> Mapping[str, Values]:
        """The packages that have to have one of these values."""

    def domain(self, package: str) -> Values:
        """The values that *package* can have; whether it can be absent depends on what needs it alone."""

    def needs(self, package: str, value: int) -> Mapping[str, Values]:
        """The values of other packages that go with *value*; equal for each call."""

    def preferred(self, package: str, values: Values) -> int:
        """The one of *values*, of which there is at least one, to try first. It decides about speed only."""


@dataclass(frozen=True, slots=True)
class Failure:
    """
    Why there is no solution.

    Attributes:
        limits: The packages whose limits matter: there is no solution without the others' either.
        packages: The packages whose domains, limits or needs matter.
        needs: The needs that matter: a package, values of it, and the package that these need.
    """

    limits: frozenset[str]
    packages: frozenset[str]
    needs: frozenset[tuple[str, Values, str]] = field(default_factory=frozenset)


class Search(Protocol):
    """Finds a solution if there is one."""

    def __call__(self, question: Question, limits: Mapping[str, Values], budget: Budget) -> Assignment | Failure:
        """
        Look for a value for each root, and for all that these need.

        Args:
            question: What is possible.
            limits: Of a package, the only values that it can have where it is not absent.
            budget: The bounds of the search.

        Returns:
            The values of the roots and of what they need, and of others perhaps; or the parts of the question for which
            there is no solution.

        Raises:
            SearchLimit: A bound was reached.
        """


def values_of(values: Values) -> list[int]:
    """The versions among non-negative *values*, lowest first."""
    numbers = []
    values >>= FIRST
    number = FIRST
    while values:
        step = (values & -values).bit_length()
        number += step
        numbers.append(number - 1)
        values >>= step
    return numbers
