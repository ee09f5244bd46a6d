"""Reads action sets, and compares what each action passes with what its blueprint wants."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from services.actions.arguments import check_variable_name, is_path_below
from services.actions.blueprints import ACTION_KINDS
from services.actions.definitions import (
    DEFAULT_WAIT,
    NO_OBJECT,
    STACK,
    ActionObject,
    ActionRun,
    ConfigMapSource,
    DeclaredInputs,
    Predecessor,
    SecretPlace,
    SecretSource,
)
from services.actions.durations import Milliseconds
from services.actions.reading import JsonPlace, Report, declared_hint, hint, named_choice, quoted, rewrite_to_nearest
from services.core.limits import LONGEST_NAME
from services.kinds.diagnostics import Code
from services.kinds.format.names import is_meta_name

MOST_ACTIONS = 100
LARGEST_ARTIFACT_TEXT = 16 * 1024
"""Bytes of one text of an artifact."""

_SPEC_FIELDS = ("actions", "from", "overrides", "sequential", "timeout", "wait", "ttl")
_PREDECESSOR_FIELDS = ("actionSet", "action")
_OVERRIDE_FIELDS = ("blueprint", "object", "artifacts", "configMaps", "secrets", "options", "profile")
_ACTION_FIELDS = ("name", *_OVERRIDE_FIELDS)
_OBJECT_FIELDS = ("kind", "name", "stack", "target")
_TARGET_FIELDS = ("platform", "org")
_ARTIFACT_FIELDS = ("keyValue",)
_CONFIG_MAP_FIELDS = ("data", "name")
_SECRET_FIELDS = tuple(SecretPlace)


class Blueprints(NamedTuple):
    """
    The blueprints that action sets may name.

    Attributes:
        inputs: What the actions of each blueprint want of a run, by the names of both; None: that is not known here.
        are_all: Whether there are no others.
    """

    inputs: Mapping[str, Mapping[str, DeclaredInputs] | None]
    are_all: bool


class ActionSetSpec(NamedTuple):
    """The spec of an action set, complete only if there is no fault; the fields are those of ``ActionSet``."""

    actions: tuple[ActionRun, ...] = ()
    predecessor: Predecessor | None = None
    overrides: ActionRun | None = None
    sequential: bool = False
    timeout: Milliseconds | None = None
    wait: Milliseconds = DEFAULT_WAIT
    ttl: Milliseconds | None = None


def read_action_set(spec: JsonPlace, blueprints: Blueprints, report: Report) -> ActionSetSpec:
    """
    Read the spec of an action set and check all its rules.

    Args:
        spec: The spec.
        blueprints: The blueprints that its actions may name.
        report: Receives the faults.
    """
    fields = report.fields(spec, _SPEC_FIELDS, "the spec of an action set")
    if fields is None:
        return ActionSetSpec()
    actions: tuple[ActionRun, ...] = ()
    if "actions" in fields and "from" in fields:
        reason = "an action set lists its actions or is made from another one; remove actions or from"
        report.add(fields["actions"], Code.FIELD_CONFLICT, reason)
    elif "from" not in fields:
        if "actions" not in fields:
            report.missing(spec.member("actions"), f"an action set needs 1 to {MOST_ACTIONS} actions, or from")
        items = report.items(fields.get("actions"), "actions", least=1, most=MOST_ACTIONS) or ()
        actions = tuple(_action(item, blueprints, report) for item in items)
    if "overrides" in fields and "from" not in fields:
        report.add(fields["overrides"], Code.FIELD_CONFLICT, "overrides stand beside from only; remove them")
    wait = report.duration(fields.get("wait"), least=0)
    return ActionSetSpec(
        actions,
        _predecessor(fields["from"], report) if "from" in fields else None,
        _overrides(fields["overrides"], blueprints, report) if {"overrides", "from"} <= fields.keys() else None,
        report.boolean(fields.get("sequential")) or False,
        report.duration(fields.get("timeout")),
        DEFAULT_WAIT if wait is None else wait,
        report.duration(fields.get("ttl"), most=None, least=0),
    )


def _predecessor(place: JsonPlace, report: Report) -> Predecessor | None:
    if report.fields(place, _PREDECESSOR_FIELDS, "from") is None:
        return None
    action_set = report.definition_name(place.member("actionSet"), "the name of an action set")
    action = report.identifier(place.member("action"), "an action")
    return Predecessor(action_set, action) if action_set and action else None


def _overrides(place: JsonPlace, blueprints: Blueprints, report: Report) -> ActionRun | None:
    fields = report.fields(place, _OVERRIDE_FIELDS, "overrides")
    if fields is None:
        return None
    blueprint = _blueprint(fields["blueprint"], blueprints, report) if "blueprint" in fields else ""
    overrides = _InputReader(fields, None, report).read("", blueprint)
    return None if overrides == ActionRun() else overrides


def _action(place: JsonPlace, blueprints: Blueprints, report: Report) -> ActionRun:
    fields = report.fields(place, _ACTION_FIELDS, "an action")
    if fields is None:
        return ActionRun()
    name = report.identifier(place.member("name"), "an action") or ""
    if "blueprint" not in fields:
        report.missing(place.member("blueprint"), "an action needs blueprint, the name of the blueprint that has it")
        blueprint = ""
    else:
        blueprint = _blueprint(fields["blueprint"], blueprints, report)
    declared = None
    actions = blueprints.inputs.get(blueprint)
    if name and actions is not None:
        declared = actions.get(name)
        if declared is None:
            reason = f"blueprint {quoted(blueprint)} has no action {quoted(name)}; {hint(name, actions, 'actions')}"
            report.add(fields["name"], Code.ACTION_NOT_FOUND, reason, rewrite_to_nearest(name, actions))
    run = _InputReader(fields, declared, report).read(name, blueprint)
    if declared:
        compare_inputs(place, declared, run, report)
    return run


def _blueprint(place: JsonPlace, blueprints: Blueprints, report: Report) -> str:
    """The name of a blueprint; empty after a fault."""
    name = report.text(place)
    if name is None or name in blueprints.inputs:
        return name or ""
    if not blueprints.are_all:
        return report.definition_name(place, "the name of a blueprint") or ""
    end = hint(name, blueprints.inputs, "blueprints")
    reason = f"there is no blueprint {quoted(name)}, neither in the request nor stored; {end}"
    report.add(place, Code.BLUEPRINT_NOT_FOUND, reason, rewrite_to_nearest(name, blueprints.inputs))
    return ""


class _InputReader:
    """Reads the inputs of one action, whatever its blueprint wants."""

    def __init__(self, fields: Mapping[str, JsonPlace], declared: DeclaredInputs | None, report: Report) -> None:
        self._fields = fields
        self._declared = declared
        self._report = report

    def read(self, name: str, blueprint: str) -> ActionRun:
        """The action *name* with its inputs."""
        fields, report = self._fields, self._report
        if "profile" in fields:
            reason = "profiles are not accepted yet; remove this one"
            report.add(fields["profile"], Code.FIELD_NOT_ACCEPTED, reason)
        return ActionRun(
            name,
            blueprint,
            self._object(fields["object"]) if "object" in fields else None,
            {name: self._artifact(entry) for name, entry in self._entries("artifacts", "an artifact").items()},
            {name: self._config_map(entry) for name, entry in self._entries("configMaps", "a config map").items()},
            {name: self._secret(entry) for name, entry in self._entries("secrets", "a secret").items()},
            {name: report.text(entry) or "" for name, entry in self._entries("options", "an option").items()},
        )

    def _entries(self, key: str, what: str) -> dict[str, JsonPlace]:
        return self._report.entries(self._fields.get(key), what) or {}

    def _object(self, place: JsonPlace) -> ActionObject | None:
        report = self._report
        fields = report.fields(place, _OBJECT_FIELDS, "an object")
        if fields is None:
            return None
        kind = self._object_kind(place)
        name = self._object_name(place, kind)
        stack = self._object_stack(place, kind)
        target = report.fields(fields["target"], _TARGET_FIELDS, "a target") if "target" in fields else None
        platform, org = (report.text((target or {}).get(key), LONGEST_NAME) or "" for key in _TARGET_FIELDS)
        return ActionObject(kind or "", name, stack, platform, org)

    def _object_kind(self, place: JsonPlace) -> str | None:
        """The kind of an object; None after a fault, and then nothing more is said of what depends on it."""
        report, kind = self._report, place.member("kind")
        if kind.value is None:
            report.missing(kind, f"an object needs its kind: {STACK}, or the kind of a resource")
            return None
        action_kind = self._declared.kind if self._declared else None
        expected = ACTION_KINDS[:-1] if action_kind in (None, NO_OBJECT) else (action_kind,)
        return named_choice(kind, [each for each in expected if each], report)

    def _object_name(self, place: JsonPlace, kind: str | None) -> str:
        report, name = self._report, place.member("name")
        if name.value is None:
            report.missing(name, "an object needs a name: that of the stack, or the metadata.name of the resource")
            return ""
        text = self._stack_name(name) if kind in (None, STACK) else report.text(name)
        if text and kind not in (None, STACK) and not is_meta_name(text):
            report.add(name, Code.NAME_INVALID, f"{quoted(text)} is no metadata.name of a resource")
        return text or ""

    def _object_stack(self, place: JsonPlace, kind: str | None) -> str:
        report, stack = self._report, place.member("stack")
        if kind == STACK and stack.value is not None:
            report.add(stack, Code.FIELD_CONFLICT, "the object is a stack, so its name names it; remove stack")
        elif kind not in (None, STACK) and stack.value is None:
            report.missing(stack, f"a {kind} needs stack, the name of the stack that has it")
        elif stack.value is not None:
            return self._stack_name(stack) or ""
        return ""

    def _stack_name(self, place: JsonPlace) -> str | None:
        text = self._report.text(place, LONGEST_NAME)
        if text is None or (text and text.isprintable() and text == text.strip()):
            return text
        reason = "the name of a stack has printable characters, at least one, and no blanks at the ends"
        self._report.add(place, Code.TEXT_INVALID, reason)
        return None

    def _artifact(self, place: JsonPlace) -> Mapping[str, str]:
        report = self._report
        fields = report.fields(place, _ARTIFACT_FIELDS, "an artifact")
        if fields is None:
            return {}
        texts = report.text_map(fields.get("keyValue"), "a key of an artifact") or {}
        if not fields or fields["keyValue"].value == {}:
            reason = "an artifact needs at least one key; write keyValue: {key: text}"
            report.add(place.member("keyValue"), Code.LIST_EMPTY, reason)
        for key, text in texts.items():
            size = len(text.encode())
            if size > LARGEST_ARTIFACT_TEXT:
                reason = f"has {size:,} bytes; at most {LARGEST_ARTIFACT_TEXT:,} are accepted"
                report.add(place.member("keyValue").member(key), Code.TEXT_INVALID, reason)
        return texts

    def _config_map(self, place: JsonPlace) -> ConfigMapSource:
        report = self._report
        fields = report.fields(place, _CONFIG_MAP_FIELDS, "a config map")
        if fields is None:
            return ConfigMapSource({})
        if "name" not in fields:
            if "data" not in fields:
                reason = "needs one of: data, with the texts, or name, of a stored config map"
                report.missing(place, reason)
            return ConfigMapSource(report.text_map(fields.get("data"), "a key of a config map") or {})
        if "data" in fields:
            report.add(fields["name"], Code.FIELD_CONFLICT, "does not go with data; remove one of them")
        return ConfigMapSource(None, report.definition_name(fields["name"], "the name of a config map") or "")

    def _secret(self, place: JsonPlace) -> Mapping[str, SecretSource]:
        entries = self._report.entries(place, "a key of a secret") if isinstance(place.value, dict) else None
        if entries is None:
            # The value is not shown: it may be the secret itself.
            self._report.add(place, Code.SECRET_REFERENCE_INVALID, "must be a mapping from keys to places of values")
        return {key: self._secret_source(entry) for key, entry in (entries or {}).items()}

    def _secret_source(self, place: JsonPlace) -> SecretSource:
        report = self._report
        form = "write where the value is: {env: NAME}, {file: PATH} or {given: true}"
        if not isinstance(place.value, dict):
            report.add(place, Code.SECRET_REFERENCE_INVALID, f"a secret never stands in a definition; {form}")
            return SecretSource(SecretPlace.REQUEST)
        fields = report.fields(place, _SECRET_FIELDS, "a reference to a secret") or {}
        if len(fields) != 1:
            report.add(place, Code.SECRET_REFERENCE_INVALID, f"needs exactly one place of its value; {form}")
            return SecretSource(SecretPlace.REQUEST)
        [(key, entry)] = fields.items()
        source = SecretPlace(key)
        match source:
            case SecretPlace.VARIABLE:
                check_variable_name(entry, report, Code.SECRET_REFERENCE_INVALID)
            case SecretPlace.FILE:
                if not (isinstance(entry.value, str) and is_path_below(entry.value)):
                    reason = "must be the path of a file below the folder of secrets: relative, without . and .."
                    report.add(entry, Code.SECRET_REFERENCE_INVALID, reason)
            case SecretPlace.REQUEST:
                if entry.value is not True:
                    report.add(entry, Code.SECRET_REFERENCE_INVALID, "must be true; the value comes with the request")
        return SecretSource(source, entry.value if isinstance(entry.value, str) else "")


def compare_inputs(place: JsonPlace, declared: DeclaredInputs, run: ActionRun, report: Report) -> None:
    """
    Report what an action of an action set passes although its blueprint does not declare it, and what it lacks.

    Args:
        place: Where its inputs are, or would be.
        declared: What the action wants.
        run: The action with its inputs.
        report: Receives the faults.
    """
    if declared.kind not in (None, NO_OBJECT) and run.object is None:
        report.missing(place.member("object"), f"the action needs an object of kind {declared.kind}")
    for key, noun, names, passed in (
        ("artifacts", "artifact", declared.artifacts, run.artifacts),
        ("configMaps", "config map", declared.config_maps, run.config_maps),
        ("secrets", "secret", declared.secrets, run.secrets),
    ):
        if names is not None:
            _compare_names(place.member(key), noun, names, names, passed, report)
    if declared.options is None:
        return
    required = [name for name, option in declared.options.items() if option.required]
    _compare_names(place.member("options"), "option", declared.options, required, run.options, report)
    for name, text in run.options.items():
        option = declared.options.get(name)
        if option and option.choices and text not in option.choices:
            written = place.member("options").member(name)
            named_choice(JsonPlace(text, written.pointer), option.choices, report)


def _compare_names(
    place: JsonPlace,
    noun: str,
    declared: Collection[str],
    required: Collection[str],
    passed: Collection[str],
    report: Report,
) -> None:
    if not isinstance(place.value, dict | None):
        return
    for name in passed:
        if name not in declared:
            reason = f"the action declares no {noun} {quoted(name)}; {declared_hint(name, declared)}"
            member = place.member(name).key
            report.add(member, Code.INPUT_NOT_DECLARED, reason, rewrite_to_nearest(name, declared))
    for name in required:
        if name not in passed:
            report.add(place.member(name), Code.INPUT_MISSING, f"the action needs {noun} {quoted(name)}")
