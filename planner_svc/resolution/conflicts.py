"""Explains why a request cannot be carried out, and what works instead."""

from dataclasses import replace

from planner_svc.resolution.codes import Classified, classify
from planner_svc.resolution.conditions import Level
from planner_svc.resolution.facts import Reason, Reduced, reduce
from planner_svc.resolution.headlines import cycle_headline, headline_of
from planner_svc.resolution.model import Conflict, ConflictCode, Fact, FactKind, Suggestion
from planner_svc.resolution.outcomes import Resolver, Solved, Unsolved, same_failure
from planner_svc.resolution.search import SearchLimit
from planner_svc.resolution.situation import Situation
from planner_svc.resolution.solutions import cycle_of
from planner_svc.resolution.suggestions import Suggester
from planner_svc.resolution.texts import Narration
from planner_svc.resolution.world import World


def not_installed(package: str, participle: str) -> Conflict:
    """The conflict of a package that is to be, for example, "updated", and is not installed."""
    text = f"{package} is not installed, so it cannot be {participle}"
    fact = Fact(FactKind.NOT_INSTALLED, (package,), text, ((package,),))
    return Conflict(ConflictCode.NOT_INSTALLED, package, text, facts=(fact,))


def unknown() -> Conflict:
    """The conflict of a request for which no solution was found within the bounds."""
    text = "the bound on steps or time was reached before it was known which versions go together"
    return Conflict(ConflictCode.LIMIT, "", text, is_explained=False)


def explain(resolver: Resolver, situation: Situation, unsolved: Unsolved) -> Conflict:
    """
    The conflict of what is *unsolved* at the levels that the client consents to.

    The bounds of *resolver* are those of the explanation. When one is reached, what is known so far is the answer.
    """
    classified, resolvable, is_explained = Classified(ConflictCode.VERSION_CONFLICT), False, True
    suggestions: list[Suggestion] = []
    try:
        outcome = _one_level_up(resolver, situation, unsolved)
        resolvable = isinstance(outcome, Solved)
        if isinstance(outcome, Unsolved):
            unsolved = outcome
            classified = classify(resolver, unsolved)
        for suggestion in Suggester(resolver, situation, unsolved, classified.code, resolvable).suggestions():
            suggestions.append(suggestion)
    except SearchLimit:
        is_explained = False
    reduced = reduce(unsolved.world, unsolved.failure, resolver.search, resolver.budget, classified.package)
    narration = Narration(unsolved.world, reduced.reasons)
    cycle = _cycle(classified.solution) if classified.code is ConflictCode.CYCLE and classified.solution else []
    headline = cycle_headline(cycle) if cycle else headline_of(narration, classified, resolvable)
    return Conflict(
        classified.code,
        headline.package,
        headline.text,
        resolvable,
        narration.facts,
        tuple(suggestions),
        is_explained and reduced.is_minimal and narration.is_whole,
    )


def _one_level_up(resolver: Resolver, situation: Situation, unsolved: Unsolved) -> Solved | Unsolved:
    """The outcome at level 1."""
    if unsolved.world.level is Level.UP:
        return unsolved
    if unsolved.world.level is Level.STAY:
        return same_failure(unsolved, Level.UP) or resolver.any_in(World(situation, Level.UP))
    return resolver.any_in(World(situation, Level.UP))


def _cycle(outcome: Solved) -> list[str]:
    """The cycle of a solution that has one."""
    strict = World(outcome.world.situation, outcome.world.level, replace(outcome.world.lifted, cycles=False))
    exclusion = cycle_of(strict, outcome.solution)
    return [name for name, _ in exclusion.parts] if exclusion else []


def facts_against(resolver: Resolver, world: World) -> tuple[Fact, ...]:
    """The facts for which a world has no solution; empty: it has one, or a bound was reached."""
    try:
        outcome = resolver.any_in(world)
        if isinstance(outcome, Solved):
            return ()
        reduced: Reduced = reduce(world, outcome.failure, resolver.search, resolver.budget)
    except SearchLimit:
        return ()
    return Narration(world, reduced.reasons).facts if reduced.is_minimal else ()


def pin_fact(world: World, package: str) -> tuple[Fact, ...]:
    """The fact that a package is pinned, or suspended."""
    installed = world.situation.installed[package]
    kind = FactKind.SUSPENDED if installed.is_suspended else FactKind.PINNED
    return Narration(world, [Reason(kind, package)]).facts
