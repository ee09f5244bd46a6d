"""
Small scenarios, generated instead of drawn: one operation of a few steps meets each fault, crash and cancellation.

Each has one client and one applier. It applies a package, applies another one, which meets the faults, and applies that
again. A seed draws rare combinations of many things; these scenarios leave out no combination of few things.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from random import Random

from tests.simulation.faults import OF_MUTATIONS, REFUSED
from tests.simulation.running import Result
from tests.simulation.scenario import Action, Client, Crash, Edit, Item, MutationFault, Platform, Scenario

IDENTITIES = ("NATIVE", "NATURAL_KEY", "SEARCH")
"""How the outcome of a creation without an answer is found: it is sent again, found by its name, or searched for."""

_AFFECTED = 2
"""The number of the operation that meets the faults."""

_STATE = re.compile(r" store +(\S+) of \S+ is (\w+)$")
_REACHES = re.compile(r" reaches (\w+) (\d+)$")
_MUTATION = re.compile(r" platform .*mutation \d+ of operation 2\b")
_EVENTS = re.compile(r" after (\d+) events$")


@dataclass(frozen=True, slots=True)
class Change:
    """
    A pair of packages.

    Attributes:
        before: The package that is applied first; empty: nothing is.
        after: The package that is applied next; empty: the stack is uninstalled.
        secrets: Keys of the secrets that are given with it.
        edits: What a person creates before it.
    """

    before: tuple[Item, ...]
    after: tuple[Item, ...]
    secrets: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()


def _dashboard_of_a_person(at: float) -> Edit:
    """A dashboard with the name of one of the packages; such names need not be unique."""
    return Edit(at, "create", "cpu")


_RED, _BLUE, _NEW_RED = Item("red"), Item("blue"), Item("red", 1)
_FULL = (_RED, _BLUE, Item("raw", labels=("red",)), Item("cpu", labels=("red", "blue")), Item("region"))

CHANGES: Mapping[str, Change] = {
    # An update, a creation and an attachment.
    "least": Change((_RED,), (_NEW_RED, Item("cpu", labels=("red",)))),
    # Everything is created.
    "fresh": Change((Item("region"),), _FULL, edits=(_dashboard_of_a_person(0.1),)),
    # Updates, a creation, attachments, detachments, deletions that can be undone and, last, the deletion of a bucket.
    "mixed": Change(
        _FULL, (_NEW_RED, Item("cpu", 1, ("red",)), Item("clean", labels=("red",))), edits=(_dashboard_of_a_person(2),)
    ),
    # The same without an irreversible step; the label of a person is adopted.
    "reversible": Change(
        (_RED, Item("raw", labels=("red",)), Item("cpu", labels=("red",)), Item("region")),
        (_NEW_RED, _BLUE, Item("raw", labels=("blue",)), Item("cpu", 1, ("blue",)), Item("clean", labels=("red",))),
        edits=(Edit(2, "create", "blue"),),
    ),
    # Everything is deleted.
    "emptied": Change(_FULL, ()),
    # An immutable field of a bucket: it is replaced past the seal, and labelled again.
    "replaced": Change((_RED, Item("raw", labels=("red",))), (_RED, Item("raw", labels=("red",), explicit=True))),
    # A rule is deleted with its endpoint.
    "unruled": Change((_RED, Item("hook", labels=("red",)), Item("alarm", labels=("red",))), (_NEW_RED,)),
    # The endpoint of a rule is replaced by one of another kind with the same name: the rule is updated twice.
    "turned": Change(
        (_RED, Item("hook"), Item("alarm")), (_RED, Item("hook", labels=("red",), turned=True), Item("alarm"))
    ),
    # Replacements under other names, so that the new resource is created before the old one is deleted.
    "moved": Change(
        (_RED, _BLUE, Item("raw", labels=("red", "blue")), Item("hook"), Item("alarm")),
        (
            _RED,
            Item("raw", labels=("red",), explicit=True, renamed=True),
            Item("hook", labels=("red",), renamed=True, turned=True),
            Item("alarm", 1),
        ),
    ),
    # A bucket is updated, and loses data past the seal.
    "shortened": Change((_RED, Item("raw", labels=("red",))), (_NEW_RED, Item("raw", 1, ("red",), brief=True))),
    # One secret is overwritten, another one is new.
    "secrets": Change(
        (_RED,), (_NEW_RED, Item("hook")), secrets=("one", "two"), edits=(Edit(0.1, "put_secret", "one"),)
    ),
}

_TURNS = 500
"""How many cases of each family a search tries."""

LEAST = ("least", "replaced")
"""Changes of few steps, for which all pairs of faults, crashes and cancellations are tried."""


@dataclass(frozen=True, slots=True)
class Case:
    """
    What the affected operation meets.

    Attributes:
        faults: The faults of its mutations.
        crashes: The kills of its applier: failpoint, and number of the arrival there.
        cancel_at: The number of the event after which it is cancelled; 0: it is not.
        is_refused: Whether the store refuses the record of its success.
    """

    faults: tuple[MutationFault, ...] = ()
    crashes: tuple[tuple[str, int], ...] = ()
    cancel_at: int = 0
    is_refused: bool = False


NOTHING = Case()


@dataclass(frozen=True, slots=True)
class Extent:
    """
    The size of the affected operation.

    Attributes:
        points: The failpoints that it reaches, each with the number of the arrival, counted over the whole run.
        sent: The number of its mutations.
        events: The number of its events.
    """

    points: tuple[tuple[str, int], ...]
    sent: int
    events: int


class Situation:
    """
    A change on a platform.

    Attributes:
        name: Its name.
        change: The change.
    """

    def __init__(self, change: str, identity: str, run: Callable[[Scenario], Result]) -> None:
        """*identity* is one of ``IDENTITIES``."""
        self.name = f"{change} on {identity}"
        self.change = CHANGES[change]
        self._identity = identity
        self._run = run
        # Extents are small. The traces of all results would fill the memory.
        self._extents: dict[Case, Extent] = {}
        self._last: tuple[Case, Result] | None = None

    def scenario(self, case: Case) -> Scenario:
        """The scenario in which the second operation meets *case*."""
        change = self.change
        do = "apply" if change.after else "uninstall"
        again = Action(do, change.after, 0.1, secrets=change.secrets)
        affected = replace(again, pause=3.0)
        if case.cancel_at:
            affected = replace(affected, cancel_after=0.0, cancel_at=case.cancel_at)
        actions = (Action("apply", change.before), affected, again)
        return Scenario(
            0,
            (),
            lease=9,
            platform=Platform(self._identity, batch=2, concurrency=1),
            clients=(Client("s0", "", actions),),
            crashes=tuple(Crash("applier0", failpoint=failpoint, nth=nth) for failpoint, nth in case.crashes),
            edits=change.edits,
            faults={},
            mutation_faults=case.faults,
            refused_record=_AFFECTED if case.is_refused else 0,
        )

    def result(self, case: Case) -> Result:
        """The run in *case*; its violations include a needless end, as of ``_needless``."""
        if self._last and self._last[0] == case:
            return self._last[1]
        result = self._run(self.scenario(case))
        needless = self._needless(case, result)
        result = replace(result, violations=result.violations | ({"NEEDLESS": needless} if needless else {}))
        self._extents[case] = _extent(result)
        self._last = (case, result)
        return result

    def extent(self, case: Case) -> Extent:
        """The size of the operation in *case*."""
        if case not in self._extents:
            self.result(case)
        return self._extents[case]

    def _needless(self, case: Case, result: Result) -> str:
        """A rollback or a block to which *case* gives no reason; empty: there is none."""
        lines = _lines_of_affected(result.lines)
        states = [each[2] for each in map(_STATE.search, lines) if each]
        is_sealed = any(" reaches after_seal " in line for line in lines)
        # The applier that had the values of the secrets died.
        loses_values = bool(self.change.secrets and case.crashes)
        is_refused = case.is_refused or any(fault.fault == REFUSED for fault in case.faults)
        is_cut_off = len(case.faults) > 1 or any(fault.is_lasting for fault in case.faults)
        gives_up = loses_values or case.cancel_at > 0
        if "ROLLED_BACK" in states and not (is_refused or is_cut_off or gives_up):
            return "the operation is rolled back, and only met what it has to tolerate"
        # A fault may also occur during the rollback, or past the seal.
        goes_wrong = bool(case.faults) and (gives_up or (is_refused and is_sealed))
        if "BLOCKED" in states and not (is_cut_off or case.is_refused or goes_wrong):
            return "the operation is blocked, and only met what it has to tolerate"
        return ""


def nothing(situation: Situation) -> Iterator[Case]:
    """No fault."""
    yield NOTHING


def crashes(situation: Situation, case: Case = NOTHING) -> Iterator[Case]:
    """One applier dies: a case for each failpoint that the operation reaches in *case*."""
    for point in situation.extent(case).points:
        if point not in case.crashes:
            yield replace(case, crashes=(*case.crashes, point))


def two_crashes(situation: Situation) -> Iterator[Case]:
    """The applier that takes the operation over dies, too."""
    for first in crashes(situation):
        points = situation.extent(first).points
        yield from (
            each for each in crashes(situation, first) if each.crashes[1] in points[points.index(first.crashes[0]) :]
        )


def faults(situation: Situation, case: Case = NOTHING, first: int = 1) -> Iterator[Case]:
    """One mutation, from number *first* on, meets one fault, once or whenever it is sent."""
    sent = situation.extent(case).sent
    for nth, fault, is_lasting in product(range(first, sent + 1), OF_MUTATIONS, (False, True)):
        yield replace(case, faults=(*case.faults, MutationFault(_AFFECTED, nth, fault, is_lasting)))


def faults_and_crashes(situation: Situation) -> Iterator[Case]:
    """A fault and a crash, in any order."""
    for case in faults(situation):
        yield from crashes(situation, case)
    sent = situation.extent(NOTHING).sent
    for case in crashes(situation):
        # Mutations that are sent only because of the crash.
        yield from faults(situation, case, sent + 1)


def two_faults(situation: Situation) -> Iterator[Case]:
    """Two faults; the second may occur during the rollback."""
    for case in faults(situation):
        yield from later_faults(situation, case)


def later_faults(situation: Situation, case: Case) -> Iterator[Case]:
    """A fault after those of *case*."""
    yield from faults(situation, case, case.faults[-1].nth + 1)


def cancellations(situation: Situation) -> Iterator[Case]:
    """A cancellation after each event."""
    for event in range(1, situation.extent(NOTHING).events):
        yield Case(cancel_at=event)


def cancellations_and_more(situation: Situation) -> Iterator[Case]:
    """A cancellation and a fault or a crash, in any order."""
    for case in cancellations(situation):
        yield from faults(situation, case)
        yield from crashes(situation, case)


def refused_records(situation: Situation) -> Iterator[Case]:
    """The store refuses the record of a success, alone or with a fault or a crash."""
    refused = Case(is_refused=True)
    yield refused
    yield from faults(situation, refused)
    yield from crashes(situation, refused)


Family = Callable[[Situation], Iterator[Case]]
"""Generates the cases of one type."""

SINGLE: tuple[Family, ...] = (nothing, crashes, faults, cancellations)
"""One fault, crash or cancellation."""

COMBINED: tuple[Family, ...] = (two_crashes, faults_and_crashes, two_faults, cancellations_and_more, refused_records)
"""Two of them."""

FAMILIES = (*SINGLE, *COMBINED)


def drawn(situation: Situation, family: Family, count: int, *, lasting: bool = True) -> Iterator[Case]:
    """
    A fixed random sample of at most *count* cases of a family.

    A pair is drawn by its first half, as the second one depends on the run with the first one.

    Args:
        situation: The situation.
        family: The family.
        count: The size of the sample.
        lasting: Whether a fault may last: an operation retries for ten minutes, which is a long run.
    """
    chance = Random(f"{family.__name__} {situation.name}")

    def some(cases: Iterator[Case]) -> list[Case]:
        known = [case for case in cases if lasting or not any(fault.is_lasting for fault in case.faults)]
        return [chance.choice(known)] if known else []

    def then(first: list[Case], *more: Callable[[Situation, Case], Iterator[Case]]) -> list[Case]:
        return [each for case in first for each in some(chance.choice(more)(situation, case))]

    for _ in range(count):
        if family is two_crashes:
            yield from then(some(crashes(situation)), crashes)
        elif family is faults_and_crashes:
            yield from then(some(faults(situation)), crashes)
        elif family is two_faults:
            yield from then(some(faults(situation)), later_faults)
        elif family is cancellations_and_more:
            yield from then(some(cancellations(situation)), faults, crashes)
        elif family is refused_records:
            yield from then([Case(is_refused=True)], faults, crashes)
        else:
            yield from some(family(situation))


def results(name: str, run: Callable[[Scenario], Result]) -> Iterator[Result]:
    """
    The runs of a situation, in a fixed random order.

    Args:
        name: The name of the situation; its families take turns, without faults that last. With the name of a family,
            as in "fresh on SEARCH, two_crashes": all cases of that family.
        run: Runs a scenario.
    """
    place, _, only = name.partition(", ")
    change, identity = place.split(" on ")
    situation = Situation(change, identity, run)
    if only:
        [family] = [family for family in FAMILIES if family.__name__ == only]
        cases = list(family(situation))
        Random(name).shuffle(cases)
        yield from map(situation.result, cases)
        return
    samples = [drawn(situation, family, _TURNS, lasting=False) for family in FAMILIES]
    known: set[Case] = set()
    for case in chain.from_iterable(zip(*samples, strict=False)):
        if case not in known:
            known.add(case)
            yield situation.result(case)


def _extent(result: Result) -> Extent:
    """The size of the affected operation of a run."""
    lines = _lines_of_affected(result.lines)
    points = tuple((each[1], int(each[2])) for each in map(_REACHES.search, lines) if each)
    sent = sum(1 for line in lines if _MUTATION.search(line))
    events = [int(each[1]) for each in map(_EVENTS.search, lines) if each]
    return Extent(points, sent, max(events, default=0))


def _lines_of_affected(lines: Sequence[str]) -> list[str]:
    """The lines of a trace from the begin of the affected operation to the begin of the next one."""
    operations: list[str] = []
    affected = []
    for line in lines:
        if line.endswith("all faults stop"):
            break
        if (state := _STATE.search(line)) and state[1] not in operations:
            operations.append(state[1])
        if len(operations) == _AFFECTED:
            affected.append(line)
    return affected
