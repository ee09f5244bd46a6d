"""A law of blueprints: what validates names only what is there, whatever its phases give."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.actions.arguments import Call, output_names
from services.actions.definitions import STACK, Action, ActionObject, Blueprint, Phase
from services.actions.parameters import Failure, StackFacts, in_defer_phase, parameters_of
from services.actions.phase_reason import PhaseReason
from services.actions.pinned import PinnedAction, PinnedActionSet
from services.actions.reading import JsonPlace
from services.actions.signatures import ArgumentForm, Signature
from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.nodes import Expression, Index, Postfix, Root, children
from services.actions.templates.rendering import render_template
from services.actions.templates.template import Template, parse_template
from services.actions.templates.values import Value
from services.actions.validation import validate
from tests.actions.documents import changed
from tests.actions.functions import LATER_FUNCTIONS
from tests.strategies import json_values

PHASES = ("a", "b", "c")
DECLARED = {"options": ("o",), "configMaps": ("o",), "artifacts": ("o",), "secrets": ("o",)}
FIELDS = {"configMaps": "configMapNames", "artifacts": "inputArtifactNames", "secrets": "secretNames"}

OUTPUTS = {
    "HTTPRequest": ("status", "json"),
    "RunCommand": ("rows", "exitCode"),
    "ForEach": ("results",),
    "ReadResource": ("exists", "spec"),
}

words = st.sampled_from([*PHASES, "z", "o", "nope", "output", "status", "rows", "name", "k"])
indexes = st.sampled_from(["[0]", "['o']", "['output']", "[options.o]", "[item]", "[phases.a.output.k]"])
members = words.map(lambda word: f".{word}") | indexes
roots = st.sampled_from([*DECLARED, "phases", "object", "stack", "failure", "item", "time", "run", "profile"])
paths = st.tuples(roots, st.lists(members, min_size=1, max_size=3).map("".join)).map("".join)


def expressions(likely: Sequence[str]) -> st.SearchStrategy[str]:
    """Expressions over some that are *likely* to be valid, and over any paths."""
    sound_leaves = st.sampled_from([*likely, "'a'", "1"])
    guarded = paths.map(lambda path: f"default({path}, 'x')") | paths.map(lambda path: f"has({path})")
    leaves = st.integers(0, 5).flatmap(lambda number: {0: paths, 1: guarded}.get(number, sound_leaves))
    operators = st.sampled_from(["+", "==", "<", "in", "&&", "||"])

    def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return (
            st.tuples(inner, operators, inner).map(lambda parts: f"({' '.join(parts)})")
            | st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})")
            | st.tuples(paths, inner).map(lambda parts: f"default({parts[0]}, {parts[1]})")
            | inner.map(lambda text: f"json({text})")
        )

    return st.recursive(leaves, compound, max_leaves=3).map(lambda text: f"{{{{ {text} }}}}")


@st.composite
def phases_with(draw: st.DrawFn, name: str, likely: Sequence[str], secrets: Sequence[str]) -> dict[str, Any]:
    """A phase whose templates use what is *likely*; where they stand, *secrets* may be used, too."""
    texts = st.tuples(st.sampled_from(["", "", "{% x %}"]), expressions(likely)).map("".join)
    secret_texts = st.tuples(st.sampled_from(["", "x"]), expressions([*likely, *secrets])).map("".join)
    function = draw(st.sampled_from([*OUTPUTS]))
    arguments: dict[str, Any] = {"kind": "Task", "name": draw(texts)}
    if function == "HTTPRequest":
        arguments = {"url": draw(texts), "body": [draw(secret_texts)], "headers": {"k": draw(secret_texts)}}
    elif function == "RunCommand":
        rows = draw(st.just("rows") | st.just("rows") | expressions(likely))
        arguments = {"command": ["run", draw(texts)], "outputs": [rows], "env": {"K": draw(secret_texts)}}
    elif function == "ForEach":
        inner = {"url": draw(texts), "body": draw(expressions([*likely, *secrets, "item"]))}
        arguments = {"items": draw(expressions(likely)), "func": "HTTPRequest", "args": inner}
    condition = {"if": draw(expressions(likely))} if draw(st.booleans()) else {}
    return {"name": name, "func": function, "args": arguments, **condition}


@st.composite
def blueprints(draw: st.DrawFn) -> dict[str, Any]:
    """A blueprint with one action; many have faults."""
    action: dict[str, Any] = {"kind": draw(st.sampled_from(["Stack", "None"])), "phases": []}
    action["options"] = {"o": {"default": draw(st.sampled_from(["a", "output", "k"]))}}
    likely, secrets = ["options.o", "run.id", "time", "default(object.name, '')"], list[str]()
    for root, field in FIELDS.items():
        if draw(st.integers(0, 3)):
            action[field] = [*DECLARED[root]]
            (secrets if root == "secrets" else likely).append(f"{root}.o.k")
    for name in PHASES[: draw(st.integers(1, 3))]:
        phase = draw(phases_with(name, likely, secrets))
        action["phases"].append(phase)
        outputs = [f"phases.{name}.output.{each}" for each in OUTPUTS[phase["func"]]]
        likely += (
            [f"default({each}, 'x')" for each in outputs] if "if" in phase and draw(st.integers(0, 3)) else outputs
        )
    if draw(st.booleans()):
        is_careful = draw(st.integers(0, 3))
        guarded = [f"default({each}, 1)" if each.startswith("phases") and is_careful else each for each in likely]
        action["deferPhase"] = draw(phases_with("z", [*guarded, "failure", "has(failure.phase)"], secrets))
    texts = expressions(likely)
    action["outputArtifacts"] = {"made": {"keyValue": {"k": draw(texts), "o": draw(texts)}}}
    return {
        "apiVersion": "pkger/v1",
        "kind": "Blueprint",
        "metadata": {"name": "b"},
        "spec": {"actions": {"run": action}},
    }


def sound(document: Mapping[str, Any]) -> Action:
    """The action of *document* without the texts that have faults."""
    for _ in range(3):
        definitions, faults = validate([document], LATER_FUNCTIONS)
        if not faults:
            [definition] = definitions
            assert isinstance(definition, Blueprint)
            return definition.actions["run"]
        for fault in faults[0]:
            document = changed(document, fault.path, "{{ 'x' }}")
    raise AssertionError(f"it still has faults: {faults}")


def run_of(action: Action) -> PinnedAction:
    """A run of *action* with all that it declares."""
    values = {"k": "v", "o": "w"}
    return PinnedAction(
        "run",
        "b",
        action,
        ActionObject(STACK, "prod") if action.kind == STACK else None,
        {name: option.default or "" for name, option in action.options.items()},
        dict.fromkeys(action.input_artifact_names, values),
        dict.fromkeys(action.config_map_names, values),
    )


def signature_of(phase: Phase) -> Signature:
    signature = LATER_FUNCTIONS.find(phase.function)
    assert signature
    return signature


def templates_of(value: Any, signature: Signature | None = None) -> Iterator[tuple[str, bool, bool]]:
    """The texts in *value*, arguments of *signature*; whether each may use secrets, and whether it has an item."""
    for name, argument in value.items():
        of_call = next(each for each in signature.arguments if each.name == name) if signature else None
        if of_call and of_call.form is ArgumentForm.CALL_ARGUMENTS:
            inner = LATER_FUNCTIONS.find(value["func"])
            yield from ((text, takes_secrets, True) for text, takes_secrets, _ in templates_of(argument, inner))
        else:
            takes_secrets = bool(of_call and of_call.takes_secrets)
            yield from ((text, takes_secrets, False) for text in texts_within(argument))


def texts_within(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_within(item)


def check(text: str, parameters: Mapping[str, Value], dynamic: frozenset[str] = frozenset()) -> None:
    """Render a text; it fails for the values of parameters only, or for members that nobody declares."""
    try:
        template = parse_template(text)
        render_template(template, parameters)
    except TemplateError as error:
        assert error.code not in (TemplateCode.SYNTAX, TemplateCode.NAME), (text, str(error))  # noqa: PT017
        if error.code is TemplateCode.MISSING:
            assert not is_declared(template, error.column, dynamic), (text, str(error))  # noqa: PT017


def is_declared(template: Template, column: int, dynamic: frozenset[str]) -> bool:
    """Whether what stands at *column* names something that validation has to know: *dynamic* phases have any output."""
    for operand, accessors in ((each.operand, each.accessors) for each in postfixes(template)):
        for depth, part in enumerate((operand, *accessors)):
            if part.column == column and isinstance(operand, Root):
                phase = getattr(accessors[0], "name", "")
                known = {"phases": 2 if phase in dynamic or isinstance(part, Index) else 3, "stack": -1, "profile": -1}
                return depth <= known.get(operand.name, 1 if operand.name in DECLARED else 0)
    return False


def postfixes(template: Template) -> Iterator[Postfix]:
    waiting: list[Expression] = [*template.expressions]
    while waiting:
        part = waiting.pop()
        waiting += children(part)
        if isinstance(part, Postfix):
            yield part


@given(document=blueprints(), data=st.data())
def test_what_validates_names_only_what_is_there(document: dict[str, Any], data: st.DataObject) -> None:
    action = sound(deepcopy(document))
    run = run_of(action)
    pinned = PinnedActionSet("x", "2026-11-28T10:00:00Z", (run,))
    secrets = {name: {"k": "s", "o": "t"} for name in action.secret_names}
    stack = StackFacts("0a", "prod", 7) if action.kind == STACK else None
    ended: dict[str, dict[str, Any]] = {}
    dynamic = set[str]()

    def parameters(seen: Mapping[str, Mapping[str, Value]], with_secrets: bool, with_item: bool) -> dict[str, Value]:
        values = parameters_of(pinned, 0, "0" * 16, seen, stack=stack, secrets=secrets if with_secrets else None)
        return {**values, **({"item": data.draw(json_values)} if with_item else {})}

    for phase in (*action.phases, *([action.defer_phase] if action.defer_phase else [])):
        seen = dict(ended)
        if phase is action.defer_phase:
            # Any phase may have ended early, with some of its outputs.
            seen = {name: {} for name in ended if data.draw(st.booleans())}
        for text, takes_secrets, has_item in (
            (phase.condition, False, False),
            *templates_of(phase.arguments, signature_of(phase)),
        ):
            values = parameters(seen, takes_secrets, has_item)
            if phase is action.defer_phase:
                failure = Failure("a", PhaseReason.FAILED, "m") if data.draw(st.booleans()) else None
                values = in_defer_phase(values, failure)
            check(text, values, frozenset(dynamic))
        names = output_names(Call(signature_of(phase), JsonPlace(phase.arguments, ())))
        if names is None:
            dynamic.add(phase.name)
        if not phase.condition or data.draw(st.booleans()):
            ended[phase.name] = {name: data.draw(json_values) for name in names or ()}
    for by_key in action.output_artifacts.values():
        for text in by_key.values():
            check(text, parameters(ended, False, False), frozenset(dynamic))
