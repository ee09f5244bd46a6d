"""Action sets as they run: their texts, and what follows from them."""

import json
import re
from typing import Any

import pytest
from hypothesis import given

from services.actions.definitions import NO_OBJECT, STACK, Action, ActionObject, Blueprint, Phase
from services.actions.pinned import (
    PinnedAction,
    PinnedActionSet,
    StackPlace,
    blueprint_names,
    input_snapshots,
    objects_of,
    phase_count,
    pinned_text,
    read_pinned,
    reserved_stacks,
    stack_of,
    with_versions,
)
from services.actions.signatures import FUNCTIONS, Effect, Recovery, Signature, SignatureTable
from tests.actions.documents import BLUEPRINT, sound
from tests.actions.functions import LATER_FUNCTIONS
from tests.actions.pinned_values import pinned_action_sets

PROD = ActionObject(STACK, "prod")
TIME = "2026-11-22T10:05:09Z"

EXPORT = Phase("export", "ExportStack")
RESTORE = Phase("restore", "RestoreStack")
SLEEP = Phase("sleep", "Sleep")


def pinned(*actions: Action, name: str = "nightly", target: ActionObject | None = PROD) -> PinnedActionSet:
    """An action set of *actions*, all with one object."""
    return PinnedActionSet(name, TIME, tuple(PinnedAction("run", "tools", action, target) for action in actions))


@given(pinned_action_sets)
def test_a_text_reads_as_the_same_action_set(value: PinnedActionSet) -> None:
    text = pinned_text(value)
    assert read_pinned(text) == value
    assert pinned_text(read_pinned(text)) == text


def test_fields_with_their_defaults_are_left_out() -> None:
    phase = {"name": "export", "function": "ExportStack"}
    target = {"kind": "Stack", "name": "prod"}
    action = {"name": "run", "blueprint": "tools", "action": {"phases": [phase]}, "object": target}
    assert json.loads(pinned_text(pinned(Action((EXPORT,))))) == {"name": "nightly", "time": TIME, "actions": [action]}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"nmae": "x"}, "no field 'nmae'"),
        ({"name": 5}, "int"),
        ({"sequential": 1}, "int"),
        ({"wait": True}, "bool"),
        ({"actions": 5}, "no action set"),
        ({"actions": ["run"]}, "no action set"),
        ({"actions": [{"name": "run", "action": {"phases": []}}]}, "blueprint"),
        ({"actions": [{"name": "run", "blueprint": "tools"}]}, "an action that it does not describe"),
        ({"labels": {"a": None}}, "NoneType"),
        ({"actions": [{"action": {"phases": []}, "secrets": {"a": {"b": {"place": "shelf"}}}}]}, "shelf"),
    ],
)
def test_a_text_of_another_form_is_refused(change: dict[str, Any], problem: str) -> None:
    document = {**json.loads(pinned_text(pinned(Action((EXPORT,))))), **change}
    with pytest.raises(ValueError, match=problem):
        read_pinned(json.dumps(document))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("[]", "no action set"),
        ("null", "no action set"),
        ("{", "unexpected end"),
        ("{}", "no action set"),
        ('{"actions": []}', "'name' and 'time'"),
    ],
)
def test_a_text_that_is_no_action_set_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_pinned(text)


def test_the_digest_is_that_of_the_action_alone() -> None:
    action = Action((EXPORT,))
    digest = PinnedAction("run", "tools", action).digest
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert PinnedAction("other", "else", action, PROD, {"a": "b"}).digest == digest
    assert PinnedAction("run", "tools", Action((SLEEP,))).digest != digest


def test_a_phase_is_named_by_its_index() -> None:
    action = PinnedAction("run", "tools", Action((EXPORT, RESTORE), defer_phase=SLEEP))
    assert [action.phase(index) for index in (0, 1, -1)] == [EXPORT, RESTORE, SLEEP]
    for index in (2, -2):
        with pytest.raises(IndexError):
            action.phase(index)
    with pytest.raises(IndexError):
        PinnedAction("run", "tools", Action((EXPORT, RESTORE))).phase(-1)


def test_counts_and_lists() -> None:
    snapshots = ["sha256:" + each * 64 for each in "ab"]
    copy = ActionObject(STACK, "copy")
    value = PinnedActionSet(
        "nightly",
        TIME,
        (
            PinnedAction("a", "tools", Action((EXPORT, SLEEP), defer_phase=SLEEP), PROD),
            PinnedAction("b", "other", Action((EXPORT,)), PROD, artifacts={"x": {"k": snapshots[1], "l": "sha256:a"}}),
            PinnedAction("c", "tools", Action((EXPORT,), kind=NO_OBJECT), artifacts={"y": {"k": snapshots[0]}}),
            PinnedAction("d", "tools", Action((EXPORT,)), copy, artifacts={"y": {"k": snapshots[0]}}),
        ),
    )
    assert phase_count(value) == 5
    assert blueprint_names(value) == ("other", "tools")
    assert objects_of(value) == (PROD, copy)
    assert input_snapshots(value) == tuple(snapshots)


@pytest.mark.parametrize(
    ("action", "is_reserved"),
    [
        (Action((EXPORT, SLEEP)), False),
        (Action((SLEEP, RESTORE)), True),
        (Action((SLEEP,), defer_phase=RESTORE), True),
        (Action((RESTORE,), lock=False), False),
        (Action((SLEEP,), lock=True), True),
        (Action((RESTORE,), kind=NO_OBJECT), False),
        (Action((RESTORE,), kind=NO_OBJECT, lock=True), False),
        (Action((Phase("each", "ForEach", arguments={"func": "ApplyPackage"}),)), True),
        (Action((Phase("each", "ForEach", arguments={"func": "ReadResource"}),)), False),
        (Action((Phase("scan", "acme/Scan"),)), False),
    ],
)
def test_a_stack_is_reserved_for_actions_that_lock(action: Action, is_reserved: bool) -> None:
    expected = (StackPlace("embedded", "default", "prod"),) if is_reserved else ()
    assert reserved_stacks(pinned(action), LATER_FUNCTIONS) == expected


def test_stacks_are_reserved_once_and_in_order() -> None:
    restore = Action((RESTORE,))
    targets = [
        ActionObject("Bucket", "raw", "prod"),
        ActionObject(STACK, "edge", org="factory"),
        ActionObject(STACK, "prod", platform="embedded", org="default"),
        None,
    ]
    value = PinnedActionSet("x", TIME, tuple(PinnedAction("run", "tools", restore, target) for target in targets))
    places = (StackPlace("embedded", "default", "prod"), StackPlace("embedded", "factory", "edge"))
    assert reserved_stacks(value, FUNCTIONS) == places
    assert stack_of(ActionObject("Bucket", "raw", "prod", "cloud", "o")) == StackPlace("cloud", "o", "prod")


def test_versions_that_are_not_named_are_the_newest() -> None:
    def scan(version: int) -> Signature:
        return Signature("Scan", version, (), (), Effect.READ, Recovery.RERUN)

    table = SignatureTable((scan(1), scan(2)))
    action = Action((Phase("a", "Scan"), Phase("b", "Scan", 1)), defer_phase=Phase("c", "Scan"))
    complete = with_versions(action, table)
    assert [phase.version for phase in complete.phases] == [2, 1]
    assert complete.defer_phase == Phase("c", "Scan", 2)


def test_an_action_stands_once_in_the_text_although_several_runs_have_it() -> None:
    [blueprint] = sound(BLUEPRINT).definitions
    assert isinstance(blueprint, Blueprint)
    runs = [PinnedAction("backup", blueprint.name, blueprint.actions["backup"], PROD)] * 3
    other = PinnedAction("backup", blueprint.name, Action((SLEEP,)), PROD)
    value = PinnedActionSet("nightly", TIME, (*runs, other), blueprints={blueprint.name: blueprint.actions})
    assert pinned_text(value).count("VerifySnapshot") == 2
    assert read_pinned(pinned_text(value)) == value
