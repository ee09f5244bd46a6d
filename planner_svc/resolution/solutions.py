"""
Finds solutions of a world: asks the search, checks each of its answers, and tells the world what it must not have.

The search knows nothing of cycles, of prereleases that no range names, or of packages that nothing needs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner_svc.resolution.conditions import Condition, Exclusion
from planner_svc.resolution.graphs import components, path_within
from planner_svc.resolution.search import ABSENT, Assignment, Budget, Failure, Search, SearchFault, Values, values_of
from planner_svc.resolution.settling import settle_and_search
from planner_svc.resolution.world import World


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds solutions of one world, within a budget."""

    world: World
    search: Search
    budget: Budget

    def find(self, limits: Mapping[str, Values]) -> Assignment | Failure:
        """
        Find a solution in which packages that are there are within their *limits*.

        Returns:
            The values of the packages that are there, each of which is a root or needed by another one.

        Raises:
            SearchLimit: A bound was reached.
            SearchFault: The search gave an answer that is none.
        """
        while True:
            answer = settle_and_search(self.search, self.world, limits, self.budget)
            if isinstance(answer, Failure):
                return answer
            solution = reachable(self.world, answer)
            check(self.world, solution, limits)
            if not self._learn(answer, solution):
                return solution

    def _learn(self, answer: Assignment, solution: Assignment) -> bool:
        """Tell the world what *solution* must not have; whether there is anything."""
        exclusion = cycle_of(self.world, solution)
        if exclusion:
            self.world.exclude(exclusion)
            return True
        conditions = []
        for condition in _unadmitted(self.world, answer, solution):
            self.budget.check()
            conditions.append(condition)
        for condition in conditions:
            self.world.demand(condition)
        return bool(conditions)


def reachable(world: World, answer: Assignment) -> Assignment:
    """The part of *answer* that roots need."""
    solution: Assignment = {}
    names = list(world.roots)
    while names:
        name = names.pop()
        if name in solution:
            continue
        if name not in answer:
            raise SearchFault(f"{name} is needed, and not there")
        solution[name] = answer[name]
        names += world.pulled(name, answer[name])
    return dict(sorted(solution.items()))


def check(world: World, solution: Assignment, limits: Mapping[str, Values]) -> None:
    """
    Check that *solution* is one, apart from cycles and prereleases.

    Raises:
        SearchFault: It is none.
    """
    for name, values in world.roots.items():
        if not values >> solution.get(name, ABSENT) & 1:
            raise SearchFault(f"{name} has to be there")
    for name, value in solution.items():
        if not (world.domain(name) & limits.get(name, -1)) >> value & 1:
            raise SearchFault(f"{name} cannot be {value}")
        for required in world.requirements(name, value):
            allowed = world.needs(name, value)[required.name]
            if not allowed >> solution.get(required.name, ABSENT) & 1:
                raise SearchFault(f"{name} does not go with {required.name}")


def edges(world: World, solution: Mapping[str, int]) -> dict[str, list[str]]:
    """What each package of *solution* requires and is there, sorted."""
    return {
        name: sorted(each.name for each in world.requirements(name, value) if each.name in solution)
        for name, value in solution.items()
    }


def cycle_of(world: World, solution: Assignment) -> Exclusion | None:
    """A cycle that is not all as it was before, as something that no solution has."""
    if world.lifted.cycles:
        return None
    graph = edges(world, solution)
    for component in components(graph):
        new = sorted(name for name in component if world.is_new(name, solution[name]))
        if new and (len(component) > 1 or new[0] in graph[new[0]]):
            return _exclusion(world, path_within(graph, new[0], frozenset(component)))
    return None


def _exclusion(world: World, cycle: Sequence[str]) -> Exclusion:
    """
    What is wrong with *cycle*, whose first package is new.

    It is so with all versions that have these requirements, as long as that of the first package is not installed.
    """
    own = world.choice(cycle[0]).own
    parts = []
    for name, required in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        values = world.requirers(name, {required})
        if name == cycle[0] and own is not None:
            values &= ~(1 << own)
        parts.append((name, values))
    needs = [(name, values, after) for (name, values), after in zip(parts, [*cycle[1:], cycle[0]], strict=True)]
    return Exclusion(tuple(parts), tuple(needs))


def _unadmitted(world: World, answer: Assignment, solution: Assignment) -> Iterator[Condition]:
    """
    Conditions that *answer* does not meet, for prereleases that no range names.

    Such a prerelease needs a package that requires it with a range. That one has to be needed by others, as a package
    which comes along for no other reason is not part of a solution.
    """
    present = solution if world.trims else answer
    for name, value in solution.items():
        if not world.choice(name).unadmitted >> value & 1:
            continue
        admitting = _admitting(world, name, value)
        if any(values >> present.get(other, ABSENT) & 1 for other, values in admitting):
            continue
        unfounded = {other: answer[other] for other in sorted(answer.keys() - solution.keys()) if other[0] != "@"}
        followers = [other for other, values in admitting if values >> unfounded.get(other, ABSENT) & 1]
        if not followers:
            yield Condition(name, 1 << value, tuple(admitting), tuple((other, each, name) for other, each in admitting))
        for other in followers:
            supports = list(_supporting(world, unfounded))
            reasons = tuple((each, values, target) for each, values in supports for target in sorted(unfounded))
            yield Condition(other, -1, tuple(supports), reasons)


def _admitting(world: World, name: str, value: int) -> list[tuple[str, Values]]:
    """The packages with the values that require a prerelease with a range, which is a range in each world."""
    admitting = []
    choice = world.choice(name)
    for other in sorted(world.universe()):
        values = 0
        for each in values_of(world.domain(other)):
            for required in world.all_requirements(other, each):
                if required.name == name and required.range and world.fitting(choice, required.range) >> value & 1:
                    values |= 1 << each
        if values:
            admitting.append((other, values))
    return admitting


def _supporting(world: World, unfounded: Mapping[str, int]) -> Iterable[tuple[str, Values]]:
    """The packages outside of *unfounded* with the values that require one of these."""
    for other in sorted(world.universe() - unfounded.keys()):
        values = world.requirers(other, unfounded)
        if values:
            yield other, values
