"""Finds solutions in which as few installed packages as possible move."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from planner_svc.resolution.search import Assignment, Failure, Values
from planner_svc.resolution.solutions import Finder


@dataclass(eq=False)
class Mover:
    """
    Finds solutions with a bounded number of moves.

    A failure blames packages that stay: one of them has to move. So packages move that hit each set of blamed ones,
    fewest first, until there is a solution.

    Attributes:
        finder: Finds solutions without such a bound.
        bound: The highest number of moves.
    """

    finder: Finder
    bound: int = 0
    _stays: Mapping[str, Values] = field(init=False)
    _blamed: list[frozenset[str]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._stays = self.finder.world.movables()

    def fewest(self) -> Assignment | Failure:
        """A solution with as few moves as possible, whose number is the bound from then on."""
        answer = self.finder.find({})
        if isinstance(answer, Failure) or not self._stays:
            return answer
        # Each of these moves is one that the solution above makes, so the number is high enough.
        for self.bound in range(len(self._stays) + 1):  # noqa: B020 - the number that is reached is the bound
            fewest = self.find({})
            if not isinstance(fewest, Failure):
                return fewest
        return answer

    def find(self, limits: Mapping[str, Values]) -> Assignment | Failure:
        """A solution within *limits* that has no more moves than the bound allows."""
        if not self._stays:
            return self.finder.find(limits)
        stays = {name: values for name, values in self._stays.items() if limits.get(name, -1) & values}
        # A package whose limits have no place for its version moves or is not there; only the former counts.
        bound = self.bound - sum(1 for name in self._stays if name in limits and name not in stays)
        blamed = [each for each in self._blamed if each <= stays.keys()]
        while True:
            moves = self._hitting(blamed, bound)
            if moves is None:
                return Failure(frozenset(), frozenset())
            staying = {name: values for name, values in stays.items() if name not in moves}
            answer = self.finder.find({**limits, **staying})
            if not isinstance(answer, Failure):
                return answer
            movable = answer.limits & staying.keys()
            if not movable:
                return answer
            blamed.append(movable)
            if answer.limits <= movable and not answer.limits & limits.keys():
                self._blamed.append(movable)

    def _hitting(self, blamed: Collection[frozenset[str]], bound: int) -> frozenset[str] | None:
        """The smallest set of packages that has one of each of the *blamed* sets; None: all have more than *bound*."""
        for size in range(bound + 1):
            moves = self._of_size(blamed, size, frozenset())
            if moves is not None:
                return moves
        return None

    def _of_size(self, blamed: Collection[frozenset[str]], size: int, moves: frozenset[str]) -> frozenset[str] | None:
        # There may be more such sets than can be looked at.
        self.finder.budget.check()
        missed = next((each for each in blamed if not each & moves), None)
        if missed is None:
            return moves
        for name in sorted(missed) if size else ():
            more = self._of_size(blamed, size - 1, moves | {name})
            if more is not None:
                return more
        return None
