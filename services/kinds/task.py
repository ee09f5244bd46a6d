"""Tasks (packages.md 4.7), without the rules for options in their scripts."""

from collections.abc import Mapping
from typing import Any

from services.kinds.durations import canonical_duration, go_duration, parse_duration
from services.kinds.fields import Fields, found_text
from services.kinds.kind import Kind, Reading, short_name

_MIN_NAME_BYTES = 1
_STATUSES = ("active", "inactive")


def _read(fields: Fields, name: str, _env: Mapping[str, Any]) -> Reading:
    cron, query = fields.text("cron"), fields.text("query").strip()
    every, offset = fields.duration("every"), fields.duration("offset")
    status = fields.text("status", "active").lower().strip()
    faults = short_name(fields, name, _MIN_NAME_BYTES)
    if not cron and every == 0:
        found = found_text(fields, "every")
        faults.append(fields.fault("every", f"a task needs cron, or every as a duration such as 1h30m; {found}"))
        faults.append(fields.fault("cron", "a task needs cron or every"))
    if not query:
        faults.append(fields.fault("query", "a task needs a query"))
    if status not in _STATUSES:
        faults.append(fields.fault("status", f"the status must be active or inactive; found {status!r}"))
    spec = {
        "name": name,
        "description": fields.text("description"),
        "cron": cron,
        "every": canonical_duration(every),
        "offset": canonical_duration(offset),
        "query": query,
        "status": status,
    }
    return Reading(spec, tuple(faults))


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


def _go_form(text: str) -> str:
    return go_duration(parse_duration(text) or 0) if text else ""


KIND = Kind(
    name="Task",
    family="task",
    resource_type="tasks",
    summary_key="summaryTask",
    unique_display_name=False,
    min_name_bytes=_MIN_NAME_BYTES,
    read=_read,
    summarise=_summarise,
    references_by_key=True,
)
