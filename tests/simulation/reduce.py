"""Reduction: the smallest scenario that shows the same violation, and what of its trace tells (simulation.md 6)."""

import dataclasses
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.simulation.faults import WORDS
from tests.simulation.running import HarnessBroken, Result
from tests.simulation.scenario import SERVERS, Action, Crash, Scenario, to_json

MOST_RUNS = 400
"""Runs that one reduction takes at most."""

VARIANT = 1_000_003
"""What is added to the seed for the second try of a candidate: the schedule may shift when something is left out."""

WHOLE = (Crash,)
"""Values that are dropped or kept, never changed: another place of a crash is no smaller scenario."""

_EARLY, _LATE = ("clients", "crashes", "faults", "actions"), ("pause", "version", "features")
"""Fields that are dropped before, or after, all others."""

_SHIFTS = {"actions": 50, "items": 2, "secrets": 1}
"""By how many calls a noted fault may move when an element of a field is dropped."""

Place = tuple[tuple[str, int | None], ...]
"""Where a value stands in a scenario: names of fields, each with a position where the field is a tuple."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One field of one value in a scenario."""

    place: Place
    owner: type
    field: "dataclasses.Field[Any]"
    value: Any


def smaller(scenario: Scenario) -> Iterator[Scenario]:
    """
    Scenarios with less in them: what drops most comes first.

    Each field of each value is reset everywhere at once, then in one place, then by element. This reads the fields of
    the classes in ``scenario.py``: a new field is reduced without a change here.
    """
    for name in _names(scenario):
        spots = [spot for spot in _spots(scenario) if spot.field.name == name]
        candidates = itertools.chain(_without_all(scenario, spots), *(_without_some(scenario, spot) for spot in spots))
        yield from _worth_running(candidates)
    yield from _worth_running(_with_earlier_faults(scenario))


def reduced(
    result: Result, kind: str, run: Callable[[Scenario], Result], *, most: int = MOST_RUNS
) -> tuple[Result, int]:
    """
    Reduce a run that shows a violation.

    Args:
        result: The run.
        kind: The kind of violation that has to stay.
        run: Runs a scenario.
        most: How many runs this takes at most.

    Returns:
        The smallest run that still shows *kind*, and how many runs it took to find it.

    Raises:
        HarnessBroken: The faults of the run, noted, do not make the same run.
    """
    best, runs = run(replace(result.scenario, faults=result.faults)), 1
    if best.digest != result.digest:
        raise HarnessBroken(f"seed {result.scenario.seed}: with noted faults the hash is {best.digest}")
    tried = {_text(best.scenario)}
    is_done = False
    while not is_done:
        is_done, position = True, 0
        # A candidate that was taken makes room: what followed it stands at its position now.
        while (candidate := next(itertools.islice(smaller(best.scenario), position, None), None)) is not None:
            position += 1
            for variant in (candidate, replace(candidate, seed=candidate.seed + VARIANT)):
                if _text(variant) in tried:
                    continue
                if runs >= most:
                    return best, runs
                tried.add(_text(variant))
                runs += 1
                found = run(variant)
                if kind in found.violations:
                    best, position, is_done = _with_its_faults(found), position - 1, False
                    break
    return best, runs


def sound(scenario: Scenario) -> Scenario:
    """*scenario* without what names something that is not in it any more."""
    nodes = {*SERVERS, *(f"applier{number}" for number in range(scenario.appliers))}
    crashes = tuple(crash for crash in scenario.crashes if crash.node in nodes)
    faults = {
        call: fault
        for call, fault in (scenario.faults or {}).items()
        if not (caller := _call(call)[1]).startswith("applier") or caller in nodes
    }
    clients = tuple(
        replace(client, actions=tuple(_sound_action(action) for action in client.actions))
        for client in scenario.clients
        if client.actions
    )
    return replace(
        scenario, crashes=crashes, clients=clients, faults=scenario.faults if scenario.faults is None else faults
    )


def shown(result: Result, kind: str) -> list[str]:
    """The lines of a trace up to the violation of *kind* that tell of effects, clients, faults and operations."""
    lines = []
    for line in result.lines:
        if _TELLS.search(line):
            lines.append(line)
        if f"VIOLATION {kind}:" in line:
            break
    return lines


_TELLS = re.compile(
    r"^ *[0-9.]+ +[0-9]+ (?:"
    r"platform +.* (?:created|updated|deleted|labelled|wrote|removed) "
    r"|client .*"
    r"|oracle .*"
    r"|world +all faults stop"
    r"|\S+ +(?:is killed|stands still|starts, incarnation (?!1$)|drops )"
    rf"|\S+ +calls .* (?:{'|'.join(sorted(WORDS))})$"
    # Begin, start and finish are told by the state that they lead to.
    r"|stack +serves ClaimOperation "
    r"|store +\S+ of \S+ is "
    r")"
)


def _worth_running(candidates: Iterator[Scenario]) -> Iterator[Scenario]:
    """Without scenarios in which nobody asks for anything: they show nothing."""
    return (candidate for candidate in map(sound, candidates) if candidate.clients)


def _names(scenario: Scenario) -> list[str]:
    """Names of all fields that something can be dropped from, in the order in which that is tried."""
    found = dict.fromkeys(spot.field.name for spot in _spots(scenario))
    middle = [name for name in found if name not in (*_EARLY, *_LATE)]
    return [name for name in (*_EARLY, *middle, *_LATE) if name in found]


def _spots(scenario: Scenario) -> list[Spot]:
    """Each field that something can be dropped from; what contains others comes before them."""
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


def _nothing(spot: Spot) -> Any:
    """The value of a field with nothing in it."""
    if isinstance(spot.value, tuple | Mapping):
        return type(spot.value)()
    return spot.field.default


def _without_all(scenario: Scenario, spots: list[Spot]) -> Iterator[Scenario]:
    if len(spots) > 1:
        for spot in spots:
            scenario = _changed(scenario, spot, _nothing(spot))
        yield scenario


def _without_some(scenario: Scenario, spot: Spot) -> Iterator[Scenario]:
    yield _changed(scenario, spot, _nothing(spot))
    if isinstance(spot.value, tuple) and len(spot.value) > 1:
        for number in range(len(spot.value)):
            yield _changed(scenario, spot, spot.value[:number] + spot.value[number + 1 :])
    elif isinstance(spot.value, Mapping) and len(spot.value) > 1:
        for dropped in spot.value:
            yield _changed(scenario, spot, {key: value for key, value in spot.value.items() if key != dropped})


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


def _with_earlier_faults(scenario: Scenario) -> Iterator[Scenario]:
    """
    Scenarios without one action, object or secret, and with a noted fault at an earlier call of its method.

    A fault is noted by the number of its call: without what came before it, the same call has a lower number.
    """
    faults = scenario.faults or {}
    for name, most in _SHIFTS.items():
        for spot in _spots(scenario):
            if spot.field.name != name:
                continue
            for fewer, call in itertools.product(_without_some(scenario, spot), faults):
                method, caller, number = _call(call)
                for earlier in range(number - 1, max(number - most, 0) - 1, -1):
                    moved = {(f"{method} {caller}/{earlier}" if key == call else key): faults[key] for key in faults}
                    yield replace(fewer, faults=moved)


def _call(name: str) -> tuple[str, str, int]:
    """Method, caller and number of a call such as "Mutate applier0/3"."""
    method, _, rest = name.partition(" ")
    caller, _, number = rest.rpartition("/")
    return method, caller, int(number)


def _sound_action(action: Action) -> Action:
    names = {item.name for item in action.items}
    items = tuple(
        replace(item, labels=tuple(label for label in item.labels if label in names))
        for item in action.items
        if item.name != "alarm" or "hook" in names
    )
    return replace(action, items=items)


def _with_its_faults(result: Result) -> Result:
    """*result* with the faults that calls met: others that were noted had no effect."""
    return dataclasses.replace(result, scenario=replace(result.scenario, faults=result.faults))


def _text(scenario: Scenario) -> str:
    return json.dumps(to_json(scenario), sort_keys=True)
