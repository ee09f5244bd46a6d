"""Parameters of queries and options of tasks: what the script says, what lists and supplied values change in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.kinds.canonical import plain
from services.kinds.durations import parse_duration
from services.kinds.fields import Fields
from services.kinds.flux.layout import rewritten
from services.kinds.flux.script import Statement, first_options, read_statements
from services.kinds.flux.settings import Setting, settings_in, with_params, with_task
from services.kinds.references import Reference


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
    What the ``option task`` of a script says of a ``v2alpha2`` task (packages.md 7.6).

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
"""What a script without ``option task`` says."""


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
        faults: Why the query is dropped (T1), one reason; all the rest is then empty.
    """

    text: str
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Parameter, ...] = ()
    task: TaskOptions = NO_TASK_OPTIONS
    faults: tuple[str, ...] = ()


def read_chart_query(
    text: str,
    params: Iterable[Fields],
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
        text: The query as the package has it.
        params: The mappings of its ``params`` list.
        meta_name: Resolved meta name of the dashboard.
        chart: Position of the chart among the mappings of ``charts``, for environment keys (packages.md, P15).
        query: Position of the query among the mappings of ``queries``, likewise.
        kept_chart: Position of the chart in the summary.
        kept_query: Position of the query in the summary.
        env: The supplied values by key.
    """
    source = _read(text)
    if not source.options:
        return Script(source.text)
    key_prefix = f"dashboards[{meta_name}].spec.charts[{chart}].queries[{query}].params."
    field_prefix = f"spec.charts[{kept_chart}].queries[{kept_query}].params."
    parameters = _Values(with_params(source.settings("params"), params), key_prefix, env)
    # Nothing can be supplied for task options in a chart, but they are written in the same way.
    return Script(source.written(parameters, _Values(source.settings("task"))), parameters.parameters(field_prefix))


def read_task_query(
    text: str, params: Iterable[Fields], task: Iterable[Fields], meta_name: str, env: Mapping[str, Any]
) -> Script:
    """
    Read the query of a task.

    Args:
        text: The query as the package has it.
        params: The mappings of the task's ``params`` list.
        task: Those of its ``task`` list.
        meta_name: Resolved meta name of the task.
        env: The supplied values by key.
    """
    source = _read(text)
    if not source.options:
        return Script(source.text)
    parameters = _Values(with_params(source.settings("params"), params), f"tasks[{meta_name}].spec.params.", env)
    options = _Values(with_task(source.settings("task"), task), f"tasks[{meta_name}].spec.task.", env)
    if reasons := [setting.fault for setting in options.settings.values() if setting.fault]:
        return Script("", faults=("; ".join(reasons),))
    return Script(
        source.written(parameters, options),
        parameters.parameters("spec.params."),
        options.parameters("spec.task."),
        _task_options(options),
    )


@dataclass(frozen=True, slots=True)
class _Values:
    """The settings of one option record, and what is supplied for them under *key_prefix* and their name."""

    settings: Mapping[str, Setting]
    key_prefix: str = ""
    env: Mapping[str, Any] = field(default_factory=dict)

    def supplied(self, name: str) -> Any:
        """The value supplied for a setting, as JSON; None when there is none."""
        return plain(self.env.get(self.key_prefix + name))

    def expressions(self) -> dict[str, str]:
        """What changes in the record."""
        found = {name: setting.expression(self.supplied(name)) for name, setting in self.settings.items()}
        return {name: expression for name, expression in found.items() if expression is not None}

    def parameter(self, name: str, field_prefix: str) -> Parameter:
        """A setting as the caller sees it, at its name behind *field_prefix*."""
        setting = self.settings[name]
        reference = Reference(env_key=self.key_prefix + name, default=setting.default)
        return Parameter(name, field_prefix + name, reference, setting.value_type)

    def parameters(self, field_prefix: str) -> tuple[Parameter, ...]:
        """All of them."""
        return tuple(self.parameter(name, field_prefix) for name in self.settings)


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


def _task_options(options: _Values) -> TaskOptions:
    lengths = {name: _length(options, setting) for name, setting in options.settings.items() if name in _LENGTHS}
    faults: tuple[str, ...] = ()
    if wrong := [name for name in _LENGTHS if name in lengths and lengths[name] is None]:
        faults = (
            f"the task option {' and the task option '.join(wrong)} must be a duration such as 1h30m;"
            " a default in the list task counts as one only beside type: duration",
        )
    name = options.parameter("name", "spec.") if "name" in options.settings else None
    return TaskOptions(name, lengths.get("every"), lengths.get("offset"), faults)


def _length(options: _Values, setting: Setting) -> int | None:
    """Nanoseconds of a task option; None for no duration, which a negative literal in the script is, too."""
    supplied = options.supplied(setting.name)
    if supplied is not None:
        return parse_duration(supplied) if isinstance(supplied, str) else None
    return None if isinstance(setting.default, str) else setting.nanoseconds
