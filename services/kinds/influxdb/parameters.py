"""Parameters of queries and options of tasks: values of the script, changed by lists and supplied values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.durations import parse_duration, schedule_duration
from services.kinds.format.fields import Fault, Fields
from services.kinds.format.references import ReferenceSpec
from services.kinds.influxdb.flux.layout import rewritten
from services.kinds.influxdb.flux.script import Statement, first_options, read_statements
from services.kinds.influxdb.flux.settings import Setting, settings_in, with_params, with_task


@dataclass(frozen=True, slots=True)
class Parameter:
    """
    A value in a script that the caller may supply.

    Attributes:
        name: Its name in the script.
        resource_field: Its field in the summary, such as ``spec.params.bucket``.
        reference: Its environment key and its default.
        value_type: ``bool``, ``duration``, ``float``, ``integer``, ``string`` or ``time``; empty when unknown.
    """

    name: str
    resource_field: str
    reference: ReferenceSpec
    value_type: str


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """
    The values of a ``v2alpha2`` task from the ``option task`` of its script (docs/reference/package-format.md, "Task
    options").

    Attributes:
        name: The name of the task, in place of ``spec.name``; None when the option has none.
        every: As specs have it, empty for zero; None when the option has none, or no duration.
        offset: As *every*.
        faults: Why ``every`` or ``offset`` is no duration: at most one reason, even if both are wrong.
    """

    name: Parameter | None = None
    every: str | None = None
    offset: str | None = None
    faults: tuple[str, ...] = ()


NO_TASK_OPTIONS = TaskOptions()
"""The options of a script without ``option task``, and of any ``v2alpha1`` task."""


@dataclass(frozen=True, slots=True)
class Script:
    """
    A query that was read.

    Parameters and options are in the order of the script, followed by the ones that only a list has.

    Attributes:
        text: The query to run: the trimmed source, with the values of its parameters and options.
        parameters: The values of ``option params`` that may be supplied.
        options: The values of ``option task`` that may be supplied. Unlike parameters they do not count as missing, but
            for the name of a ``v2alpha2`` task.
        task: The values that a ``v2alpha2`` task takes from its options.
        faults: Why the query is dropped: one reason, or none. With a reason, text, parameters and options are empty.
        misfits: Faults of values that do not fit their types (docs/reference/package-format.md, "Parameter values");
            the script does not get these values.
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
    # Task options in a chart cannot be supplied, but they are normalised in the same way.
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
        # A default that is no duration has one fault, not two.
        misfits=misfits + options.misfits(fields, without=wrong),
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """
    The settings of one option record, and their supplied values.

    Attributes:
        settings: The settings by name.
        key_prefix: The text before the name in the environment key of a setting.
        field_prefix: The text before the name in the field of the summary.
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
        """The new expressions of the record, by name."""
        expressions = {name: setting.expression(self.supplied(name)) for name, setting in self.settings.items()}
        return {name: expression for name, expression in expressions.items() if expression is not None}

    def misfits(self, fields: Fields, without: Collection[str] = ()) -> tuple[Fault, ...]:
        """
        The faults of values that do not fit their types.

        Args:
            fields: The mapping with the query, which is marked for a supplied value.
            without: Settings whose defaults are not checked.
        """
        faults: list[Fault] = []
        for name, setting in self.settings.items():
            if name not in without and (fault := setting.default_misfit()):
                faults.append(fault)
            if misfit := setting.supplied_misfit(self.supplied(name)):
                reason = f"the value of {self.key_prefix + name!r} {misfit}"
                pointer = (*fields.pointer, "query")
                faults.append(Fault(Code.PARAMETER_MISMATCH, self.field_prefix + name, reason, pointer))
        return tuple(faults)

    def parameters(self) -> tuple[Parameter, ...]:
        """All settings as parameters."""
        return tuple(
            Parameter(
                name,
                self.field_prefix + name,
                ReferenceSpec(env_key=self.key_prefix + name, default=setting.default),
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

    An option that is no record has no settings, but the lists of the package apply, as in the reference.
    """

    text: str
    statements: tuple[Statement, ...] = ()
    options: Mapping[str, Statement] = field(default_factory=dict)

    def settings(self, option: str) -> dict[str, Setting]:
        """The settings in the record of an option; none when it is no record."""
        statement = self.options.get(option)
        return settings_in(statement.record) if statement and statement.record else {}

    def written(self, params: _Values, task: _Values) -> str:
        """The text with these values; unchanged when there are none."""
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


def _lengths(options: _Values) -> dict[str, str | None]:
    """
    The options that are durations, as specs have them; None for an option that is none, such as a negative literal.

    The default replaces a supplied value that does not fit its type, which is a fault of its own.
    """
    lengths: dict[str, str | None] = {}
    for name in _LENGTHS:
        if (setting := options.settings.get(name)) is None:
            continue
        supplied = options.supplied(name)
        if supplied is None or setting.supplied_misfit(supplied):
            duration = None if isinstance(setting.default, str) else setting.duration
        else:
            length = parse_duration(supplied) if isinstance(supplied, str) else None
            duration = supplied if length is not None and length >= 0 else None
        lengths[name] = None if duration is None else schedule_duration(duration)
    return lengths


def _task_options(options: _Values, lengths: Mapping[str, str | None], wrong: Sequence[str]) -> TaskOptions:
    faults: tuple[str, ...] = ()
    if wrong:
        faults = (
            f"the task option {' and the task option '.join(wrong)} must be a duration such as 1h30m;"
            " a default in the list task counts as one only beside type: duration",
        )
    name = next(
        (
            replace(parameter, resource_field="spec.name")
            for parameter in options.parameters()
            if parameter.name == "name"
        ),
        None,
    )
    return TaskOptions(name, lengths.get("every"), lengths.get("offset"), faults)
