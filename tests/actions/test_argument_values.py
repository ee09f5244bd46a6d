"""What phases pass to their functions: parameters of templates, rendered arguments, conditions and artifacts."""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.actions.argument_values import (
    RenderingError,
    is_renderable,
    render_arguments,
    render_artifact,
    render_condition,
)
from services.actions.arguments import Call, output_names
from services.actions.definitions import STACK, Action, ActionObject, Blueprint, Phase, SecretPlace, SecretSource
from services.actions.parameters import (
    Failure,
    Outputs,
    StackFacts,
    StackResource,
    artifact_uses_stack,
    in_defer_phase,
    parameters_of,
    used_secrets,
    uses_stack,
)
from services.actions.phase_reason import PhaseReason
from services.actions.pinned import PinnedAction, PinnedActionSet
from services.actions.reading import JsonPlace
from services.actions.signatures import FUNCTIONS, Argument, ArgumentType, Effect, Recovery, Signature
from services.actions.templates.values import Value
from services.actions.validation import validate
from tests.actions.documents import BLUEPRINT
from tests.actions.functions import LATER_FUNCTIONS
from tests.strategies import json_values

OPERATION = "0123456789abcdef"
SNAPSHOT = f"sha256:{'ab' * 32}"
TOKEN = SecretSource(SecretPlace.VARIABLE, "TOKEN")
KEY = SecretSource(SecretPlace.REQUEST)

RUN = PinnedAction(
    "backup",
    "tools",
    Action((Phase("export", "ExportStack"),)),
    ActionObject(STACK, "prod", platform="embedded", org="default"),
    options={"tag": "night", "count": "12"},
    artifacts={"stackBackup": {"snapshot": SNAPSHOT}},
    config_maps={"names": {"stack": "edge"}},
    secrets={"slack": {"token": TOKEN, "key": KEY}, "pg": {"password": TOKEN}},
)
PINNED = PinnedActionSet("nightly", "2026-11-22T10:05:09Z", (RUN, PinnedAction("dump", "tools", Action(()))))
OUTPUTS: Outputs = {"export": {"snapshot": "sha256:cd", "objects": 42, "names": ["a", "b"], "ok": True, "none": None}}

SECRET = "correct-horse"
PARAMETERS = parameters_of(PINNED, 0, OPERATION, OUTPUTS, secrets={"slack": {"token": SECRET}})

TYPES = Signature(
    "Types",
    1,
    (
        *(Argument(of_type.name.lower(), of_type) for of_type in ArgumentType),
        Argument("mode", ArgumentType.STRING, default="full", choices=("full", "light")),
        Argument("parallel", ArgumentType.INT, minimum=1, maximum=16),
        Argument("some", ArgumentType.LIST, minimum=2),
        Argument("tokens", ArgumentType.STRING_MAP, takes_secrets=True),
    ),
    (),
    Effect.NONE,
    Recovery.RERUN,
)


def rendered(signature: Signature = TYPES, /, **arguments: Any) -> dict[str, Any]:
    return render_arguments(Phase("p", signature.name, arguments=arguments), signature, PARAMETERS)


def function(name: str) -> Signature:
    signature = FUNCTIONS.find(name) or LATER_FUNCTIONS.find(name)
    assert signature
    return signature


def test_the_parameters_of_an_action() -> None:
    stack = StackFacts("0a", "prod", 7, (StackResource("Bucket", "raw", "0b"),))
    assert parameters_of(PINNED, 0, OPERATION, OUTPUTS, stack=stack, secrets={"pg": {"password": "x"}}) == {
        "time": "2026-11-22T10:05:09Z",
        "run": {"name": "nightly", "id": OPERATION, "action": "backup"},
        "object": {"kind": "Stack", "name": "prod", "target": {"platform": "embedded", "org": "default"}},
        "options": {"tag": "night", "count": "12"},
        "configMaps": {"names": {"stack": "edge"}},
        "artifacts": {"stackBackup": {"snapshot": SNAPSHOT}},
        "phases": {"export": {"output": OUTPUTS["export"]}},
        "stack": {
            "id": "0a",
            "name": "prod",
            "generation": 7,
            "resources": [{"kind": "Bucket", "name": "raw", "id": "0b"}],
        },
        "secrets": {"pg": {"password": "x"}},
    }
    assert parameters_of(PINNED, 1, OPERATION, {}) == {
        "time": "2026-11-22T10:05:09Z",
        "run": {"name": "nightly", "id": OPERATION, "action": "dump"},
        "options": {},
        "configMaps": {},
        "artifacts": {},
        "phases": {},
    }


def test_a_resource_as_object_has_its_stack() -> None:
    action = PinnedAction("run", "tools", Action(()), ActionObject("Bucket", "raw", "prod", "cloud", "o"))
    parameters = parameters_of(PinnedActionSet("x", "", (action,)), 0, OPERATION, {})
    place = {"platform": "cloud", "org": "o"}
    assert parameters["object"] == {"kind": "Bucket", "name": "raw", "stack": "prod", "target": place}


def test_a_defer_phase_also_has_the_failure() -> None:
    failure = in_defer_phase({"time": "t"}, Failure("export", PhaseReason.TIMEOUT, "it took too long"))
    reason = {"phase": "export", "reason": "TIMEOUT", "message": "it took too long"}
    assert failure == {"time": "t", "failure": reason}
    condition = Phase("p", "Sleep", condition="{{ 'is ' + failure.reason == 'is TIMEOUT' }}")
    assert render_condition(condition, failure)
    assert in_defer_phase({"time": "t"}, None) == {"time": "t", "failure": {}}


@pytest.mark.parametrize(
    ("phase", "is_used"),
    [
        (Phase("p", "Sleep"), False),
        (Phase("p", "Sleep", condition="{{ stack.generation > 1 }}"), True),
        (Phase("p", "Sleep", arguments={"a": [{"b": "x {{ has(stack.id) }}"}]}), True),
        (Phase("p", "Sleep", arguments={"a": ["stack", "{{ 'stack' + object.stack }}", 5]}), False),
    ],
)
def test_a_stack_is_read_only_if_a_template_uses_it(phase: Phase, is_used: bool) -> None:
    assert uses_stack(phase) is is_used


def test_an_artifact_may_use_the_stack() -> None:
    assert artifact_uses_stack({"a": "{{ time }}", "b": "{{ stack.generation }}"})
    assert not artifact_uses_stack({"a": "{{ time }}"})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"a": "{{ secrets.slack.token }}"}, {"slack": {"token": TOKEN}}),
        ({"a": ["{{ secrets.slack['key'] }}", {"b": "{{ secrets.pg.password }}"}]},
         {"slack": {"key": KEY}, "pg": {"password": TOKEN}}),
        ({"a": "{{ secrets.slack[options.tag] }}"}, {"slack": {"token": TOKEN, "key": KEY}}),
        ({"a": "{{ json(secrets.slack) }}"}, {"slack": {"token": TOKEN, "key": KEY}}),
        ({"a": "{{ default(secrets.slack.other, '') }}"}, {}),
    ],
)  # fmt: skip
def test_only_the_secrets_that_a_phase_uses_are_needed(
    arguments: Mapping[str, Any], expected: Mapping[str, Mapping[str, SecretSource]]
) -> None:
    assert used_secrets(Phase("p", "RunCommand", arguments=arguments), RUN) == expected


def test_arguments_are_rendered_and_have_their_defaults() -> None:
    assert rendered(function("ExportStack")) == {"partial": False}
    restore = rendered(
        function("RestoreStack"),
        snapshot="{{ artifacts.stackBackup.snapshot }}",
        stack="{{ configMaps.names.stack }}-copy",
        prune="{{ phases.export.output.ok }}",
        secrets={"slack-token": "{{ secrets.slack.token }}"},
    )
    assert restore == {
        "snapshot": SNAPSHOT,
        "stack": "edge-copy",
        "prune": True,
        "secrets": {"slack-token": SECRET},
        "allowMissing": False,
    }


def test_an_optional_argument_that_is_null_is_not_passed() -> None:
    null = "{{ phases.export.output.none }}"
    assert rendered(function("ExportStack"), partial=null, stack=null) == {"partial": False}


def test_arguments_of_inner_calls_stay_templates() -> None:
    inner = {"url": "https://{{ item }}.example"}
    values = rendered(function("ForEach"), items="{{ phases.export.output.names }}", func="HTTPRequest", args=inner)
    assert values == {"items": ["a", "b"], "func": "HTTPRequest", "args": inner, "parallel": 1}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"any": "{{ phases.other.output.x }}"}, "TEMPLATE args.any: column 11: there is no 'other'"),
        ({"map": {"a b": ["x", "{{ item }}"]}}, 'TEMPLATE args.map["a b"][1]: column 4: there is no item here'),
        ({"string": "a{{ phases.export.output.none }}"},
         "TEMPLATE args.string: column 5: null is no text; write default(…) with a text instead"),
        ({"string": "{{ phases.export.output.objects }}"},
         "ARGUMENT_INVALID args.string: must be a text, and is an int"),
        ({"bool": "{{ options.tag }}"}, "ARGUMENT_INVALID args.bool: must be a bool, and is a text"),
        ({"int": "{{ phases.export.output.ok }}"}, "ARGUMENT_INVALID args.int: must be a whole number, and is a bool"),
        ({"int": "{{ 1.0 }}"}, "ARGUMENT_INVALID args.int: must be a whole number, and is a double"),
        ({"duration": "{{ options.count }}"},
         "ARGUMENT_INVALID args.duration: must be a duration such as 1m30s, and is another text"),
        ({"duration": "{{ 5 }}"}, "ARGUMENT_INVALID args.duration: must be a duration such as 1m30s, and is an int"),
        ({"list": "{{ options }}"}, "ARGUMENT_INVALID args.list: must be a list, and is a map"),
        ({"map": "{{ phases.export.output.names }}"}, "ARGUMENT_INVALID args.map: must be a mapping, and is a list"),
        ({"strings": ["a", "{{ 1 }}"]},
         "ARGUMENT_INVALID args.strings: must be a list of texts, and has an item that is an int"),
        ({"ints": "{{ phases.export.output.names }}"},
         "ARGUMENT_INVALID args.ints: must be a list of whole numbers, and has an item that is a text"),
        ({"string_map": "{{ phases.export.output }}"},
         "ARGUMENT_INVALID args.string_map: must be a mapping of texts, and has an item that is an int"),
        ({"mode": "{{ options.tag }}"}, "ARGUMENT_INVALID args.mode: must be one of full, light, and is none of them"),
        ({"parallel": "{{ 17 }}"}, "ARGUMENT_INVALID args.parallel: must be from 1 to 16"),
        ({"parallel": "{{ 0 }}"}, "ARGUMENT_INVALID args.parallel: must be from 1 to 16"),
        ({"some": ["a"]}, "ARGUMENT_INVALID args.some: the number of items must be at least 2"),
        ({"string_map": {"a": "{{ secrets.slack.token }}"}},
         "TEMPLATE args.string_map.a: column 4: there is no secrets here"),
        ({"any": r"""{{ parseJson('"\\ud800"') }}"""},
         "ARGUMENT_INVALID args.any: gives a value that JSON cannot hold: one that is nested too deeply, or half of a "
         "surrogate pair"),
    ],
)  # fmt: skip
def test_an_argument_that_may_not_be_passed(arguments: Mapping[str, Any], error: str) -> None:
    with pytest.raises(RenderingError) as caught:
        rendered(**arguments)
    assert f"{caught.value.reason} {caught.value}" == error


def test_a_required_argument_that_is_null() -> None:
    with pytest.raises(RenderingError, match=re.escape("args.snapshot: VerifySnapshot needs snapshot")) as caught:
        rendered(function("VerifySnapshot"), snapshot="{{ phases.export.output.none }}")
    assert caught.value.reason is PhaseReason.ARGUMENT_INVALID


@given(st.dictionaries(st.sampled_from(["string", "bool", "ints", "string_map", "mode", "tokens"]), json_values))
def test_an_error_never_shows_a_value(values: dict[str, Value]) -> None:
    canary = "c4n4ry"

    def marked(value: Value) -> Value:
        if isinstance(value, dict):
            return {f"{canary}{key}": marked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [marked(item) for item in value]
        return canary if isinstance(value, str) else value

    parameters = {"item": {name: marked(value) for name, value in values.items()}}
    for name in values:
        for template in (f"{{{{ item.{name} }}}}", f"x{{{{ item.{name} }}}}", f"{{{{ item[item.{name}] }}}}"):
            try:
                render_arguments(Phase("p", "Types", arguments={name: template}), TYPES, parameters)
            except RenderingError as error:
                assert canary not in str(error)  # noqa: PT017 - most values are right


TEMPLATES = [
    *("options.tag", "options.mode", "options.reason", "options.x", "object.name", "stack.name", "time", "run.id"),
    *("phases.pause.output.original", "phases.export.output.snapshot", "phases.verify.output.bytes"),
    *("phases.check.output", "phases.apply.output.nope", "phases.dump.output.rows", "phases.dump.output.dumpFile"),
    *("default(phases.export.output.snapshot, '')", "default(phases.resume.output.changed, 1)", "has(failure.phase)"),
    *(
        "artifacts.stackBackup",
        "configMaps.names",
        "secrets.slack",
        "secrets.pg",
        "failure",
        "item",
        "default(item.x, 1)",
    ),
]
PLACES = [
    (action, phase, argument)
    for action, body in BLUEPRINT["spec"]["actions"].items()
    for phase, each in enumerate([*body["phases"], *([body["deferPhase"]] if "deferPhase" in body else [])])
    for argument in each.get("args", {})
]


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(TEMPLATES), st.booleans()), min_size=1, max_size=4))
def test_what_validates_uses_nothing_that_is_not_there(changes: list[tuple[tuple[str, int, str], str, bool]]) -> None:
    document = deepcopy(dict(BLUEPRINT))
    for (name, place, argument), expression, is_text in changes:
        body = document["spec"]["actions"][name]
        phase = body["phases"][place] if place < len(body["phases"]) else body["deferPhase"]
        phase["args"][argument] = f"{{{{ {expression} }}}}" + ("x" if is_text else "")
    [definition] = validate([document], LATER_FUNCTIONS).definitions
    for name, action in definition.actions.items() if isinstance(definition, Blueprint) else ():
        texts = {"snapshot": "a", "stack": "a", "token": "a", "password": "a"}
        artifacts = dict.fromkeys(action.input_artifact_names, texts)
        config_maps = dict.fromkeys(action.config_map_names, texts)
        options = dict.fromkeys(action.options, "full")
        run = PinnedAction(name, "b", action, RUN.object, options, artifacts, config_maps)
        outputs: dict[str, Mapping[str, Value]] = {}
        secrets = dict.fromkeys(action.secret_names, texts)
        for phase in (*action.phases, *([action.defer_phase] if action.defer_phase else [])):
            stack = StackFacts("0a", "prod", 7)
            pinned = PinnedActionSet("x", "", (run,))
            seen = {} if phase is action.defer_phase else outputs
            parameters: Mapping[str, Value] = parameters_of(pinned, 0, OPERATION, seen, stack=stack, secrets=secrets)
            if phase is action.defer_phase:
                parameters = in_defer_phase(parameters, Failure("a", PhaseReason.FAILED, "b"))
            try:
                render_arguments(phase, function(phase.function), parameters)
            except RenderingError as error:
                assert "there is no" not in str(error)  # noqa: PT017 - types may be wrong
            call = Call(function(phase.function), JsonPlace(phase.arguments, ()))
            outputs[phase.name] = dict.fromkeys(output_names(call) or ("rows", "dumpFile"), "x")


@given(json_values)
def test_what_is_passed_has_its_type(value: Value) -> None:
    kinds: Mapping[str, type] = {"string": str, "bool": bool, "int": int, "list": list, "map": dict, "duration": str}
    for name, kind in kinds.items():
        try:
            values = render_arguments(
                Phase("p", "Types", arguments={name: "{{ item.x }}"}), TYPES, {"item": {"x": value}}
            )
        except RenderingError as error:
            assert error.reason is PhaseReason.ARGUMENT_INVALID  # noqa: PT017 - most values are wrong
        else:
            assert isinstance(values.get(name), kind) or value is None


def test_rendered_arguments_are_bounded_together() -> None:
    parameters = {"options": {"x": "x" * (512 << 10)}}
    phase = Phase("p", "Types", arguments={"strings": ["{{ options.x }}"] * 8})
    with pytest.raises(RenderingError, match="args: the rendered arguments have more than 4,194,304 bytes"):
        render_arguments(phase, TYPES, parameters)
    fewer = Phase("p", "Types", arguments={"strings": ["{{ options.x }}"] * 7})
    assert len(render_arguments(fewer, TYPES, parameters)["strings"]) == 7


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("", True), ("{{ options.tag == 'night' }}", True), ("{{ has(phases.other.output.x) }}", False)],
)
def test_a_condition_says_whether_a_phase_runs(condition: str, expected: bool) -> None:
    assert render_condition(Phase("p", "Sleep", condition=condition), PARAMETERS) is expected


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("{{ options.tag }}", "if: must give a bool, and gives a text"),
        ("{{ options.none }}", "if: column 12: there is no 'none'"),
        ("{{ secrets.slack.token == 'x' }}", "if: column 4: there is no secrets here"),
    ],
)
def test_a_condition_that_gives_no_bool(condition: str, problem: str) -> None:
    with pytest.raises(RenderingError) as caught:
        render_condition(Phase("p", "Sleep", condition=condition), PARAMETERS)
    assert (caught.value.reason, str(caught.value)) == (PhaseReason.TEMPLATE, problem)


def test_the_texts_of_an_artifact() -> None:
    templates = {"snapshot": "{{ phases.export.output.snapshot }}", "n": "{{ phases.export.output.objects }}", "x": "y"}
    assert render_artifact("stackBackup", templates, PARAMETERS) == {"snapshot": "sha256:cd", "n": "42", "x": "y"}
    assert render_artifact("a", {"k": "{{ item.x }}"}, {"item": {"x": "é" * 8_192}}) == {"k": "é" * 8_192}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ phases.export.output.names }}", "a list is no text; write json(…), or join for a list of texts"),
        ("{{ phases.export.output.none }}", "null is no text; write default(…) with a text instead"),
        ("{{ phases.other.output.x }}", "column 11: there is no 'other'"),
        ("{{ secrets.slack.token }}", "column 4: there is no secrets here"),
        ("x" * 16_385, "gives 16,385 bytes; at most 16,384 are accepted"),
    ],
)
def test_an_artifact_that_has_no_text(template: str, problem: str) -> None:
    with pytest.raises(RenderingError) as caught:
        render_artifact("stackBackup", {"k": template}, PARAMETERS)
    assert caught.value.reason is PhaseReason.TEMPLATE
    assert str(caught.value).startswith("outputArtifacts.stackBackup.keyValue.k: ")
    assert str(caught.value).endswith(problem)


def test_an_artifact_is_rendered_when_all_phases_that_it_uses_have_ended() -> None:
    templates = {"a": "{{ time }}", "b": "{{ phases.x.output.k }}-{{ default(phases.y.output.k, '') }}"}
    assert not is_renderable(templates, ["x"])
    assert is_renderable(templates, ["x", "y", "z"])
    assert is_renderable({"a": "{{ time }}"}, [])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("stack", "args.stack: is empty; leave it out for the stack of the object"),
        ("snapshot", "args.snapshot: must be the id of a snapshot"),
    ],
)
def test_an_empty_text_names_no_stack_and_no_snapshot(name: str, problem: str) -> None:
    arguments = {"snapshot": SNAPSHOT, name: "{{ default(options.nothing, '') }}"}

    with pytest.raises(RenderingError, match=re.escape(problem)) as caught:
        rendered(function("RestoreStack"), **arguments)
    assert caught.value.reason is PhaseReason.ARGUMENT_INVALID
