"""Tasks (docs/reference/package-format.md, "Tasks")."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.durations import calendar_duration, go_duration, parse_duration
from services.kinds.format.field_table import DESCRIPTION, Field, Mappings, Table
from services.kinds.format.fields import Fault, Fields, Remark, found_text
from services.kinds.format.kind import Kind, ReadResult, Scope, short_name
from services.kinds.format.references import UsedReference
from services.kinds.format.shapes import Duration, Fold, Text
from services.kinds.influxdb.flux.settings import PARAMETER
from services.kinds.influxdb.parameters import Script, read_task_query
from services.kinds.influxdb.statuses import STATUS

_MIN_NAME_BYTES = 1
_OPTIONS_COUNT = "influxdata.com/v2alpha2"
"""The version in which the task takes values from the options of the script."""

_FIELDS = Table(
    DESCRIPTION,
    Field("every", Duration(keeps_calendar=True), "How often the task runs, such as 1h30m or 1mo."),
    Field("cron", Text(), "When the task runs, as a cron expression."),
    Field("query", Text(fold=Fold.TRIM, required=True, what="a query"), "The Flux script."),
    STATUS,
    Field("offset", Duration(keeps_calendar=True), "How long after the full interval it runs."),
    Field("params", Mappings(PARAMETER), "Defaults and types of the script's `option params`."),
    Field("task", Mappings(PARAMETER), "Defaults and types of the script's `option task`."),
    # A v2alpha2 task may have every in its script, so neither every nor cron is required.
    required=("query",),
)
_KEPT = ("description", "cron", "every", "offset", "query", "status")


def _read(fields: Fields, scope: Scope) -> ReadResult:
    values = _FIELDS.read(fields.value) if scope.values is None else dict(scope.values)
    options_count = scope.api_version == _OPTIONS_COUNT
    script = read_task_query(fields, scope.name, scope.env, options_count)
    values["query"] = script.text
    # These paths lack the element "spec" (docs/reference/package-format.md, "Oddities", P7).
    faults = [Fault(Code.OPTION_INVALID, "query", reason, (*fields.pointer, "task")) for reason in script.faults]
    faults += [Fault(Code.OPTION_INVALID, "task", reason, (*fields.pointer, "query")) for reason in script.task.faults]
    faults += script.misfits
    for key, length in (("every", script.task.every), ("offset", script.task.offset)):
        if length is not None:
            values[key] = length
    named_by = _named_by(script)
    name = (named_by and named_by.reference.resolved(scope.env)) or scope.display_name
    faults += short_name(fields, name, _MIN_NAME_BYTES)
    if not values["cron"] and not values["every"]:
        replaced = script.task.every is not None
        cause = "the task option every replaces it and is zero" if replaced else found_text(fields, "every")
        reason = f"a task needs cron, or every as a duration such as 1h30m; {cause}"
        faults.append(fields.fault(Code.SCHEDULE_MISSING, "every", reason))
        faults.append(fields.fault(Code.SCHEDULE_MISSING, "cron", "a task needs cron or every"))
    if script.faults:
        reason = "the query cannot be used before the list task is right"
        faults.append(fields.fault(Code.OPTION_INVALID, "query", reason))
    else:
        faults += _FIELDS.field_faults(fields, values, "query")
    faults += _FIELDS.field_faults(fields, values, STATUS.key)
    return ReadResult(
        {key: values[key] for key in _KEPT} | {"name": name},
        faults,
        (
            *(
                UsedReference(parameter.reference, parameter.resource_field, parameter.value_type)
                for parameter in script.parameters
            ),
            *(
                UsedReference(option.reference, option.resource_field, option.value_type, False)
                for option in script.options
            ),
        ),
        _written(fields) if script.parameters or script.options else {},
        _replaced(fields) if script.options and not options_count else (),
        named_by,
    )


def _named_by(script: Script) -> UsedReference | None:
    """The option that names the task (docs/reference/package-format.md, "Task options")."""
    parameter = script.task.name
    return UsedReference(parameter.reference, parameter.resource_field, parameter.value_type) if parameter else None


def _written(fields: Fields) -> dict[str, Any]:
    """The source of the query: the script with its lists."""
    return {f"/{key}": plain(fields.value[key]) for key in ("query", "params", "task") if key in fields.value}


def _replaced(fields: Fields) -> tuple[Remark, ...]:
    text = "the task's name, every, cron and offset will replace the script's `option task` when it is applied"
    return (fields.remark(Code.OPTION_REPLACED, "query", text),)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": number,
        "name": spec["name"],
        "cron": spec["cron"],
        "description": spec["description"],
        "every": _go_form(spec["every"]),
        "offset": _go_form(spec["offset"]),
        "query": spec["query"],
        "status": spec["status"],
    }


@lru_cache(1_000)
def _go_form(text: str) -> str:
    # A package has few different durations, and to read one takes as long as the rest of an entry.
    return calendar_duration(text) or go_duration(parse_duration(text) or 0) if text else ""


KIND = Kind(
    name="Task",
    family="task",
    resource_type="tasks",
    summary_key="summaryTask",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    about="A Flux script that runs at intervals.",
    fields=_FIELDS,
    read=_read,
    summarise=_summarise,
    references_by_key=True,
    effect="runs",
)
