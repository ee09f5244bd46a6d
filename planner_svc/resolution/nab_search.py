"""The search by nab-resolver, which learns from conflicts (PubGrub)."""

from collections.abc import Mapping
from typing import Any

from nab_resolver.errors import ResolutionError, ResolutionLimitError, ResolutionTerminatedError
from nab_resolver.resolver import BaseProvider, Resolver, ResolverObserver
from nab_resolver.types import Incompatibility, IncompatibilityCause, RangeRelation

from planner_svc.resolution.search import (
    ABSENT,
    NEVER,
    Assignment,
    Budget,
    Failure,
    Question,
    SearchFault,
    Values,
    values_of,
)

_ABSENT = 1 << ABSENT
_NEVER = 1 << NEVER

_CHECK_INTERVAL = 64
"""Number of decisions between two looks at the clock."""


_RELATIONS = {(each.is_subset, each.is_disjoint): each for each in RangeRelation}


class ValueSet:
    """A set of values, as the library takes it."""

    __slots__ = ("bits",)

    def __init__(self, bits: Values) -> None:
        self.bits = bits

    @classmethod
    def empty(cls) -> "ValueSet":
        """No value."""
        return cls(0)

    @classmethod
    def full(cls) -> "ValueSet":
        """All values."""
        return cls(-1)

    @classmethod
    def singleton(cls, version: int) -> "ValueSet":
        """One value."""
        return cls(1 << version)

    @property
    def is_empty(self) -> bool:
        """Whether there is no value."""
        return not self.bits

    def __contains__(self, version: int, /) -> bool:
        return bool(self.bits >> version & 1)

    def __and__(self, other: object) -> "ValueSet":
        return ValueSet(self.bits & _bits(other))

    def __or__(self, other: object) -> "ValueSet":
        return ValueSet(self.bits | _bits(other))

    def __sub__(self, other: object) -> "ValueSet":
        return ValueSet(self.bits & ~_bits(other))

    def __invert__(self) -> "ValueSet":
        return ValueSet(~self.bits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueSet) and self.bits == other.bits

    def __hash__(self) -> int:
        return hash(self.bits)

    def is_subset(self, other: "ValueSet") -> bool:
        """Whether *other* has all values of this set."""
        return not self.bits & ~other.bits

    def is_superset(self, other: "ValueSet") -> bool:
        """Whether this set has all values of *other*."""
        return not other.bits & ~self.bits

    def is_disjoint(self, other: "ValueSet") -> bool:
        """Whether no value is in both."""
        return not self.bits & other.bits

    def relation(self, other: "ValueSet") -> RangeRelation:
        """How this set is related to *other*."""
        return _RELATIONS[not self.bits & ~other.bits, not self.bits & other.bits]

    def __repr__(self) -> str:
        return f"ValueSet({self.bits:#b})"


def _bits(other: object) -> Values:
    if not isinstance(other, ValueSet):
        raise TypeError(other)
    return other.bits


def search(question: Question, limits: Mapping[str, Values], budget: Budget) -> Assignment | Failure:
    """Look for a solution of *question* (``Search``)."""
    budget.check()
    provider = _Provider(question, limits, budget)
    resolver: Resolver[str, int] = Resolver(
        provider,
        observer=_Conflicts(provider),
        max_iterations=budget.steps,
        range_type=ValueSet,
        root_version=NEVER,
        # The report of a failure is not read, and a long one takes long.
        format_range=lambda values: "",
    )
    roots = {package: ValueSet(values | _NEVER) for package, values in sorted(question.roots.items())}
    try:
        pins = resolver.resolve(roots, {package: ValueSet(values | _ABSENT) for package, values in limits.items()})
    except ResolutionLimitError:
        budget.steps = 0
        budget.check()
        raise
    except ResolutionTerminatedError as error:
        raise SearchFault(str(error)) from error
    except ResolutionError as error:
        if error.incompatibility is None:
            raise SearchFault(str(error)) from error
        return _failure(error.incompatibility)
    finally:
        budget.steps -= min(resolver.stats.rounds, budget.steps)
    budget.check()
    return {package: value for package, value in pins.items() if value != ABSENT}


def _failure(proof: Incompatibility[Any, Any]) -> Failure:
    """The parts of the question that *proof* starts from."""
    limits, packages, needs = set(), set(), set()
    for clause in proof.walk():
        if clause.cause is IncompatibilityCause.DERIVED:
            continue
        names = [term.package for term in clause.terms if isinstance(term.package, str)]
        packages.update(names)
        if clause.cause is IncompatibilityCause.CONSTRAINT:
            limits.update(names)
        if clause.cause is IncompatibilityCause.DEPENDENCY:
            needs.add((names[0], _bits(clause.terms[0].constraint), names[-1]))
    return Failure(frozenset(limits), frozenset(packages), frozenset(needs))


class _Provider(BaseProvider[str, int]):
    """Answers the library about one question."""

    def __init__(self, question: Question, limits: Mapping[str, Values], budget: Budget) -> None:
        self._question = question
        self._limits = limits
        self._budget = budget
        self._ranks: dict[str, int] = {}
        self._needs: dict[tuple[str, int], dict[str, ValueSet]] = {}
        self._alike: dict[str, dict[Any, Values]] = {}
        self._decisions = 0
        self._has_conflicts = False

    def meet_conflict(self) -> None:
        """From the first conflict on, it pays to find versions with equal needs, so that they are rejected together."""
        self._has_conflicts = True
        self._budget.check()

    def choose_version(self, package: str, version_range: Any) -> int | None:
        self._decisions += 1
        if self._decisions % _CHECK_INTERVAL == 0:
            self._budget.check()
        bits = version_range.bits
        values = bits & self._question.domain(package)
        if bits & _ABSENT:
            return ABSENT
        return self._question.preferred(package, values) if values else None

    def has_satisfying_version(self, package: str, version_range: Any) -> bool:
        return bool(version_range.bits & (self._question.domain(package) | _ABSENT))

    def get_dependencies(self, package: str, version: int) -> Mapping[str, ValueSet]:
        key = package, version
        if key not in self._needs:
            needs = self._question.needs(package, version) if version != ABSENT else {}
            self._needs[key] = {name: ValueSet(values | _NEVER) for name, values in needs.items()}
        return self._needs[key]

    def prioritize(
        self,
        package: str,
        version_range: Any,
        conflict_counts: Mapping[str, int],
        culprit_counts: Mapping[str, int] | None = None,
    ) -> tuple[bool, int, int]:
        """Packages that may stay absent come last, as they are needed by something later, perhaps."""
        rank = self._ranks.setdefault(package, len(self._ranks))
        return bool(version_range.bits & _ABSENT), -conflict_counts.get(package, 0), rank

    def widen_decision(self, package: str, version: int) -> ValueSet | None:
        if not self._has_conflicts:
            return None
        if package not in self._alike:
            self._alike[package] = self._groups(package)
        return ValueSet(self._alike[package][self._key(package, version)])

    def _groups(self, package: str) -> dict[Any, Values]:
        """The values of *package* with equal needs."""
        groups: dict[Any, Values] = {}
        for value in values_of(self._question.domain(package)):
            key = self._key(package, value)
            groups[key] = groups.get(key, 0) | 1 << value
        return groups

    def _key(self, package: str, value: int) -> frozenset[tuple[str, Values]]:
        return frozenset(self._question.needs(package, value).items())


class _Conflicts(ResolverObserver[str, int]):
    """Tells the provider of conflicts, which take much longer than decisions."""

    def __init__(self, provider: _Provider) -> None:
        self._provider = provider

    def on_conflict(self, incompatibility: Incompatibility[str, int]) -> None:
        self._provider.meet_conflict()
