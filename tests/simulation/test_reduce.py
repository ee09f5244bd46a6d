"""Reduction drops the parts of a scenario that the violation does not need, and no others."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.mutation_search import search
from tests.simulation.mutations import MUTATIONS
from tests.simulation.reduce import VARIANT, reduced, smaller, sound
from tests.simulation.running import HarnessBroken, Result
from tests.simulation.scenario import Action, Client, Crash, Item, Platform, Scenario, from_json, to_json, write_file

FOUND = Path(__file__).parent / "found" / "a_lost_creation_is_not_listed.json"

RED, CPU, HOOK, ALARM = Item("red", 2), Item("cpu", labels=("red",)), Item("hook"), Item("alarm")

FULL = Scenario(
    7,
    ("kills", "late"),
    appliers=2,
    lease=9,
    platform=Platform("SEARCH", batch=2),
    clients=(
        Client("s0", "s0 ", (Action("apply", (RED, CPU), 1.5, ("raw",), ("one",), 0.5, 2.0), Action("uninstall"))),
        Client("s1", "s1 ", (Action("plan", (HOOK, ALARM), applies=2, lag=1.0),)),
    ),
    crashes=(Crash("applier1", 20), Crash("stack", 30)),
    faults={"Mutate applier0/2": "late", "Mutate applier1/0": "late"},
)

LEAST = (Client("s1", "s1 ", (Action("plan"),)),)


def result(scenario: Scenario, *kinds: str) -> Result:
    """A run that meets all noted faults and shows *kinds*."""
    return Result(
        scenario, "hash", dict.fromkeys(kinds, "problem"), 1, 1.0, 1, Counter(), [], dict(scenario.faults or {})
    )


def test_each_candidate_is_a_valid_smaller_scenario() -> None:
    candidates = list(smaller(FULL))
    assert len(candidates) > 30
    for candidate in candidates:
        assert candidate != FULL
        assert from_json(json.loads(json.dumps(to_json(candidate)))) == candidate
        assert len(json.dumps(to_json(candidate))) < len(json.dumps(to_json(FULL)))


@pytest.mark.parametrize(
    "expected",
    [
        replace(FULL, clients=FULL.clients[1:]),
        replace(FULL, clients=FULL.clients[:1]),
        replace(FULL, crashes=()),
        replace(FULL, crashes=FULL.crashes[:1]),
        replace(FULL, faults={}),
        replace(FULL, faults={"Mutate applier1/0": "late"}),
        replace(FULL, appliers=1, crashes=(Crash("applier0", 20), Crash("stack", 30))),
        replace(FULL, lease=30),
        replace(FULL, platform=replace(FULL.platform, identity="NATIVE")),
        replace(FULL, features=()),
    ],
)
def test_something_is_dropped_from_a_scenario(expected: Scenario) -> None:
    assert expected in list(smaller(FULL))


@pytest.mark.parametrize(
    ("client", "action", "expected"),
    [
        (0, 0, {"items": (replace(CPU, labels=()),)}),
        (0, 0, {"items": (RED, replace(CPU, labels=()))}),
        (0, 0, {"items": (replace(RED, version=0), CPU)}),
        (0, 0, {"pause": 0.0}),
        (0, 0, {"skip": ()}),
        (0, 0, {"secrets": ()}),
        (0, 0, {"cancel_after": -1.0}),
        (0, 0, {"leave_after": 0.0}),
        (1, 0, {"applies": 1}),
        (1, 0, {"lag": 0.0}),
        (1, 0, {"items": (HOOK,)}),
        (1, 0, {"items": ()}),
    ],
)
def test_something_is_dropped_from_an_action(client: int, action: int, expected: dict[str, object]) -> None:
    wanted = replace(FULL.clients[client].actions[action], **expected)  # type: ignore[arg-type]
    assert any(
        len(each.clients) > client and len(each.clients[client].actions) > action
        and each.clients[client].actions[action] == wanted
        for each in smaller(FULL)
    )  # fmt: skip


def test_many_things_are_dropped_before_single_ones() -> None:
    crashes = tuple(Crash("stack", at) for at in range(1, 6))
    left = [
        [crash.at for crash in each.crashes]
        for each in smaller(Scenario(1, (), clients=LEAST, crashes=crashes, faults={}))
    ]
    singles = [[2, 3, 4, 5], [1, 3, 4, 5], [1, 2, 4, 5], [1, 2, 3, 5], [1, 2, 3, 4]]
    assert left == [[], [4, 5], [1, 2, 3], [3, 4, 5], [1, 2, 5], [1, 2, 3, 4], *singles]


def test_an_object_is_dropped_from_all_packages_at_once() -> None:
    actions = (Action("apply", (RED, HOOK)), Action("apply", (replace(RED, version=1), Item("raw"))))
    scenario = Scenario(1, (), clients=(Client("s0", "", actions),), faults={})
    fewer = tuple(replace(action, items=action.items[1:]) for action in actions)
    assert replace(scenario, clients=(Client("s0", "", fewer),)) in list(smaller(scenario))


@settings(max_examples=25)
@given(st.sets(st.integers(1, 8), min_size=1), st.sets(st.sampled_from(["raw", "cpu", "region", "clean"])))
def test_exactly_the_needed_parts_stay(crashes: set[int], names: set[str]) -> None:
    items = tuple(Item(name) for name in ("raw", "cpu", "region", "clean"))
    full = Scenario(
        1,
        (),
        clients=(Client("s0", "", (Action("apply", items),)),),
        crashes=tuple(Crash("stack", at) for at in range(1, 9)),
        faults={},
    )

    def go(scenario: Scenario) -> Result:
        asked = {item.name for item in scenario.clients[0].actions[0].items}
        is_shown = crashes <= {crash.at for crash in scenario.crashes} and names <= asked
        return result(scenario, *(["I3"] if is_shown else []))

    best, _ = reduced(result(full, "I3"), "I3", go)
    assert {crash.at for crash in best.scenario.crashes} == crashes
    assert {item.name for item in best.scenario.clients[0].actions[0].items} == names


def test_the_smallest_scenario_has_no_candidates() -> None:
    assert list(smaller(Scenario(1, (), clients=LEAST, faults={}))) == []


def test_an_object_that_needs_another_one_is_dropped_with_it() -> None:
    action = Action("apply", (CPU, ALARM))
    assert sound(Scenario(1, (), clients=(Client("s0", "", (action,)),))).clients[0].actions[0].items == (Item("cpu"),)


def test_a_violation_keeps_the_object_and_the_crash_that_it_needs() -> None:
    """Other kinds of violation do not count."""
    ran = []

    def go(scenario: Scenario) -> Result:
        ran.append(scenario)
        names = [item.name for client in scenario.clients for action in client.actions for item in action.items]
        is_shown = "hook" in names and Crash("stack", 30) in scenario.crashes
        return result(scenario, "CONTENT" if is_shown else "STUCK")

    best, runs = reduced(result(FULL, "CONTENT"), "CONTENT", go)
    client = Client("s1", "s1 ", (Action("plan", (HOOK,)),))
    assert best.scenario == Scenario(7, (), clients=(client,), crashes=(Crash("stack", 30),), faults={})
    assert runs == len(ran)
    texts = [json.dumps(to_json(scenario)) for scenario in ran]
    assert len(set(texts)) == len(texts), "no scenario is run twice"


def test_a_candidate_is_tried_with_another_seed() -> None:
    def go(scenario: Scenario) -> Result:
        return result(scenario, *(["I3"] if scenario.crashes or scenario.seed == 7 + VARIANT else []))

    best, _ = reduced(result(FULL, "I3"), "I3", go)
    assert best.scenario == Scenario(7 + VARIANT, (), clients=LEAST, faults={})


def traced(scenario: Scenario) -> Result:
    """A run in which each object is created by a mutation of its own; a fault at the one of the hook shows I3."""
    lines, met = [], {}
    names = [item.name for client in scenario.clients for action in client.actions for item in action.items]
    for number, name in enumerate(names):
        call = f"Mutate applier{scenario.appliers - 1}/{number}"
        fault = (scenario.faults or {}).get(call, "")
        lines += [
            f"    0.100000      10 applier{scenario.appliers - 1}   calls {call} of platform {fault}".rstrip(),
            f"    0.200000      20 platform   {call} created Thing {number:016x} '{name}'",
        ]
        if fault:
            met[call] = fault
    is_shown = any(names[int(call.rpartition("/")[2])] == "hook" for call in met)
    return replace(result(scenario, *(["I3"] if is_shown else [])), lines=lines, faults=met)


def test_a_noted_fault_stays_with_its_call() -> None:
    """The name of the call changes with fewer calls before it and with another applier."""
    actions = (Action("apply", (RED, CPU)), Action("apply", (HOOK, Item("raw"))))
    noted = {"Mutate applier1/0": "late", "Mutate applier1/2": "late"}
    full = Scenario(1, (), appliers=2, clients=(Client("s0", "", actions),), faults=noted)
    best, _ = reduced(traced(full), "I3", traced)
    client = Client("s0", "", (Action("apply", (HOOK,)),))
    assert best.scenario == Scenario(1, (), clients=(client,), faults={"Mutate applier0/0": "late"})


def test_reduction_tries_an_earlier_cancel_for_a_smaller_package() -> None:
    client = Client("s0", "", (Action("apply", (RED, HOOK), cancel_after=0.4),))

    def go(scenario: Scenario) -> Result:
        [action] = scenario.clients[0].actions
        return result(scenario, *(["I3"] if 0 < action.cancel_after <= 0.2 * len(action.items) else []))

    best, _ = reduced(result(Scenario(1, (), clients=(client,), faults={}), "I3"), "I3", go)
    assert best.scenario.clients == (Client("s0", "", (Action("apply", (Item("hook"),), cancel_after=0.2),)),)


def test_reduction_ends_with_its_budget() -> None:
    best, runs = reduced(result(FULL, "I3"), "I3", lambda scenario: result(scenario, "I3"), most=3)
    assert runs == 3
    assert best.scenario.clients == FULL.clients[1:]


def test_faults_that_do_not_make_the_same_run_are_a_defect_of_the_simulation() -> None:
    with pytest.raises(HarnessBroken, match="with noted faults the hash is other"):
        reduced(result(FULL, "I3"), "I3", lambda scenario: replace(result(scenario, "I3"), digest="other"))


@pytest.mark.slow
def test_a_scenario_that_was_found_is_reduced_to_what_it_needs(tmp_path: Path) -> None:
    """With the defect put back, the scenario shows it, and a crash that does not matter is dropped."""
    found = from_json(json.loads(FOUND.read_text("utf-8")))
    write_file(tmp_path / "scenario.json", to_json(replace(found, crashes=(*found.crashes, Crash("parser", 2000)))))
    [mutation] = [each for each in MUTATIONS if each.name == "one_listing_tells_what_did_not_happen"]
    shown_by = search(replace(mutation, kinds=frozenset({"I3"})), scenario=tmp_path / "scenario.json", is_reduced=True)
    least = from_json(shown_by.scenario)
    assert len(json.dumps(to_json(least))) <= len(json.dumps(to_json(found)))
    assert sum(len(client.actions) for client in least.clients) <= 3
    assert least.crashes == ()
    assert "VIOLATION I3" in shown_by.report
