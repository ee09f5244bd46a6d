"""The cases of the simulation: every crash, fault and cancellation, and some of them together."""

from collections.abc import Callable, Iterator
from itertools import product
from random import Random

from tests.engine.model_platform import Fault, Script
from tests.engine.simulation import NO_FAULTS, Case, Situation

NOTHING = Case()

Family = Callable[[Situation], Iterator[Case]]
"""Generates the cases of one type."""


def sample(family: Family, situation: Situation, share: float) -> Iterator[Case]:
    """A fixed random sample: about a *share* of the cases of a family."""
    chance = Random(f"{family.__name__} {situation.name}")
    for case in family(situation):
        if chance.random() < share:
            yield case


def crashes(situation: Situation, script: Script = NO_FAULTS) -> Iterator[Case]:
    """One applier dies: a case for each point."""
    for point in range(situation.extent(Case(script)).points):
        yield Case(script, (point,))


def two_crashes(situation: Situation) -> Iterator[Case]:
    """Two appliers die: a case for each pair of points."""
    for first in crashes(situation):
        [point] = first.crashes
        for later in range(situation.extent(first).points - point - 1):
            yield Case(crashes=(point, later))


def scripts(situation: Situation) -> Iterator[Script]:
    """One mutation meets one fault, once or whenever it is sent."""
    for write, fault, lasting in product(range(situation.extent(NOTHING).sent), Fault, (False, True)):
        yield Script(((write, fault),), lasting)


def faults(situation: Situation) -> Iterator[Case]:
    """As ``scripts``."""
    yield from map(Case, scripts(situation))


def faults_and_crashes(situation: Situation) -> Iterator[Case]:
    """A fault and a crash, in any order."""
    for script in scripts(situation):
        yield from crashes(situation, script)
    sent = situation.extent(NOTHING).sent
    for crash in crashes(situation):
        # Mutations that are sent only because of the crash.
        for write, fault in product(range(sent, situation.extent(crash).sent), Fault):
            yield Case(Script(((write, fault),)), crash.crashes)


def two_faults(situation: Situation) -> Iterator[Case]:
    """Two faults; the second may occur during the rollback."""
    for first, lasting in product(list(scripts(situation)), (False, True)):
        [(write, _)] = first.faults
        for later, fault in product(range(write + 1, situation.extent(Case(first)).sent), Fault):
            yield Case(Script((*first.faults, (later, fault)), lasting))


def cancellations(situation: Situation) -> Iterator[Case]:
    """A cancellation at every point."""
    for point in range(situation.extent(NOTHING).points):
        yield Case(cancel_at=point)


def cancellations_and_more(situation: Situation) -> Iterator[Case]:
    """A cancellation and a fault or a crash, in any order."""
    for case in cancellations(situation):
        extent = situation.extent(case)
        for write, fault, lasting in product(range(extent.sent), Fault, (False, True)):
            yield Case(Script(((write, fault),), lasting), cancel_at=case.cancel_at)
        for point in range(extent.points):
            yield Case(crashes=(point,), cancel_at=case.cancel_at)


def refused_records(situation: Situation) -> Iterator[Case]:
    """The store refuses the record of a success, alone or with a fault or a crash."""
    refused = Case(is_refused=True)
    yield refused
    extent = situation.extent(refused)
    for write, fault in product(range(extent.sent), Fault):
        yield Case(Script(((write, fault),)), is_refused=True)
    for point in range(extent.points):
        yield Case(crashes=(point,), is_refused=True)
