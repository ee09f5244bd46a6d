"""Reduction: finds the smallest scenario that shows a violation, and picks the telling lines of its trace."""

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.simulation.alignment import aligned
from tests.simulation.faults import WORDS
from tests.simulation.running import HarnessBroken, Result
from tests.simulation.scenario import SERVERS, Action, Crash, Scenario, ScenarioInvalid, check, to_json

MOST_RUNS = 400
"""Runs that one reduction takes at most."""

VARIANT = 1_000_003
"""Added to the seed for another try of a candidate: its schedule may differ when something is left out."""

_VARIATIONS = (
    ((0, 1.0), (0, 0.5)),
    ((VARIANT, 1.0), (VARIANT, 0.5)),
    ((2 * VARIANT, 1.0), (3 * VARIANT, 0.5)),
    ((4 * VARIANT, 1.0), (5 * VARIANT, 0.5)),
)
"""
For each try, a number to add to the seed, and a factor for the times of clients within an operation, which ends sooner
when it has less to do. Later variations are tried when nothing can be dropped with the earlier ones.
"""

WHOLE = (Crash,)
"""Values that are dropped or kept whole: a scenario whose crash is elsewhere is not smaller."""

_EARLY, _LATE = ("clients", "appliers", "crashes", "faults", "actions"), ("pause", "version", "features")
"""Fields that are dropped before, or after, all others."""

Place = tuple[tuple[str, int | None], ...]
"""The path of a value in a scenario: names of fields, each with a position if the field is a tuple."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One field of one value in a scenario."""

    place: Place
    owner: type
    field: "dataclasses.Field[Any]"
    value: Any


@dataclass(frozen=True, slots=True)
class Cut:
    """
    The smallest unit that can be dropped.

    Attributes:
        spot: Where.
        element: Position or key of an element; None: the field gets its default.
        name: The name that the element has in other places, too.
    """

    spot: Spot
    element: int | str | None
    name: Any


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """
    Smaller scenarios, the smallest first for each field.

    Each field loses all its elements, then halves of them, quarters and so on, as in delta debugging. The fields are
    read from the classes in ``scenario.py``, so a new field is reduced without a change here.
    """
    for name in _names(scenario):
        cuts = [cut for spot in _spots(scenario) if spot.field.name == name for cut in _cuts(spot)]
        for chosen in _chunks(cuts):
            yield from _worth_running(_without(scenario, chosen))
        for chosen in _namesakes(cuts):
            yield from _worth_running(_without(scenario, chosen))


def reduced(
    result: Result, kind: str, run: Callable[[Scenario], Result], *, most: int = MOST_RUNS
) -> tuple[Result, int]:
    """
    Reduce a run that shows a violation.

    Args:
        result: The run.
        kind: The kind of violation that the smaller runs have to show.
        run: Runs a scenario.
        most: Upper limit of the number of runs.

    Returns:
        The smallest run that still shows *kind*, and how many runs it took to find it.

    Raises:
        HarnessBroken: The scenario with the faults of the run noted in it does not repeat the run.
    """
    noted = run(replace(result.scenario, faults=result.faults))
    if noted.digest != result.digest:
        raise HarnessBroken(f"seed {result.scenario.seed}: with noted faults the hash is {noted.digest}")
    reduction = _Reduction(noted, kind, run, most)
    with contextlib.suppress(_BudgetSpent):
        while any(reduction.drops_with(variations) for variations in _VARIATIONS):
            pass
    return reduction.best, reduction.runs


class _BudgetSpent(Exception):
    """All runs of the budget are used."""


class _Reduction:
    """
    The state of one reduction.

    Attributes:
        best: The smallest run so far that shows the violation.
        runs: How many runs there were.
    """

    def __init__(self, noted: Result, kind: str, run: Callable[[Scenario], Result], most: int) -> None:
        self.best = noted
        self.runs = 1
        self._kind = kind
        self._run = run
        self._most = most
        self._tried = {_text(noted.scenario)}

    def drops_with(self, variations: Sequence[tuple[int, float]]) -> bool:
        """
        Drop parts of the scenario, trying each of *variations*, until no part can be dropped.

        Returns:
            Whether something was dropped.
        """
        candidates = list(smaller(self.best.scenario))
        position = failures = 0
        has_dropped = False
        while failures < len(candidates):
            candidate = candidates[position % len(candidates)]
            if any(self._takes(_varied(candidate, seed, times)) for seed, times in variations):
                # The list has changed: the candidate after the one that was taken is at its position now.
                candidates, failures, has_dropped = list(smaller(self.best.scenario)), 0, True
            else:
                position, failures = position % len(candidates) + 1, failures + 1
        return has_dropped

    def _takes(self, candidate: Scenario) -> bool:
        """Whether *candidate* shows the violation, with faults at the noted calls or at corresponding ones."""
        found = self._try(candidate)
        if found and self._kind not in found.violations:
            found = self._try(replace(candidate, faults=aligned(candidate.faults or {}, self.best, found)))
        if not found or self._kind not in found.violations:
            return False
        # The run did not meet the other noted faults.
        self.best = dataclasses.replace(found, scenario=replace(found.scenario, faults=found.faults))
        return True

    def _try(self, scenario: Scenario) -> Result | None:
        """Run *scenario*; None: it has been run before."""
        if (text := _text(scenario)) in self._tried:
            return None
        if self.runs >= self._most:
            raise _BudgetSpent
        self._tried.add(text)
        self.runs += 1
        return self._run(scenario)


def sound(scenario: Scenario) -> Scenario:
    """*scenario* without references to missing objects, and with crashes of missing appliers moved to the first."""
    nodes = {*SERVERS, *(f"applier{number}" for number in range(scenario.appliers))}
    clients = tuple(
        replace(client, actions=tuple(_sound_action(action) for action in client.actions))
        for client in scenario.clients
        if client.actions
    )
    return replace(
        scenario,
        clients=clients,
        crashes=tuple(crash if crash.node in nodes else replace(crash, node="applier0") for crash in scenario.crashes),
        jumps=tuple(jump if jump.node in nodes else replace(jump, node="applier0") for jump in scenario.jumps),
    )


def shown(result: Result, kind: str) -> list[str]:
    """The lines about effects, clients, faults and operations in a trace, up to the violation of *kind*."""
    lines = []
    for line in result.lines:
        if _SHOWN.search(line):
            lines.append(line)
        if f"VIOLATION {kind}:" in line:
            break
    return lines


def report(best: Result, kind: str, runs: int, seconds: float, *, is_whole: bool = False) -> str:
    """
    The result of a reduction as text for people.

    Args:
        best: The smallest run.
        kind: The violation.
        runs: How many runs it took.
        seconds: How much processor time.
        is_whole: Whether to show all lines of the trace.
    """
    lines = best.lines if is_whole else shown(best, kind)
    figures = f"{runs} runs in {seconds:.1f} s of one core: {best.digest}"
    return "\n".join((json.dumps(to_json(best.scenario), indent=1), *lines, figures))


def cpu_seconds() -> float:
    """Processor time of this process and its children so far."""
    return sum(os.times()[:4])


_SHOWN = re.compile(
    r"^ *[0-9.]+ +[0-9]+ (?:"
    r"platform +.* (?:created|updated|deleted|labelled|wrote|removed) "
    r"|client .*"
    r"|oracle .*"
    r"|world +all faults stop"
    r"|\S+ +(?:is killed|stands still|starts, incarnation (?!1$)|drops )"
    rf"|\S+ +calls .* (?:{'|'.join(sorted(WORDS))})$"
    # Begin, start and finish show as the state that they lead to.
    r"|stack +serves ClaimOperation "
    r"|store +\S+ of \S+ is "
    r")"
)


def _varied(scenario: Scenario, seed: int, times: float) -> Scenario:
    """*scenario* with *seed* added to its own, and with the times within operations multiplied by *times*."""
    clients = tuple(
        replace(client, actions=tuple(_timed(action, times) for action in client.actions))
        for client in scenario.clients
    )
    return replace(scenario, seed=scenario.seed + seed, clients=clients)


def _timed(action: Action, times: float) -> Action:
    cancel_after = round(action.cancel_after * times, 3) if action.cancel_after > 0 else action.cancel_after
    return replace(action, cancel_after=cancel_after, leave_after=round(action.leave_after * times, 3))


def _worth_running(candidate: Scenario) -> Iterator[Scenario]:
    """*candidate*, made sound; nothing if no client is left, or if it is not a valid scenario."""
    candidate = sound(candidate)
    with contextlib.suppress(ScenarioInvalid):
        check(candidate)
        if candidate.clients:
            yield candidate


def _names(scenario: Scenario) -> list[str]:
    """Names of all fields that can be reduced, in the order in which they are tried."""
    found = dict.fromkeys(spot.field.name for spot in _spots(scenario))
    middle = [name for name in found if name not in (*_EARLY, *_LATE)]
    return [name for name in (*_EARLY, *middle, *_LATE) if name in found]


def _spots(scenario: Scenario) -> list[Spot]:
    """All fields that can be reduced; a value comes before the values in it."""
    found: list[Spot] = []
    level: list[tuple[Place, Any]] = [((), scenario)]
    while level:
        following: list[tuple[Place, Any]] = []
        for place, owner in level:
            for field in dataclasses.fields(owner):
                value = getattr(owner, field.name)
                if _can_shrink(field, value):
                    found.append(Spot(place, type(owner), field, value))
                if isinstance(value, tuple):
                    parts = [((*place, (field.name, number)), each) for number, each in enumerate(value)]
                else:
                    parts = [((*place, (field.name, None)), value)]
                following += [
                    (at, each) for at, each in parts if dataclasses.is_dataclass(each) and not _is_whole(each)
                ]
        level = following
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, WHOLE)


def _can_shrink(field: "dataclasses.Field[Any]", value: Any) -> bool:
    if isinstance(value, tuple | Mapping):
        return bool(value)
    return field.default is not dataclasses.MISSING and value is not None and value != field.default


def _chunks(cuts: Sequence[Cut]) -> Iterator[Sequence[Cut]]:
    """All of *cuts*, then each half, each quarter and so on, and each single one at the end."""
    size = len(cuts)
    while size:
        for first in range(0, len(cuts), size):
            yield cuts[first : first + size]
        size = 0 if size == 1 else (size + 1) // 2


def _cuts(spot: Spot) -> list[Cut]:
    """The cuts of one field: each element, or the whole value."""
    if isinstance(spot.value, tuple):
        return [Cut(spot, number, getattr(each, "name", each)) for number, each in enumerate(spot.value)]
    if isinstance(spot.value, Mapping):
        return [Cut(spot, key, key) for key in spot.value]
    return [Cut(spot, None, None)]


def _namesakes(cuts: Sequence[Cut]) -> Iterator[Sequence[Cut]]:
    """Elements with the same name, such as an object in the packages of all actions."""
    by_name: dict[Any, list[Cut]] = {}
    for cut in cuts:
        if isinstance(cut.name, str):
            by_name.setdefault(cut.name, []).append(cut)
    return (same for same in by_name.values() if len(same) > 1)


def _without(scenario: Scenario, cuts: Sequence[Cut]) -> Scenario:
    spots = {(cut.spot.place, cut.spot.field.name): cut.spot for cut in cuts}
    for key, spot in spots.items():
        dropped = {cut.element for cut in cuts if (cut.spot.place, cut.spot.field.name) == key}
        scenario = _changed(scenario, spot, _remaining(spot, dropped))
    return scenario


def _remaining(spot: Spot, dropped: Collection[int | str | None]) -> Any:
    if isinstance(spot.value, tuple):
        return tuple(each for number, each in enumerate(spot.value) if number not in dropped)
    if isinstance(spot.value, Mapping):
        return {key: each for key, each in spot.value.items() if key not in dropped}
    return spot.field.default


def _changed(value: Any, spot: Spot, new: Any) -> Any:
    """*value* with the field of *spot* replaced by *new*."""

    def put(owner: Any, place: Place) -> Any:
        if not place:
            return replace(owner, **{spot.field.name: new})
        (name, number), *rest = place
        held = getattr(owner, name)
        if number is None:
            return replace(owner, **{name: put(held, tuple(rest))})
        return replace(owner, **{name: (*held[:number], put(held[number], tuple(rest)), *held[number + 1 :])})

    return put(value, spot.place)


def _sound_action(action: Action) -> Action:
    names = {item.name for item in action.items}
    items = tuple(
        replace(item, labels=tuple(label for label in item.labels if label in names))
        for item in action.items
        if item.name != "alarm" or "hook" in names
    )
    return replace(action, items=items)


def _text(scenario: Scenario) -> str:
    return json.dumps(to_json(scenario), sort_keys=True)
