"""The table of diagnostics: the codes of violations and warnings. ``docs/diagnostics.md`` is generated from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from services.core.model import Severity


class Code(StrEnum):
    """Names one rule. A code keeps its meaning for ever; a removed code is not used again."""

    ACTION_NOT_FOUND = "action-not-found"
    API_VERSION_INVALID = "api-version-invalid"
    ARGUMENT_INVALID = "argument-invalid"
    ARGUMENT_MISSING = "argument-missing"
    ARGUMENT_UNKNOWN = "argument-unknown"
    ASSOCIATION_KIND_INVALID = "association-kind-invalid"
    AXIS_MISSING = "axis-missing"
    BLUEPRINT_NOT_FOUND = "blueprint-not-found"
    CHECK_LEVEL_UNKNOWN = "check-level-unknown"
    COLOR_MISSING = "color-missing"
    COLUMN_MISMATCH = "column-mismatch"
    COLUMN_MISSING = "column-missing"
    COLUMN_NAME_INVALID = "column-name-invalid"
    COLUMN_REPEATED = "column-repeated"
    CONFIG_MAP_NOT_FOUND = "config-map-not-found"
    CREDENTIAL_IN_URL = "credential-in-url"
    CREDENTIAL_MISSING = "credential-missing"
    CREDENTIAL_WRITTEN_OUT = "credential-written-out"
    DEFINITION_FIELD_UNKNOWN = "definition-field-unknown"
    DEFINITION_TOO_LARGE = "definition-too-large"
    DURATION_INVALID = "duration-invalid"
    ENCODING_INVALID = "encoding-invalid"
    ENDPOINT_NOT_FOUND = "endpoint-not-found"
    FAMILY_IGNORED = "family-ignored"
    FIELD_CONFLICT = "field-conflict"
    FIELD_MISSING = "field-missing"
    FIELD_NOT_ACCEPTED = "field-not-accepted"
    FILE_PATH_INVALID = "file-path-invalid"
    FUNCTION_NOT_FOUND = "function-not-found"
    IDENTIFIER_INVALID = "identifier-invalid"
    INPUT_MISSING = "input-missing"
    INPUT_NOT_DECLARED = "input-not-declared"
    ITEMS_IGNORED = "items-ignored"
    KIND_MISSING = "kind-missing"
    LABEL_NOT_FOUND = "label-not-found"
    LABEL_REPEATED = "label-repeated"
    LIFECYCLE_FIELD_UNKNOWN = "lifecycle-field-unknown"
    LIFECYCLE_REPEATED = "lifecycle-repeated"
    LIST_EMPTY = "list-empty"
    LIST_INVALID = "list-invalid"
    MANIFEST_REPEATED = "manifest-repeated"
    NAME_INVALID = "name-invalid"
    NAME_REPEATED = "name-repeated"
    NAME_TAKEN = "name-taken"
    NAME_TOO_SHORT = "name-too-short"
    NUMBER_AS_TEXT = "number-as-text"
    NUMBER_INVALID = "number-invalid"
    NUMBER_TRUNCATED = "number-truncated"
    OPTION_INVALID = "option-invalid"
    OPTION_REPLACED = "option-replaced"
    OTHER_FORMAT = "other-format"
    PACKAGE_EMPTY = "package-empty"
    PACKAGE_LACKS_OBJECT = "package-lacks-object"
    PACKAGE_NAMED_BY_VALUE = "package-named-by-value"
    PACKAGE_NOT_REQUIRED = "package-not-required"
    PACKAGE_NOT_RESOLVED = "package-not-resolved"
    PARAMETER_MISMATCH = "parameter-mismatch"
    POLICY_VALUE_INVALID = "policy-value-invalid"
    RANGE_REVERSED = "range-reversed"
    REFERENCE_NOT_FOUND = "reference-not-found"
    REQUIREMENT_INVALID = "requirement-invalid"
    RETENTION_RULE_IGNORED = "retention-rule-ignored"
    SCHEDULE_MISSING = "schedule-missing"
    SECRET_MISPLACED = "secret-misplaced"  # noqa: S105 - a code
    SECRET_REFERENCE_INVALID = "secret-reference-invalid"  # noqa: S105 - a code
    SOURCE_TOO_LARGE = "source-too-large"
    SOURCE_UNDECODABLE = "source-undecodable"
    SOURCE_UNREADABLE = "source-unreadable"
    TEMPLATE_INVALID = "template-invalid"
    TEXT_INVALID = "text-invalid"
    TYPE_INVALID = "type-invalid"
    UNKNOWN_CHART_KIND = "unknown-chart-kind"
    UNKNOWN_FIELD = "unknown-field"
    UNKNOWN_KIND = "unknown-kind"
    UNKNOWN_VARIABLE_TYPE = "unknown-variable-type"
    UNKNOWN_WORD = "unknown-word"
    URL_INVALID = "url-invalid"
    URL_WITH_USER = "url-with-user"
    VALUE_EMPTY = "value-empty"
    VALUE_IGNORED = "value-ignored"
    VALUE_MAY_BE_MISSING = "value-may-be-missing"
    VALUE_NOT_ALLOWED = "value-not-allowed"
    VALUE_OUT_OF_RANGE = "value-out-of-range"
    VERSION_INVALID = "version-invalid"
    VERSION_RANGE_INVALID = "version-range-invalid"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """
    One row of the table.

    Attributes:
        severity: Errors make a package invalid; warnings and information do not.
        about: One sentence: the condition of the code.
        wrong: A package that gets this code and no other; empty for an error that no source text can show.
        right: The same package, corrected; it gets no code at all.
    """

    severity: Severity
    about: str
    wrong: str = ""
    right: str = ""


def _text(kind: str, spec: str = "", name: str = "example", version: str = "v2alpha1") -> str:
    """A YAML document of one object; *spec* is the YAML of its spec."""
    head = f"apiVersion: influxdata.com/{version}\nkind: {kind}\nmetadata:\n  name: {name}\n"
    return head + ("spec:\n" + "".join(f"  {line}\n" for line in spec.splitlines()) if spec else "")


def _error(kind: str, about: str, wrong: str, right: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, about, _text(kind, wrong), _text(kind, right))


def _warning(kind: str, about: str, wrong: str, right: str, severity: Severity = Severity.WARNING) -> Diagnostic:
    return Diagnostic(severity, about, _text(kind, wrong), _text(kind, right))


def _manifest(spec: str = "", version: str = "1.0.0") -> str:
    """A manifest of that version; *spec* is the YAML of its other fields."""
    head = "apiVersion: pkger/v1\nkind: Package\nmetadata:\n  name: example\nspec:\n"
    return head + "".join(f"  {line}\n" for line in (f"version: {version}", *spec.splitlines()))


def _lifecycle(policy: str) -> str:
    """A Lifecycle document; *policy* has the fields of its policy."""
    return f"apiVersion: pkger/v1\nkind: Lifecycle\nmetadata:\n  name: example\nspec:\n  policy: {{{policy}}}\n"


def _of_policy(about: str, wrong: str, right: str) -> Diagnostic:
    """A row about the policy of a label."""
    texts = (_text("Label").replace("metadata:\n", f"metadata:\n  lifecycle: {{{each}}}\n") for each in (wrong, right))
    return Diagnostic(Severity.ERROR, about, *texts)


def _of_manifest(about: str, wrong: str, right: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, about, _manifest(wrong), _manifest(right))


def _requiring(spec: str) -> str:
    """A bucket of a package that requires the package ``base``."""
    return _manifest("requires: [{name: base, version: ^1}]") + "---\n" + _text("Bucket", spec)


_LABEL = _text("Label", "name: Fleet", "fleet")
_LABELLED = "associations:\n- {{kind: {}, name: {}}}"
_SLACK = "url: https://hooks.slack.com/x\n"
_HTTP = "url: https://example.com/hook\nmethod: POST\n"
_RULE = "every: 1m\nendpointName: {}\nstatusRules: [{{currentLevel: CRIT}}]"
_CHECK = "every: 1m\nquery: from(bucket)\nstatusMessageTemplate: is dead\n"
_TIME, _FIELD = "{name: time, type: timestamp}", "{name: load, type: field, dataType: float}"
_AXES = "{name: x}, {name: y}"
_DEFER = 'deferPhase:\n  name: drop\n  func: DeleteSnapshot\n  args: {{snapshot: "{{{{ {} }}}}"}}'


def _schema(*columns: str, name: str = "cpu") -> str:
    return f"measurementSchemas:\n- name: {name}\n  columns: [{', '.join(columns)}]"


def _chart(fields: str) -> str:
    return f"charts:\n- {{{fields}}}"


def _task(default: str, value_type: str, option: str = "params", script: str = "n: 1", key: str = "n") -> str:
    return (
        f"every: 1h\nquery: 'option {option} = {{{script}}}'\n"
        f"{option}: [{{key: {key}, default: {default}, type: {value_type}}}]"
    )


def _with_label(spec: str) -> str:
    return _LABEL + "---\n" + _text("Bucket", spec)


def _definition(kind: str, spec: str, name: str = "example") -> str:
    """A YAML document of one definition; *spec* is the YAML of its spec."""
    head = f"apiVersion: pkger/v1\nkind: {kind}\nmetadata:\n  name: {name}\nspec:\n"
    return head + "".join(f"  {line}\n" for line in spec.splitlines())


def _blueprint(phase: str = "func: ExportStack", more: str = "") -> str:
    """A blueprint of one action; *phase* has the fields of its phase, *more* the YAML of its other fields."""
    fields = "".join(f"    {line}\n" for line in more.splitlines())
    return _definition("Blueprint", f"actions:\n  backup:\n{fields}    phases:\n    - {{name: export, {phase}}}")


def _action_set(action: str = "name: backup", more: str = "") -> str:
    """A blueprint as ``_blueprint`` makes it, and an action set that runs its action."""
    of_stack = "blueprint: example, object: {kind: Stack, name: prod}"
    return (
        _blueprint(more=more) + "---\n" + _definition("ActionSet", f"actions:\n- {{{action}, {of_stack}}}", "nightly")
    )


def _of_phase(about: str, wrong: str, right: str, more: str = "") -> Diagnostic:
    return Diagnostic(Severity.ERROR, about, _blueprint(wrong, more), _blueprint(right, more))


def _of_action(about: str, wrong: str, right: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, about, _blueprint(more=wrong), _blueprint(more=right))


def _of_run(about: str, wrong: str, right: str, more: str = "") -> Diagnostic:
    return Diagnostic(Severity.ERROR, about, _action_set(wrong, more), _action_set(right, more))


DIAGNOSTICS: Mapping[Code, Diagnostic] = MappingProxyType(
    {
        Code.ACTION_NOT_FOUND: _of_run("The blueprint has no such action.", "name: back", "name: backup"),
        Code.API_VERSION_INVALID: Diagnostic(
            Severity.ERROR,
            "The apiVersion is missing or is no version of the package format.",
            _text("Label", version="v3"),
            _text("Label"),
        ),
        Code.ARGUMENT_INVALID: _of_phase(
            "The argument of a function has a type or a value that it does not take, or does not go with another one.",
            "func: ExportStack, args: {partial: 'yes'}",
            "func: ExportStack, args: {partial: true}",
        ),
        Code.ARGUMENT_MISSING: _of_phase(
            "The function needs an argument that is missing or null.",
            "func: Sleep",
            "func: Sleep, args: {duration: 10s}",
        ),
        Code.ARGUMENT_UNKNOWN: _of_phase(
            "The function has no such argument.",
            "func: ExportStack, args: {partail: true}",
            "func: ExportStack, args: {partial: true}",
        ),
        Code.ASSOCIATION_KIND_INVALID: Diagnostic(
            Severity.ERROR,
            "The kind of an association is missing or is no kind; only labels can be associated.",
            _with_label(_LABELLED.format("Tag", "fleet")),
            _with_label(_LABELLED.format("Label", "fleet")),
        ),
        Code.AXIS_MISSING: _error(
            "Dashboard",
            "The kind of chart needs an axis that the chart does not have.",
            _chart("kind: xy, geom: line, width: 6, height: 3, axes: [{name: x}]"),
            _chart(f"kind: xy, geom: line, width: 6, height: 3, axes: [{_AXES}]"),
        ),
        Code.BLUEPRINT_NOT_FOUND: Diagnostic(
            Severity.ERROR, "There is no such blueprint, neither in the request nor stored."
        ),
        Code.CHECK_LEVEL_UNKNOWN: _warning(
            "CheckDeadman",
            "The level of a deadman check is missing or is no level, so the check reports UNKNOWN.",
            _CHECK + "level: fatal",
            _CHECK + "level: crit",
        ),
        Code.COLOR_MISSING: _error(
            "Dashboard",
            "The kind of chart needs a color of a type that the chart does not have.",
            _chart("kind: gauge, width: 6, height: 3, colors: [{type: max, hex: '#fff'}]"),
            _chart("kind: gauge, width: 6, height: 3, colors: [{type: min, hex: '#000'}, {type: max, hex: '#fff'}]"),
        ),
        Code.COLUMN_MISMATCH: _error(
            "Bucket",
            "The name, type and dataType of a column do not fit together: only the column time is a timestamp, "
            "and only columns of type field have a dataType.",
            _schema(_TIME, _FIELD, "{name: host, type: tag, dataType: string}"),
            _schema(_TIME, _FIELD, "{name: host, type: tag}"),
        ),
        Code.COLUMN_MISSING: _error(
            "Bucket",
            "A measurement schema has no time column or no column of type field.",
            _schema(_TIME),
            _schema(_TIME, _FIELD),
        ),
        Code.COLUMN_NAME_INVALID: _error(
            "Bucket",
            "The name of a schema or column is empty, too long, not printable, has quotes or begins with _.",
            _schema(_TIME, _FIELD, name="_cpu"),
            _schema(_TIME, _FIELD),
        ),
        Code.COLUMN_REPEATED: _error(
            "Bucket",
            "Two columns of a schema have the same name, whatever its case.",
            _schema(_TIME, _FIELD, "{name: Load, type: tag}"),
            _schema(_TIME, _FIELD, "{name: host, type: tag}"),
        ),
        Code.CONFIG_MAP_NOT_FOUND: Diagnostic(
            Severity.ERROR, "There is no such config map, neither in the request nor stored."
        ),
        Code.CREDENTIAL_IN_URL: _warning(
            "NotificationEndpointSlack",
            "The url holds a credential: it is the address of a Slack webhook, or has a query value with the name of a "
            "credential. No secret can hold a url.",
            "url: https://hooks.slack.com/services/T0/B0/x",
            "url: https://slack.com/api/chat.postMessage\ntoken: {secretRef: {key: slack}}",
        ),
        Code.CREDENTIAL_MISSING: _error(
            "NotificationEndpointHTTP",
            "The endpoint needs a credential that is not given.",
            _HTTP + "type: bearer",
            _HTTP + "type: bearer\ntoken: {secretRef: {key: hook-token}}",
        ),
        Code.CREDENTIAL_WRITTEN_OUT: _warning(
            "NotificationEndpointSlack",
            "The package holds a credential, or takes it from an environment value, instead of naming a secret; "
            "platforms may refuse it.",
            _SLACK + "token: {envRef: {key: slack}}",
            _SLACK + "token: {secretRef: {key: slack}}",
        ),
        Code.DEFINITION_FIELD_UNKNOWN: _of_phase(
            "A definition has no such field.", "func: ExportStack, timout: 5m", "func: ExportStack, timeout: 5m"
        ),
        Code.DEFINITION_TOO_LARGE: Diagnostic(
            Severity.ERROR, "The definition has more than 256 KiB, or is nested too deeply."
        ),
        Code.DURATION_INVALID: _error(
            "NotificationRule",
            "A duration cannot be read, is not within its bounds, or is zero although it is required.",
            "every: 0s\nendpointName: hook\nstatusRules: [{currentLevel: CRIT}]",
            "every: 5m\nendpointName: hook\nstatusRules: [{currentLevel: CRIT}]",
        ),
        Code.ENCODING_INVALID: Diagnostic(
            Severity.ERROR, "The source has an encoding that the parser may not read, such as Jsonnet."
        ),
        Code.ENDPOINT_NOT_FOUND: _error(
            "NotificationRule",
            "A rule names a notification endpoint that the package does not have.",
            _RULE.format("pager"),
            _RULE.format("hook"),
        ),
        Code.FAMILY_IGNORED: Diagnostic(
            Severity.WARNING,
            "The kind is a family of kinds, so the object is ignored.",
            "apiVersion: influxdata.com/v2alpha1\nkind: Check\nmetadata:\n  name: example\n",
            _text("CheckDeadman", _CHECK + "level: crit"),
        ),
        Code.FIELD_CONFLICT: _of_action(
            "Two fields of a definition do not go together, or a field does not go with the function of its phase.",
            "options: {tag: {required: true, default: manual}}",
            "options: {tag: {default: manual}}",
        ),
        Code.FIELD_MISSING: _error("Task", "A required field is missing or null.", "every: 1h", "every: 1h\nquery: x"),
        Code.FIELD_NOT_ACCEPTED: _of_manifest(
            "The format has the field or the value, and this version does not accept it yet, or not at this place.",
            "requires: [{name: base, values: {retention: 30d}}]",
            "requires: [{name: base}]",
        ),
        Code.FILE_PATH_INVALID: _of_manifest(
            "A file of the manifest is no relative path to YAML or JSON below its folder, or is listed twice.",
            "files: [../team.yaml]",
            "files: [labels/team.yaml]",
        ),
        Code.FUNCTION_NOT_FOUND: _of_phase(
            "There is no such function, or no such version of it.", "func: KubeTask", "func: ExportStack"
        ),
        Code.IDENTIFIER_INVALID: _of_action(
            "A name inside a definition is missing or is none: letters, digits and _, with a letter first.",
            "secretNames: [slack-token]",
            "secretNames: [slackToken]",
        ),
        Code.INPUT_MISSING: _of_run(
            "The action needs an artifact, a config map, a secret or an option that the action set does not pass.",
            "name: backup",
            "name: backup, options: {tag: night}",
            "options: {tag: {required: true}}",
        ),
        Code.INPUT_NOT_DECLARED: _of_run(
            "The action set passes an artifact, a config map, a secret or an option that the action does not declare.",
            "name: backup, options: {tga: night}",
            "name: backup, options: {tag: night}",
            "options: {tag: {default: manual}}",
        ),
        Code.ITEMS_IGNORED: _warning(
            "Bucket",
            "Items of a list have the wrong type, so they are ignored.",
            "retentionRules: [3600]",
            "retentionRules: [{type: expire, everySeconds: 3600}]",
        ),
        Code.KIND_MISSING: Diagnostic(
            Severity.ERROR,
            "The object has no kind.",
            "apiVersion: influxdata.com/v2alpha1\nmetadata:\n  name: example\n",
            _text("Label"),
        ),
        Code.LABEL_NOT_FOUND: Diagnostic(
            Severity.ERROR,
            "An association names no label of the package; labels are named by their metadata.name.",
            _with_label(_LABELLED.format("Label", "Fleet")),
            _with_label(_LABELLED.format("Label", "fleet")),
        ),
        Code.LABEL_REPEATED: Diagnostic(
            Severity.ERROR,
            "An object is associated with the same label twice.",
            _with_label("associations:\n- {kind: Label, name: fleet}\n- {kind: Label, name: fleet}"),
            _with_label("associations:\n- {kind: Label, name: fleet}"),
        ),
        Code.LIFECYCLE_FIELD_UNKNOWN: _of_policy(
            "A policy, or a Lifecycle document, has no such field.", "protct: true", "protect: true"
        ),
        Code.LIFECYCLE_REPEATED: Diagnostic(
            Severity.ERROR,
            "An earlier object of the package is its Lifecycle document already.",
            _lifecycle("protect: true") + "---\n" + _lifecycle("drift: ignore"),
            _lifecycle("protect: true, drift: ignore"),
        ),
        Code.LIST_EMPTY: _error(
            "Variable",
            "A list or mapping that needs at least one usable entry has none.",
            "type: constant\nvalues: []",
            "type: constant\nvalues: [a]",
        ),
        Code.LIST_INVALID: _of_manifest(
            "The value is no list, or the list has too many items.",
            "requires: {name: base}",
            "requires: [{name: base}]",
        ),
        Code.MANIFEST_REPEATED: Diagnostic(
            Severity.ERROR,
            "An earlier object of the package is its manifest already.",
            _manifest() + "---\n" + _manifest(),
            _manifest(),
        ),
        Code.NAME_INVALID: Diagnostic(
            Severity.ERROR,
            "The metadata.name is missing or does not have the form of a name.",
            _text("Label", name="My Label"),
            _text("Label", name="my-label"),
        ),
        Code.NAME_REPEATED: _of_action(
            "A name is there twice in one list, or two phases of an action have one name.",
            "secretNames: [slack, slack]",
            "secretNames: [slack]",
        ),
        Code.NAME_TAKEN: Diagnostic(
            Severity.ERROR,
            "An earlier object of the package has the same metadata.name or, where names are unique, display name. An "
            "earlier definition of the source has the same kind and metadata.name.",
            _LABEL + "---\n" + _text("Label", "name: Fleet"),
            _LABEL + "---\n" + _text("Label", "name: Trucks"),
        ),
        Code.NAME_TOO_SHORT: _error("Label", "The display name is too short.", "name: x", "name: xy"),
        Code.NUMBER_AS_TEXT: _warning(
            "Label",
            "A number is given for a text, and its text differs from the source.",
            "color: 000000",
            'color: "000000"',
        ),
        Code.NUMBER_INVALID: _error(
            "Dashboard",
            "The domain of an axis holds a text that is no number.",
            _chart(f"kind: scatter, width: 6, height: 3, axes: [{_AXES[:-1]}, domain: [low, 10]}}]"),
            _chart(f"kind: scatter, width: 6, height: 3, axes: [{_AXES[:-1]}, domain: [0, 10]}}]"),
        ),
        Code.NUMBER_TRUNCATED: _warning(
            "Bucket",
            "A number with a fraction is given for a whole number; the fraction is cut off.",
            "retentionRules: [{type: expire, everySeconds: 3600.5}]",
            "retentionRules: [{type: expire, everySeconds: 3600}]",
        ),
        Code.OPTION_INVALID: Diagnostic(
            Severity.ERROR,
            "An option of a task, in its script or in its list task, is no duration, so the query cannot be used.",
            _text("Task", _task("1d", "duration", "task", "every: 1h", "every"), version="v2alpha2"),
            _text("Task", _task("24h", "duration", "task", "every: 1h", "every"), version="v2alpha2"),
        ),
        Code.OPTION_REPLACED: _warning(
            "Task",
            "The task's name, every, cron and offset replace the script's option task when it is applied.",
            "every: 1h\nquery: 'option task = {every: 1h}'",
            "every: 1h\nquery: 'from(bucket: \"b\")'",
            Severity.INFORMATION,
        ),
        Code.OTHER_FORMAT: Diagnostic(
            Severity.ERROR,
            "The object is an export of the user interface of InfluxDB, or a dashboard of Grafana.",
            "content:\n  data: {type: dashboard, attributes: {name: Fleet}}\n",
            _text("Dashboard", "name: Fleet"),
        ),
        Code.PACKAGE_EMPTY: Diagnostic(
            Severity.ERROR, "The package has no objects.", "# nothing is declared here\n", _text("Label")
        ),
        Code.PACKAGE_LACKS_OBJECT: Diagnostic(
            Severity.ERROR,
            "An object of another package is named that this package does not have; only an installation looks for it.",
        ),
        Code.PACKAGE_NAMED_BY_VALUE: Diagnostic(
            Severity.ERROR,
            "An environment value names an object of another package; only a literal can.",
            _requiring(_LABELLED.format("Label", "{envRef: {key: label, default: base.fleet}}")),
            _requiring(_LABELLED.format("Label", "base.fleet")),
        ),
        Code.PACKAGE_NOT_REQUIRED: Diagnostic(
            Severity.ERROR,
            "An object of another package is named that the manifest does not require.",
            _requiring(_LABELLED.format("Label", "team.fleet")),
            _requiring(_LABELLED.format("Label", "base.fleet")),
        ),
        Code.PACKAGE_NOT_RESOLVED: Diagnostic(
            Severity.ERROR,
            "A plan of an apply meets an object of another package, which only an installation can resolve.",
        ),
        Code.PARAMETER_MISMATCH: _error(
            "Task",
            "The default of a parameter, or the value supplied for it, does not fit its type.",
            _task("many", "int"),
            _task("7", "int"),
        ),
        Code.POLICY_VALUE_INVALID: _of_policy(
            "A field of a policy has a value that it does not take, or a reference; or a policy exceeds a limit.",
            "drift: fix",
            "drift: revert",
        ),
        Code.RANGE_REVERSED: _error(
            "CheckThreshold",
            "The min of a threshold is greater than its max.",
            _CHECK + "thresholds: [{level: CRIT, type: inside_range, min: 9, max: 1}]",
            _CHECK + "thresholds: [{level: CRIT, type: inside_range, min: 1, max: 9}]",
        ),
        Code.REFERENCE_NOT_FOUND: _of_phase(
            "An expression uses an option, an artifact, a secret, a config map, an earlier phase or its output that "
            "is not there, or does not name it literally.",
            "func: ExportStack, args: {stack: '{{ options.stak }}'}",
            "func: ExportStack, args: {stack: '{{ options.stack }}'}",
            "options: {stack: {required: true}}",
        ),
        Code.REQUIREMENT_INVALID: _of_manifest(
            "A requirement is no mapping, is required twice, or is the package itself.",
            "requires: [{name: base}, {name: base}]",
            "requires: [{name: base}]",
        ),
        Code.RETENTION_RULE_IGNORED: _warning(
            "Bucket",
            "A bucket has several retention rules; only the first takes effect.",
            "retentionRules:\n- {type: expire, everySeconds: 3600}\n- {type: expire, everySeconds: 7200}",
            "retentionRules:\n- {type: expire, everySeconds: 3600}",
        ),
        Code.SCHEDULE_MISSING: _error("Task", "A task has neither every nor cron.", "query: x", "query: x\nevery: 1h"),
        Code.SECRET_MISPLACED: _of_phase(
            "An expression uses a secret where none may be.",
            "func: ExportStack, args: {stack: '{{ secrets.slack.token }}'}",
            "func: RestoreStack, args: {snapshot: x, secrets: {slack: '{{ secrets.slack.token }}'}}",
            "secretNames: [slack]",
        ),
        Code.SECRET_REFERENCE_INVALID: _of_run(
            "The place of a secret is none; a secret itself never stands in a definition.",
            "name: backup, secrets: {slack: {token: xoxb-1}}",
            "name: backup, secrets: {slack: {token: {env: SLACK_TOKEN}}}",
            "secretNames: [slack]",
        ),
        Code.SOURCE_TOO_LARGE: Diagnostic(Severity.ERROR, "The sources together exceed a bound of the parser."),
        Code.SOURCE_UNDECODABLE: Diagnostic(
            Severity.ERROR,
            "The source cannot be read in its encoding, or an object in it is no mapping with an envelope.",
            "kind: [Label\n",
            _text("Label"),
        ),
        Code.SOURCE_UNREADABLE: Diagnostic(Severity.ERROR, "The address of the source cannot be read."),
        Code.TEMPLATE_INVALID: _of_phase(
            "A template cannot be read, or stands where none may be; a condition is no single expression.",
            "func: ExportStack, args: {stack: '{{ .Object.Name }}'}",
            "func: ExportStack, args: {stack: '{{ object.name }}'}",
        ),
        Code.TEXT_INVALID: _of_manifest(
            "The value is no text, or the text is too long.", "description: true", 'description: "true"'
        ),
        Code.TYPE_INVALID: _of_phase(
            "The value has a type that the field of a definition does not take.",
            "func: ExportStack, args: [partial]",
            "func: ExportStack, args: {partial: true}",
        ),
        Code.UNKNOWN_CHART_KIND: _error(
            "Dashboard", "There is no such kind of chart.", _chart("kind: pie"), _chart("kind: markdown")
        ),
        Code.UNKNOWN_FIELD: _warning(
            "Label",
            "There is no such field, so it is ignored.",
            "colour: red",
            "color: red",
        ),
        Code.UNKNOWN_KIND: Diagnostic(Severity.ERROR, "There is no such kind.", _text("Labels"), _text("Label")),
        Code.UNKNOWN_VARIABLE_TYPE: _warning(
            "Variable",
            "The type of a variable is missing or is no type, so the variable has no values.",
            "type: choice",
            "type: constant\nvalues: [a]",
        ),
        Code.UNKNOWN_WORD: _warning(
            "Task",
            "The word is allowed but has no meaning here.",
            "every: 1h\nquery: x\nparams: [{key: a, type: duraton}]",
            "every: 1h\nquery: x\nparams: [{key: a, type: duration}]",
        ),
        Code.URL_INVALID: _error(
            "NotificationEndpointSlack", "The value is no URL.", "url: ':hook'", "url: https://example.com/hook"
        ),
        Code.URL_WITH_USER: _error(
            "NotificationEndpointHTTP",
            "The url holds a user or a password.",
            "url: https://me:pw@example.com/hook\nmethod: POST\ntype: none",
            _HTTP + "type: basic\nusername: {secretRef: {key: hook-user}}\npassword: {secretRef: {key: hook-password}}",
        ),
        Code.VALUE_EMPTY: _error(
            "Task",
            "A required text is empty, or the value is no text.",
            "every: 1h\nquery: ' '",
            "every: 1h\nquery: x",
        ),
        Code.VALUE_IGNORED: _warning(
            "Label",
            "The value has a type that the field cannot use, so it is ignored.",
            "description: true",
            'description: "true"',
        ),
        Code.VALUE_MAY_BE_MISSING: _of_action(
            "An expression uses a value that may not be there when it is used, without default or has.",
            _DEFER.format("phases.export.output.snapshot"),
            _DEFER.format("default(phases.export.output.snapshot, '')"),
        ),
        Code.VALUE_NOT_ALLOWED: _error(
            "Task",
            "The field takes one of a few words, and this is none of them.",
            "every: 1h\nquery: x\nstatus: aktive",
            "every: 1h\nquery: x\nstatus: active",
        ),
        Code.VALUE_OUT_OF_RANGE: _error(
            "Bucket",
            "The number is too small or too large for the field, or the value is no number.",
            "retentionRules: [{type: expire, everySeconds: 60}]",
            "retentionRules: [{type: expire, everySeconds: 3600}]",
        ),
        Code.VERSION_INVALID: Diagnostic(
            Severity.ERROR,
            "The text is no version, or not the canonical one.",
            _manifest(version='"1.2"'),
            _manifest(version="1.2.0"),
        ),
        Code.VERSION_RANGE_INVALID: _of_manifest(
            "The text is no range of versions.",
            "requires: [{name: base, version: latest}]",
            'requires: [{name: base, version: "*"}]',
        ),
    }
)
"""Every code with its row, sorted by code."""

_SEVERITIES = {
    Severity.ERROR: "Error: the package, or the definition, is invalid.",
    Severity.WARNING: "Warning: the package is valid.",
    Severity.INFORMATION: "Information: the package is valid.",
}

_HEAD = """# Diagnostics

Every violation and every warning has a code, which programs can rely on; `pkger validate` shows it. A code keeps its
meaning for ever. This page is made from the table in `services/kinds/diagnostics.py`:
`python -m services.kinds.diagnostics > docs/diagnostics.md`.
"""


def page() -> str:
    """The text of ``docs/diagnostics.md``."""
    return "\n".join([_HEAD, *(_section(code, row) for code, row in DIAGNOSTICS.items())])


def _section(code: Code, row: Diagnostic) -> str:
    parts = [f"## {code}\n", f"{row.about} {_SEVERITIES[row.severity]}\n"]
    for title, example in (("Wrong", row.wrong), ("Right", row.right)):
        if example:
            parts.append(f"{title}:\n\n```yaml\n{example}```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
