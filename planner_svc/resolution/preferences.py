"""Of all solutions, the one that gives each package the first version it can have, in a queue of packages."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner_svc.resolution.moves import Mover
from planner_svc.resolution.search import Assignment, Failure, Values, values_of
from planner_svc.resolution.world import World


@dataclass(frozen=True, slots=True)
class Preferred:
    """
    The solution that comes first.

    Attributes:
        solution: The values of the packages that are there.
        first: For each of them, the value that comes first in its order of preference.
    """

    solution: Assignment
    first: Assignment


def preferred_solution(mover: Mover) -> Preferred | Failure:
    """
    The solution that comes first.

    Most packages have their first version in the first solution that is found; only for the others is the search asked
    again, for all versions at once that come before the one it gave.
    """
    solution = mover.fewest()
    if isinstance(solution, Failure):
        return solution
    world = mover.finder.world
    decisions: Assignment = {}
    first: Assignment = {}
    queue = _queue(world)
    needs: dict[str, Values] = {}
    ranged: set[str] = set()
    for name in queue:
        if name in decisions:
            continue
        order = order_of(world, name, name in ranged)
        first[name] = order[0]
        better = _sum(order[: order.index(solution[name])])
        while better := _possible(world, name, better, decisions, needs):
            limits = {**{each: 1 << value for each, value in decisions.items()}, name: better}
            # Most of the better solution is that of the last one, which need not be searched for again.
            world.hints = solution
            answer = mover.find(limits)
            if isinstance(answer, Failure):
                break
            solution = answer
            better &= _sum(order[: order.index(solution[name])])
        decisions[name] = solution[name]
        for required, values in world.needs(name, solution[name]).items():
            needs[required] = needs.get(required, -1) & values
        ranged.update(each.name for each in world.requirements(name, solution[name]) if each.range is not None)
        queue.extend(world.pulled(name, solution[name]))
    return Preferred(dict(sorted(decisions.items())), first)


def order_of(world: World, package: str, has_range: bool) -> list[int]:
    """The values that *package* can have, in its order of preference; *has_range*: a range is required of it so far."""
    choice = world.choice(package)
    if choice.order is not None:
        return list(choice.order)
    highest_first = list(reversed(values_of(choice.domain)))
    higher = [value for value in highest_first if choice.versions.above(choice.own) >> value & 1]
    lower = [value for value in highest_first if value not in higher and value != choice.own]
    own = [] if choice.own is None else [choice.own]
    bound = choice.versions.up_to(choice.versions.latest)
    if choice.own is not None and not world.moves_all(package):
        return [*own, *higher, *lower]
    if choice.own is not None:
        first = [value for value in higher if has_range or bound >> value & 1]
        return [*first, *own, *(value for value in highest_first if value not in (*first, *own))]
    if has_range:
        return highest_first
    first = [value for value in highest_first if bound >> value & 1]
    return [*first, *(value for value in highest_first if value not in first)]


def _queue(world: World) -> list[str]:
    """The packages that have to be there: those that are requested, then the others, by name."""
    return sorted(world.roots, key=lambda name: (not world.is_requested(name), name))


def _possible(
    world: World, package: str, values: Values, decisions: Mapping[str, int], needs: Mapping[str, Values]
) -> Values:
    """Those of *values* that go with all *decisions*; it saves the search most of the questions."""
    possible = 0
    for value in values_of(values & needs.get(package, -1)):
        others = world.needs(package, value).items()
        if all(name not in decisions or each >> decisions[name] & 1 for name, each in others):
            possible |= 1 << value
    return possible


def _sum(values: list[int]) -> Values:
    return sum(1 << value for value in values)
