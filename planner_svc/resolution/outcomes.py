"""Resolves a situation at the levels that the client consents to, without explaining a failure."""

from dataclasses import dataclass, field

from planner_svc.resolution.conditions import Level, Lifted
from planner_svc.resolution.model import Options
from planner_svc.resolution.moves import Mover
from planner_svc.resolution.preferences import preferred_solution
from planner_svc.resolution.search import Assignment, Budget, Failure, Search
from planner_svc.resolution.situation import Situation
from planner_svc.resolution.solutions import Finder
from planner_svc.resolution.world import World


@dataclass(frozen=True, slots=True)
class Solved:
    """
    A solution, with the world that it is one of.

    Attributes:
        world: The world.
        solution: The values of the packages that are there.
        first: The values that come first; empty: any solution was looked for.
    """

    world: World
    solution: Assignment
    first: Assignment = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unsolved:
    """The failure at the highest level."""

    world: World
    failure: Failure


@dataclass(frozen=True, slots=True)
class Resolver:
    """Asks one search, within one budget."""

    search: Search
    budget: Budget

    def resolve(self, situation: Situation) -> Solved | Unsolved:
        """The solution at the first of the levels with one that the client consents to."""
        first, *further = levels_of(situation.options)
        outcome = self.at(situation, first)
        for level in further:
            if isinstance(outcome, Solved):
                break
            outcome = same_failure(outcome, level) or self.at(situation, level)
        return outcome

    def at(self, situation: Situation, level: Level, lifted: Lifted | None = None) -> Solved | Unsolved:
        """The preferred solution at one level."""
        world = World(situation, level, lifted or Lifted())
        solution = preferred_solution(Mover(Finder(world, self.search, self.budget)))
        if isinstance(solution, Failure):
            return Unsolved(world, solution)
        return Solved(world, solution.solution, solution.first)

    def any_in(self, world: World) -> Solved | Unsolved:
        """Some solution of a world."""
        solution = Finder(world, self.search, self.budget).find({})
        return Unsolved(world, solution) if isinstance(solution, Failure) else Solved(world, solution)


def levels_of(options: Options) -> list[Level]:
    """The levels to try, lowest first."""
    if options.allow_downgrade:
        return [Level.STAY, Level.UP, Level.ANY]
    return [Level.STAY, Level.UP] if options.update_dependencies else [Level.STAY]


def same_failure(unsolved: Unsolved, level: Level) -> Unsolved | None:
    """The failure at a higher level, if nothing that matters may move there; None: it may be another one."""
    world = World(unsolved.world.situation, level, unsolved.world.lifted)
    names = [name for name in unsolved.failure.packages if not name.startswith("@")]
    # What a world has learned depends on what may move.
    if unsolved.world.conditions or any(world.domain(name) != unsolved.world.domain(name) for name in names):
        return None
    return Unsolved(world, unsolved.failure)
