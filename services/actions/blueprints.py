"""Reads blueprints: their actions and phases, with the arguments and templates of each."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from services.actions.arguments import (
    Call,
    check_arguments_without_signature,
    check_call,
    is_server_function,
    output_names,
    runs_at_most_once,
)
from services.actions.definitions import (
    DEFAULT_BACKOFF,
    DEFAULT_MAX_BACKOFF,
    NO_OBJECT,
    STACK,
    Action,
    DeclaredInputs,
    Option,
    Phase,
    Retry,
)
from services.actions.durations import HOUR
from services.actions.reading import JsonPlace, Report, listed, named_choice, near, quoted, rewrite_to_nearest, shown
from services.actions.signatures import Signature, SignatureTable
from services.actions.template_rules import (
    PhaseOutputs,
    Scope,
    check_condition,
    check_text,
)
from services.kinds.diagnostics import Code
from services.kinds.registry import KINDS

MOST_PHASES = 64
MOST_ATTEMPTS = 20

ACTION_KINDS = (STACK, *KINDS, NO_OBJECT)
"""What the object of an action can be."""

_SPEC_FIELDS = ("description", "actions")
ACTION_FIELDS = (
    *("description", "kind", "lock", "options", "configMapNames", "secretNames", "inputArtifactNames"),
    *("outputArtifacts", "phases", "deferPhase", "timeout"),
)
PHASE_FIELDS = ("name", "func", "version", "args", "if", "timeout", "retry", "idempotent")
_OPTION_FIELDS = ("description", "default", "required", "enum")
_RETRY_FIELDS = ("attempts", "backoff", "maxBackoff")
_ARTIFACT_FIELDS = ("keyValue",)

_VERSION = re.compile(r"v([1-9][0-9]{0,5})")


class BlueprintReading(NamedTuple):
    """
    The result of reading the spec of a blueprint.

    Attributes:
        description: What it is for.
        actions: Its actions. They are complete only if there is no fault.
        inputs: What each action wants of a run, by name; None: the actions could not be read.
    """

    description: str
    actions: Mapping[str, Action]
    inputs: Mapping[str, DeclaredInputs] | None


def read_blueprint(spec: JsonPlace, table: SignatureTable, report: Report) -> BlueprintReading:
    """
    Read the spec of a blueprint and check all its rules.

    Args:
        spec: The spec.
        table: The functions that its phases may call.
        report: Receives the faults.
    """
    fields = report.fields(spec, _SPEC_FIELDS, "the spec of a blueprint")
    if fields is None:
        return BlueprintReading("", {}, None)
    description = report.text(fields.get("description")) or ""
    if "actions" not in fields:
        report.missing(spec.member("actions"), "a blueprint needs actions; write at least one")
        return BlueprintReading(description, {}, None)
    entries = report.entries(fields["actions"], "an action")
    if entries is not None and not entries:
        report.add(fields["actions"], Code.LIST_EMPTY, "has no action; write at least one")
    readers = {name: _ActionReader(place, table, report) for name, place in (entries or {}).items()}
    actions = {name: reader.read() for name, reader in readers.items()}
    return BlueprintReading(
        description, actions, {name: reader.inputs for name, reader in readers.items()} if entries else None
    )


class _PhaseReading(NamedTuple):
    """
    What is known of a phase before its templates are checked.

    Attributes:
        place: The phase.
        fields: Its fields that are not null.
        name: Its name; None: that could not be read.
        version: The version of its function; None: the newest, or it could not be read.
        call: The call of its function; None: that is not known here.
    """

    place: JsonPlace
    fields: Mapping[str, JsonPlace]
    name: str | None
    version: int | None
    call: Call | None

    @property
    def outputs(self) -> Collection[str] | None:
        """Its outputs; None: any."""
        return output_names(self.call) if self.call else None


class _ActionReader:
    """Reads one action: first what it declares, then what its templates use."""

    def __init__(self, place: JsonPlace, table: SignatureTable, report: Report) -> None:
        self._table = table
        self._report = report
        self._place = place
        fields = report.fields(place, ACTION_FIELDS, "an action")
        self._fields = fields or {}
        if fields is None:
            self.inputs = DeclaredInputs(None, None, None, None, None)
        else:
            self.inputs = DeclaredInputs(
                named_choice(fields["kind"], ACTION_KINDS, report) if "kind" in fields else STACK,
                self._options(),
                self._names("configMapNames", "a config map", "config maps"),
                self._names("secretNames", "a secret", "secrets"),
                self._names("inputArtifactNames", "an artifact", "artifacts"),
            )

    def read(self) -> Action:
        """The action; it is complete only if there is no fault."""
        fields, report = self._fields, self._report
        if not isinstance(self._place.value, dict):
            return Action(())
        readings, is_complete = self._phase_readings()
        outputs: dict[str, PhaseOutputs] = {}
        for position, reading in enumerate(readings):
            if reading.name is not None:
                outputs.setdefault(reading.name, PhaseOutputs(position, reading.outputs, "if" in reading.fields))
        has_unnamed = not is_complete or any(reading.name is None for reading in readings)
        scope = Scope(self.inputs, outputs, len(readings), has_unnamed)
        artifacts = self._output_artifacts(scope)
        defer_position = len(readings) - 1 if "deferPhase" in fields else -1
        phases = []
        for position, reading in enumerate(readings):
            in_defer_phase = position == defer_position
            within = replace(scope, visible=position, phase=reading.name or "", in_defer_phase=in_defer_phase)
            phases.append(self._phase(reading, within))
        return Action(
            phases=tuple(phases[:defer_position] if defer_position >= 0 else phases),
            description=report.text(fields.get("description")) or "",
            kind=self.inputs.kind or STACK,
            lock=self._lock(),
            options=self.inputs.options or {},
            config_map_names=tuple(sorted(self.inputs.config_maps or ())),
            secret_names=tuple(sorted(self.inputs.secrets or ())),
            input_artifact_names=tuple(sorted(self.inputs.artifacts or ())),
            output_artifacts=artifacts,
            defer_phase=phases[-1] if defer_position >= 0 else None,
            timeout=report.duration(fields.get("timeout")),
        )

    def _lock(self) -> bool | None:
        lock = self._report.boolean(self._fields.get("lock"))
        if lock and self.inputs.kind == NO_OBJECT:
            reason = f"an action of kind {NO_OBJECT} has no stack to lock; remove lock"
            self._report.add(self._fields["lock"], Code.FIELD_CONFLICT, reason)
        return lock

    def _names(self, key: str, what: str, noun: str) -> Collection[str] | None:
        """The names in a list, which may be left out; None: they could not be read."""
        place = self._fields.get(key)
        return () if place is None else self._report.identifiers(place, what, noun)

    def _options(self) -> dict[str, Option] | None:
        """The options by name; None: they could not be read."""
        if "options" not in self._fields:
            return {}
        entries = self._report.entries(self._fields["options"], "an option")
        return None if entries is None else {name: self._option(place) for name, place in entries.items()}

    def _option(self, place: JsonPlace) -> Option:
        report = self._report
        fields = report.fields(place, _OPTION_FIELDS, "an option")
        if fields is None:
            return Option()
        choices: dict[str, JsonPlace] = {}
        items = report.items(fields.get("enum"), "texts", least=1)
        for item in items or ():
            text = report.text(item)
            if text is not None:
                report.once(item, text, choices, "is listed twice; remove one of them")
        default = report.text(fields.get("default"))
        required = report.boolean(fields.get("required")) or False
        if "default" in fields and required:
            report.add(fields["default"], Code.FIELD_CONFLICT, "a required option has no default; remove one of them")
        elif default is not None and choices and default not in choices:
            named_choice(fields["default"], choices, report)
        return Option(report.text(fields.get("description")) or "", default, required, tuple(choices))

    def _output_artifacts(self, scope: Scope) -> dict[str, dict[str, str]]:
        report = self._report
        artifacts: dict[str, dict[str, str]] = {}
        for name, place in (report.entries(self._fields.get("outputArtifacts"), "an artifact") or {}).items():
            fields = report.fields(place, _ARTIFACT_FIELDS, "an artifact")
            if fields is None:
                continue
            entries = report.entries(fields.get("keyValue"), "a key of an artifact")
            if "keyValue" not in fields or entries == {}:
                reason = "an artifact needs at least one key; write keyValue: {key: template}"
                report.add(place.member("keyValue"), Code.LIST_EMPTY, reason)
            artifacts[name] = {}
            for key, entry in (entries or {}).items():
                text = report.text(entry)
                if text is not None:
                    check_text(entry, scope, report)
                    artifacts[name][key] = text
        return artifacts

    def _phase_readings(self) -> tuple[list[_PhaseReading], bool]:
        """The phases, the deferPhase last, and whether these are all."""
        fields, report = self._fields, self._report
        if "phases" not in fields:
            reason = f"an action needs phases; write 1 to {MOST_PHASES}"
            report.missing(self._place.member("phases"), reason)
        items = report.items(fields.get("phases"), "phases", least=1, most=MOST_PHASES)
        places = [*(items or ()), *([fields["deferPhase"]] if "deferPhase" in fields else ())]
        names: dict[str, JsonPlace] = {}
        return [self._phase_reading(place, names) for place in places], items is not None

    def _phase_reading(self, place: JsonPlace, names: dict[str, JsonPlace]) -> _PhaseReading:
        """The reading of a phase; *names* has the names of earlier ones, and receives its own."""
        report = self._report
        fields = report.fields(place, PHASE_FIELDS, "a phase")
        if fields is None:
            return _PhaseReading(place, {}, None, None, None)
        name = report.identifier(place.member("name"), "a phase")
        if name is not None:
            report.once(fields["name"], name, names, "is the name of an earlier phase; choose another one")
        version = self._version(fields.get("version"))
        signature = self._signature(place, fields, version)
        call = Call(signature, fields.get("args", place.member("args"))) if signature else None
        return _PhaseReading(place, fields, name, version, call)

    def _signature(self, place: JsonPlace, fields: Mapping[str, JsonPlace], version: int | None) -> Signature | None:
        report, table = self._report, self._table
        if "func" not in fields:
            reason = f"a phase needs func, the name of its function; functions: {listed(table.names)} (pkger functions)"
            report.missing(place.member("func"), reason)
            return None
        name = report.text(fields["func"])
        if name is None or is_server_function(name):
            return None
        if name not in table.names:
            meant = near(name, table.names)
            end = f"did you mean {quoted(meant)}?" if meant else f"functions: {listed(table.names)} (pkger functions)"
            reason = f"there is no function {quoted(name)}; {end}"
            report.add(fields["func"], Code.FUNCTION_NOT_FOUND, reason, rewrite_to_nearest(name, table.names))
            return None
        signature = table.find(name, version)
        if signature is None:
            versions = [f"v{number}" for number in table.versions(name)]
            reason = f"{name} has no version v{version}; versions: {listed(versions)}"
            report.add(fields["version"], Code.FUNCTION_NOT_FOUND, reason)
        return signature

    def _version(self, place: JsonPlace | None) -> int | None:
        if place is None:
            return None
        match = _VERSION.fullmatch(place.value) if isinstance(place.value, str) else None
        if match:
            return int(match[1])
        self._report.add(place, Code.VERSION_INVALID, f"must be v and a number, such as v1, found {shown(place.value)}")
        return None

    def _phase(self, reading: _PhaseReading, scope: Scope) -> Phase:
        fields, report = reading.fields, self._report
        condition = ""
        if "if" in fields:
            in_condition = replace(scope, place="if", remedy="a condition takes no secrets")
            condition = check_condition(fields["if"], in_condition, report)
        if reading.call:
            check_call(reading.call, scope, self._table, report)
        elif "args" in fields:
            check_arguments_without_signature(fields["args"], scope, report)
        idempotent = report.boolean(fields.get("idempotent")) or False
        retry = self._retry(fields.get("retry"))
        if retry and not idempotent and reading.call and runs_at_most_once(reading.call, self._table):
            function = reading.call.signature.name
            reason = f"{function} runs at most once; say idempotent: true if running it twice does no harm"
            report.add(fields["retry"], Code.FIELD_CONFLICT, reason)
        return Phase(
            name=reading.name or "",
            function=str(fields["func"].value) if "func" in fields else "",
            version=reading.version,
            arguments=_not_null(reading.place.member("args").value),
            condition=condition,
            timeout=report.duration(fields.get("timeout")),
            retry=retry,
            idempotent=idempotent,
        )

    def _retry(self, place: JsonPlace | None) -> Retry | None:
        report = self._report
        fields = report.fields(place, _RETRY_FIELDS, "retry") if place else None
        if place is None or fields is None:
            return None
        if "attempts" not in fields:
            report.missing(place.member("attempts"), f"retry needs attempts, a number from 1 to {MOST_ATTEMPTS}")
        attempts = report.integer(fields["attempts"], 1, MOST_ATTEMPTS) if "attempts" in fields else None
        backoff = report.duration(fields.get("backoff"), HOUR, least=0)
        max_backoff = report.duration(fields.get("maxBackoff"), HOUR, least=0)
        return Retry(
            attempts or 1,
            DEFAULT_BACKOFF if backoff is None else backoff,
            DEFAULT_MAX_BACKOFF if max_backoff is None else max_backoff,
        )


def _not_null(arguments: Any) -> dict[str, Any]:
    """The arguments that are passed: one that is null is not."""
    return {key: value for key, value in arguments.items() if value is not None} if isinstance(arguments, dict) else {}
