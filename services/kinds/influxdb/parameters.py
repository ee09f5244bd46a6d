"""Parameters of queries and options of tasks: what the script says, what lists and supplied values change in it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.durations import parse_duration
from services.kinds.format.fields import Fault, Fields
from services.kinds.format.references import Reference
from services.kinds.influxdb.flux.layout import rewritten
from services.kinds.influxdb.flux.script import Statement, first_options, read_statements
from services.kinds.influxdb.flux.settings import Setting, settings_in, with_params, with_task


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A value in a script that the caller may supply.

    Attributes:
        name: As the script calls it.
        resource_field: Where the summary says it stands, such as ``spec.params.bucket``.
        reference: Its environment key and its default.
        value_type: ``bool``, ``duration``, ``float``, ``integer``, ``string`` or ``time``; empty when nobody says.
    """

    name: str
    resource_field: str
    reference: Reference
    value_type: str


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """
    What the ``option task`` of a script says of a ``v2alpha2`` task (docs/reference/package-format.md, "Task options").

    Attributes:
        name: What names the task instead of ``spec.name``, which is its field here; None when the option has none.
        every: Nanoseconds, 0 included; None when the option has none, or no duration.
        offset: As *every*.
        faults: Why ``every`` or ``offset`` is no duration (T2); one reason for both, or none.
    """

    name: Parameter | None = None
    every: int | None = None
    offset: int | None = None
    faults: tuple[str, ...] = ()


NO_TASK_OPTIONS = TaskOptions()
"""What a script without ``option task`` says, and any script to a ``v2alpha1`` task."""


@dataclass(frozen=True, slots=True)
class Script:
    """
    What a query comes to. Parameters and options are in the order of the script, those that only a list names last.

    Attributes:
        text: The query to run: the source, trimmed; with its values written in when it has parameters or options.
        parameters: What may be supplied for ``option params``.
        options: What may be supplied for ``option task``. Unlike a parameter, none counts as missing; only the name of
            a ``v2alpha2`` task does.
        task: What a ``v2alpha2`` task takes from its options.
        faults: Why the query is dropped (T1), one reason; text, parameters and options are then empty.
        misfits: Values that do not fit their types (docs/reference/package-format.md, "Parameter values"); the script
            keeps what it has in place of them.
    """

    text: str
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Parameter, ...] = ()
    task: TaskOptions = NO_TASK_OPTIONS
    faults: tuple[str, ...] = ()
    misfits: tuple[Fault, ...] = ()


def read_chart_query(
    fields: Fields,
    meta_name: str,
    chart: int,
    query: int,
    kept_chart: int,
    kept_query: int,
    env: Mapping[str, Any],
) -> Script:
    """
    Read the query of a chart.

    Args:
        fields: The mapping with ``query`` and its list ``params``.
        meta_name: Resolved meta name of the dashboard.
        chart: Position of the chart among the mappings of ``charts``, for environment keys
            (docs/reference/package-format.md, "Oddities", P15).
        query: Position of the query among the mappings of ``queries``, likewise.
        kept_chart: Position of the chart in the summary.
        kept_query: Position of the query in the summary.
        env: The supplied values by key.
    """
    source = _read(fields.text("query"))
    if not source.options:
        return Script(source.text)
    parameters = _Values(
        with_params(source.settings("params"), fields.mappings("params")),
        f"dashboards[{meta_name}].spec.charts[{chart}].queries[{query}].params.",
        f"spec.charts[{kept_chart}].queries[{kept_query}].params.",
        env,
    )
    # Nothing can be supplied for task options in a chart, but they are written in the same way.
    text = source.written(parameters, _Values(source.settings("task")))
    return Script(text, parameters.parameters(), misfits=parameters.misfits(fields))


def read_task_query(fields: Fields, meta_name: str, env: Mapping[str, Any], feeds_task: bool) -> Script:
    """
    Read the query of a task.

    Args:
        fields: The spec, with ``query`` and its lists ``params`` and ``task``.
        meta_name: Resolved meta name of the task.
        env: The supplied values by key.
        feeds_task: Whether the task takes name, every and offset from the options: it is a ``v2alpha2`` task.
    """
    source = _read(fields.text("query"))
    if not source.options:
        return Script(source.text)
    params, task = fields.mappings("params"), fields.mappings("task")
    parameters = _values(with_params(source.settings("params"), params), "params", meta_name, env)
    options = _values(with_task(source.settings("task"), task), "task", meta_name, env)
    misfits = parameters.misfits(fields)
    if reasons := [setting.fault for setting in options.settings.values() if setting.fault]:
        return Script("", faults=("; ".join(reasons),), misfits=misfits + options.misfits(fields))
    lengths = _lengths(options) if feeds_task else {}
    wrong = [name for name in _LENGTHS if name in lengths and lengths[name] is None]
    return Script(
        source.written(parameters, options),
        parameters.parameters(),
        options.parameters(),
        _task_options(options, lengths, wrong) if feeds_task else NO_TASK_OPTIONS,
        # A default that is no length breaks one rule, not two.
        misfits=misfits + options.misfits(fields, without=wrong),
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """
    The settings of one option record, and what is supplied for them.

    Attributes:
        settings: By name.
        key_prefix: What stands before the name in the environment key of a setting.
        field_prefix: What stands before the name where the summary lists it.
        env: The supplied values by key.
    """

    settings: Mapping[str, Setting]
    key_prefix: str = ""
    field_prefix: str = ""
    env: Mapping[str, Any] = field(default_factory=dict)

    def supplied(self, name: str) -> Any:
        """The value supplied for a setting, any tree; None when there is none."""
        return self.env.get(self.key_prefix + name)

    def expressions(self) -> dict[str, str]:
        """What changes in the record."""
        found = {name: setting.expression(self.supplied(name)) for name, setting in self.settings.items()}
        return {name: expression for name, expression in found.items() if expression is not None}

    def misfits(self, fields: Fields, without: Collection[str] = ()) -> tuple[Fault, ...]:
        """
        The faults of values that do not fit their types.

        Args:
            fields: The mapping with the query, whose place stands for that of a supplied value.
            without: Settings whose defaults are not looked at.
        """
        found: list[Fault] = []
        for name, setting in self.settings.items():
            if name not in without and (fault := setting.default_misfit()):
                found.append(fault)
            if misfit := setting.supplied_misfit(self.supplied(name)):
                reason = f"the value of {self.key_prefix + name!r} {misfit}"
                pointer = (*fields.pointer, "query")
                found.append(Fault(Code.PARAMETER_MISMATCH, self.field_prefix + name, reason, pointer))
        return tuple(found)

    def parameters(self) -> tuple[Parameter, ...]:
        """All settings as the caller sees them."""
        return tuple(
            Parameter(
                name,
                self.field_prefix + name,
                Reference(env_key=self.key_prefix + name, default=setting.default),
                setting.value_type,
            )
            for name, setting in self.settings.items()
        )


def _values(settings: Mapping[str, Setting], part: str, meta_name: str, env: Mapping[str, Any]) -> _Values:
    """The values of an option record of a task; *part* is the list that changes it."""
    return _Values(settings, f"tasks[{meta_name}].spec.{part}.", f"spec.{part}.", env)


@dataclass(frozen=True, slots=True)
class _Source:
    """
    A trimmed query, and its first ``option params`` and ``option task``.

    One that is no record has no parameters, but the lists of the package still count, as in the reference.
    """

    text: str
    statements: tuple[Statement, ...] = ()
    options: Mapping[str, Statement] = field(default_factory=dict)

    def settings(self, option: str) -> dict[str, Setting]:
        """The settings in the record of an option; none when that is no record."""
        statement = self.options.get(option)
        return settings_in(statement.record) if statement and statement.record else {}

    def written(self, params: _Values, task: _Values) -> str:
        """The text with these values; as it is when there are none."""
        if not params.settings and not task.settings:
            return self.text
        return rewritten(self.text, self.statements, {"params": params.expressions(), "task": task.expressions()})


def _read(text: str) -> _Source:
    trimmed = text.strip()
    # Most scripts have no options, and are not scanned.
    if "option" not in trimmed:
        return _Source(trimmed)
    statements = read_statements(trimmed)
    return _Source(trimmed, statements, first_options(statements, ("params", "task")))


_LENGTHS = ("every", "offset")


def _lengths(options: _Values) -> dict[str, int | None]:
    """
    Nanoseconds of the options that are lengths of time; None for no duration, as a negative literal in the script is.

    The default stands in for a supplied value that does not fit its type, which is a fault of its own.
    """
    found: dict[str, int | None] = {}
    for name in _LENGTHS:
        if (setting := options.settings.get(name)) is None:
            continue
        supplied = options.supplied(name)
        if supplied is None or setting.supplied_misfit(supplied):
            found[name] = None if isinstance(setting.default, str) else setting.nanoseconds
        else:
            length = parse_duration(supplied) if isinstance(supplied, str) else None
            found[name] = length if length is None or length >= 0 else None
    return found


def _task_options(options: _Values, lengths: Mapping[str, int | None], wrong: Sequence[str]) -> TaskOptions:
    faults: tuple[str, ...] = ()
    if wrong:
        faults = (
            f"the task option {' and the task option '.join(wrong)} must be a duration such as 1h30m;"
            " a default in the list task counts as one only beside type: duration",
        )
    name = next(
        (replace(found, resource_field="spec.name") for found in options.parameters() if found.name == "name"), None
    )
    return TaskOptions(name, lengths.get("every"), lengths.get("offset"), faults)
