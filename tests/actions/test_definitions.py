"""Definitions as values, and their canonical texts."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.canonical import definition_text
from services.actions.definitions import (
    Action,
    ActionObject,
    ActionRun,
    ActionSet,
    Blueprint,
    ConfigMap,
    ConfigMapSource,
    Definition,
    Option,
    Phase,
    Predecessor,
    Retry,
    SecretPlace,
    SecretSource,
)
from services.actions.durations import DAY, HOUR, MINUTE, SECOND, duration_text, parse_duration
from services.actions.validation import validate
from tests.actions.documents import ACTION_SET, BLUEPRINT, CONFIG_MAP, REMOVED, SUCCESSOR, changed, sound
from tests.actions.functions import LATER_FUNCTIONS
from tests.strategies import json_values


def test_a_blueprint_is_read_into_values() -> None:
    [blueprint] = sound(BLUEPRINT).definitions
    assert isinstance(blueprint, Blueprint)
    assert (blueprint.name, blueprint.labels) == ("stack-backup", {"team": "storage"})
    assert (blueprint.description, [*blueprint.actions]) == ("Backs a stack up", ["backup", "restore", "dump"])
    snapshot = "{{ phases.export.output.snapshot }}"
    assert blueprint.actions["backup"] == Action(
        phases=(
            Phase("pause", "SetFields", arguments={"kind": "Task", "all": True, "set": {"/status": "inactive"}}),
            Phase("export", "ExportStack", timeout=2 * MINUTE),
            Phase("verify", "VerifySnapshot", arguments={"snapshot": snapshot}, retry=Retry(3, SECOND, MINUTE)),
        ),
        options={"tag": Option(default="manual"), "mode": Option(default="full", choices=("full", "light"))},
        output_artifacts={"stackBackup": {"snapshot": snapshot, "tag": "{{ options.tag }}"}},
        defer_phase=Phase(
            "resume",
            "SetFields",
            arguments={"restore": "{{ default(phases.pause.output.original, []) }}"},
            condition="{{ has(phases.pause.output.original) }}",
        ),
    )


def test_an_action_set_is_read_into_values() -> None:
    _, action_set, successor, config_map = sound(BLUEPRINT, ACTION_SET, SUCCESSOR, CONFIG_MAP).definitions
    assert config_map == ConfigMap("names", {"stack": "prod"})
    overrides = ActionRun(options={"reason": "again"})
    assert successor == ActionSet(predecessor=Predecessor("nightly", "restore"), overrides=overrides)
    assert action_set == ActionSet(
        "nightly",
        (
            ActionRun("backup", "stack-backup", ActionObject("Stack", "prod", org="factory"), options={"tag": "night"}),
            ActionRun(
                "restore",
                "stack-backup",
                ActionObject("Stack", "prod"),
                {"stackBackup": {"snapshot": "sha256-x"}},
                {"names": ConfigMapSource({"stack": "prod"})},
                {
                    "slack": {
                        "token": SecretSource(SecretPlace.VARIABLE, "SLACK_TOKEN"),
                        "key": SecretSource(SecretPlace.FILE, "slack/key"),
                        "url": SecretSource(SecretPlace.REQUEST),
                    }
                },
                {"reason": "test"},
            ),
        ),
        wait=30 * MINUTE,
    )


def canonical(document: Any) -> str:
    """The canonical text of a sound document, which may use the blueprint of the tests."""
    *_, definition = sound(*([] if document["kind"] == "Blueprint" else [BLUEPRINT]), document).definitions
    assert definition
    return definition_text(definition)


@pytest.mark.parametrize("document", [BLUEPRINT, ACTION_SET, SUCCESSOR, CONFIG_MAP], ids=lambda each: each["kind"])
def test_a_canonical_text_reads_as_the_same_definition(document: dict[str, Any]) -> None:
    text = canonical(document)
    assert canonical(json.loads(text)) == text
    assert json.loads(text)["apiVersion"] == "pkger/v1"


A = "spec.actions.backup."
P = f"{A}phases[2]."


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (BLUEPRINT, f"{A}kind", "Stack"),
        (BLUEPRINT, f"{A}kind", None),
        (BLUEPRINT, f"{A}description", ""),
        (BLUEPRINT, f"{A}secretNames", []),
        (BLUEPRINT, f"{A}options.tag.required", False),
        (BLUEPRINT, f"{A}phases[1].timeout", "120s"),
        (BLUEPRINT, f"{A}phases[1].args", {}),
        (BLUEPRINT, f"{A}phases[1].args", {"partial": None}),
        (BLUEPRINT, f"{P}idempotent", False),
        (BLUEPRINT, f"{P}retry.backoff", "1000ms"),
        (BLUEPRINT, f"{P}retry.maxBackoff", "1m"),
        (BLUEPRINT, "spec.actions.restore.outputArtifacts", {}),
        (ACTION_SET, "spec.wait", "0h30m"),
        (ACTION_SET, "spec.sequential", False),
        (ACTION_SET, "spec.actions[0].secrets", {}),
        (ACTION_SET, "spec.actions[1].object.target", {}),
        (changed(ACTION_SET, "spec.wait", "10m"), "spec.wait", REMOVED),
        (changed(SUCCESSOR, "spec.overrides", {}), "spec.overrides", REMOVED),
        (CONFIG_MAP, "metadata.labels", {}),
    ],
)
def test_equal_definitions_have_equal_texts(document: dict[str, Any], path: str, value: Any) -> None:
    assert canonical(changed(document, path, value)) == canonical(document)


def test_the_order_of_names_and_of_keys_does_not_matter() -> None:
    names = "spec.actions.restore.inputArtifactNames"
    texts = [canonical(changed(BLUEPRINT, names, order)) for order in (["stackBackup", "a"], ["a", "stackBackup"])]
    assert texts[0] == texts[1]
    assert canonical(dict(reversed([*BLUEPRINT.items()]))) == canonical(BLUEPRINT)


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (BLUEPRINT, f"{A}kind", "Bucket"),
        (BLUEPRINT, f"{A}lock", False),
        (BLUEPRINT, f"{A}lock", True),
        (BLUEPRINT, f"{A}options.tag.default", ""),
        (BLUEPRINT, f"{A}options.tag.default", None),
        (BLUEPRINT, f"{A}options.mode.enum", ["full"]),
        (BLUEPRINT, f"{A}timeout", "1ms"),
        (BLUEPRINT, f"{P}version", "v1"),
        (BLUEPRINT, f"{P}idempotent", True),
        (BLUEPRINT, f"{P}retry.attempts", 4),
        (BLUEPRINT, f"{P}retry.backoff", "0s"),
        (BLUEPRINT, f"{A}deferPhase", None),
        (BLUEPRINT, f"{A}phases[0].args.set", {"/status": None}),
        (ACTION_SET, "spec.wait", "0s"),
        (ACTION_SET, "spec.ttl", "0s"),
        (ACTION_SET, "spec.timeout", "1h"),
        (ACTION_SET, "spec.sequential", True),
        (ACTION_SET, "spec.actions[0].options.tag", ""),
        (ACTION_SET, "spec.actions[1].configMaps.names", {"name": "names"}),
        (ACTION_SET, "spec.actions[1].secrets.slack.token", {"given": True}),
        (SUCCESSOR, "spec.overrides", {}),
        (SUCCESSOR, "spec.from.action", "delete"),
        (CONFIG_MAP, "spec.data", {}),
        (CONFIG_MAP, "metadata.labels", {"a": ""}),
    ],
)
def test_other_definitions_have_other_texts_that_read_back(document: dict[str, Any], path: str, value: Any) -> None:
    text = canonical(changed(document, path, value))
    assert text != canonical(document)
    assert canonical(json.loads(text)) == text


@pytest.mark.parametrize(
    ("text", "length", "canonical_text"),
    [
        ("1m30s", 90 * SECOND, "1m30s"),
        ("90s", 90 * SECOND, "1m30s"),
        ("24h", DAY, "24h"),
        ("1500ms", 1_500, "1s500ms"),
        ("1s1h1ms", HOUR + SECOND + 1, "1h1s1ms"),
        ("007m", 7 * MINUTE, "7m"),
        ("0ms", 0, "0s"),
    ],
)
def test_durations(text: str, length: int, canonical_text: str) -> None:
    assert parse_duration(text) == length
    assert duration_text(length) == canonical_text


@pytest.mark.parametrize("text", ["", "1", "-1s", "1.5h", "1 s", "1d", "1S", "s", "1us", "1s ", "١s", "1" * 13 + "s"])
def test_texts_that_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(0, 10**12))
def test_the_text_of_a_duration_reads_as_its_length(length: int) -> None:
    assert parse_duration(duration_text(length)) == length


def places(value: Any, pointer: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The pointers to all values in a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [pointer, *(each for key, item in inner for each in places(item, (*pointer, key)))]


def put(value: Any, pointer: tuple[str | int, ...], new: Any) -> Any:
    """A copy of *value* with *new* at *pointer*."""
    if not pointer:
        return new
    first, *rest = pointer
    if isinstance(value, dict):
        return {**value, first: put(value.get(first), tuple(rest), new)}
    return [put(item, tuple(rest), new) if position == first else item for position, item in enumerate(value)]


@st.composite
def documents(draw: st.DrawFn) -> list[Any]:
    """The documents of the tests, each with some values replaced by others or by values of elsewhere."""
    whole: Any = [BLUEPRINT, ACTION_SET, SUCCESSOR, CONFIG_MAP]
    own = [pointer for pointer in places(whole) if pointer]
    for _ in range(draw(st.integers(1, 4))):
        pointer = draw(st.sampled_from(own))
        texts = st.sampled_from(["", "v1", "x-y", "0s", "{{ phases.export.output }}", "{{ x", "Sleep", "acme/Scan"])
        new = draw(json_values | texts | st.dictionaries(st.sampled_from(["name", "spec", "{{ x }}"]), json_values))
        present = set(places(whole))
        if pointer in present:
            whole = put(whole, pointer, new)
    return list(whole)


def definitions_of(values: list[Any]) -> list[Definition]:
    outcome = validate(values, LATER_FUNCTIONS)
    assert [place for place, definition in enumerate(outcome.definitions) if definition is None] == sorted(
        outcome.faults
    )
    return [definition for definition in outcome.definitions if definition]


@given(st.lists(json_values | st.fixed_dictionaries({"kind": st.sampled_from(["Blueprint", "ActionSet"])}), max_size=3))
def test_any_json_values_are_answered(values: list[Any]) -> None:
    assert definitions_of(values) == []


@given(documents())
def test_a_document_has_faults_or_a_text_that_reads_as_the_same_definition(values: list[Any]) -> None:
    for definition in definitions_of(values):
        others = [each for each in values if isinstance(each, dict) and each.get("kind") == "Blueprint"]
        again = json.loads(definition_text(definition))
        outcome = validate([again] if isinstance(definition, Blueprint) else [*others, again], LATER_FUNCTIONS)
        assert outcome.definitions[-1] == definition
