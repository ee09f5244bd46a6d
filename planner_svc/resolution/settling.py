"""
Settles what has one possible value before a search begins.

Most packages of a stack stay as they are, and most decisions are made when the search is asked again: following their
needs once is much faster than letting the search decide them one by one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from planner_svc.resolution.search import (
    ABSENT,
    Assignment,
    Budget,
    Failure,
    Question,
    Search,
    Values,
)

_ABSENT = 1 << ABSENT
_ALL: Values = -1


@dataclass(slots=True)
class Settled:
    """
    The rest of a question (``Question``).

    Attributes:
        question: The question.
        limits: The limits of its packages.
        values: The packages with one possible value.
        roots: The packages that have to be there and have several values.
        impossible: A package that has to be there and has no value; None: there is none.
        allowed: The values of packages that go with those of *values*.
        narrowed_by: The packages of *values* that each package is needed by, or loses values by.
    """

    question: Question
    limits: Mapping[str, Values]
    values: Assignment = field(default_factory=dict)
    roots: dict[str, Values] = field(default_factory=dict)
    impossible: str | None = None
    allowed: dict[str, Values] = field(default_factory=dict)
    narrowed_by: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pending = sorted(self.question.roots)
        is_needed = set(pending)
        while pending and self.impossible is None:
            name = pending.pop()
            values = self.domain(name)
            if not values:
                self.impossible = name
            elif values & (values - 1):
                self.roots[name] = values
            elif name not in self.values:
                self.roots.pop(name, None)
                value = values.bit_length() - 1
                self.values[name] = value
                pending += self._follow(name, self.question.needs(name, value), is_needed)

    def _follow(self, name: str, needs: Mapping[str, Values], is_needed: set[str]) -> Iterable[str]:
        """Narrow what *name* needs; returns the packages to look at again."""
        for other, values in needs.items():
            before = self.domain(other)
            is_new = other not in is_needed and not values & _ABSENT
            if is_new or before & ~values:
                self.allowed[other] = self.allowed.get(other, _ALL) & values
                self.narrowed_by.setdefault(other, []).append(name)
            if is_new:
                is_needed.add(other)
            if other in is_needed and (is_new or before & ~values):
                yield other

    def domain(self, package: str) -> Values:
        """The values that *package* can have."""
        values = self.question.domain(package) & self.limits.get(package, _ALL) & self.allowed.get(package, _ALL)
        return values & self.question.roots.get(package, _ALL)

    def needs(self, package: str, value: int) -> Mapping[str, Values]:
        """What *value* needs that is not settled; nothing meets a need that contradicts what is."""
        rest = {}
        for name, values in self.question.needs(package, value).items():
            if name not in self.values:
                rest[name] = values
            elif not values >> self.values[name] & 1:
                rest[name] = 0
        return rest

    def preferred(self, package: str, values: Values) -> int:
        """The one of *values* to try first."""
        return self.question.preferred(package, values)

    def failure(self, rest: Failure) -> Failure:
        """The failure of the whole question for which that of the rest is *rest*."""
        limits, packages, needs = set(rest.limits), set(rest.packages), set(rest.needs)
        pending = list(packages)
        while pending:
            name = pending.pop()
            if name in self.limits:
                limits.add(name)
            for other in self.narrowed_by.get(name, ()):
                needs.add((other, 1 << self.values[other], name))
                if other not in packages:
                    packages.add(other)
                    pending.append(other)
        return Failure(frozenset(limits), frozenset(packages), frozenset(needs))


def settle_and_search(
    search: Search, question: Question, limits: Mapping[str, Values], budget: Budget
) -> Assignment | Failure:
    """Answer as *search* does (``Search``)."""
    budget.use(1)
    settled = Settled(question, limits)
    if settled.impossible is not None:
        return settled.failure(Failure(frozenset(), frozenset({settled.impossible})))
    if not settled.roots:
        return settled.values
    answer = search(settled, {}, budget)
    if isinstance(answer, Failure):
        return settled.failure(answer)
    return {**answer, **settled.values}
