"""
Makes one side of an object in a diff from its entry in a summary
(docs/reference/package-format.md, "Summary entries", "Diff").
"""

from collections.abc import Callable, Mapping
from typing import Any

Entry = Mapping[str, Any]
"""The members of a summary entry that are particular to its kind."""

Content = dict[str, Any]

_NANOSECONDS = 10**9

_RULE = ("name", "description", "every", "offset", "messageTemplate", "statusRules", "tagRules")

_TASK_TIMES = ("cron", "every", "offset")


def _bucket(entry: Entry) -> Content:
    seconds = entry["retentionPeriod"] // _NANOSECONDS
    content = {
        **_members(entry, "name", "description"),
        "retentionRules": [{"type": "expire", "everySeconds": seconds}] if seconds else None,
    }
    # A bucket without schemaType is implicit, and the command line knows only "explicit".
    if entry.get("schemaType") == "explicit":
        content["schemaType"] = "explicit"
    if schemas := entry.get("measurementSchemas"):
        content["measurementSchemas"] = schemas
    return content


def _dashboard(entry: Entry) -> Content:
    return {**_members(entry, "name", "description"), "charts": entry["charts"] or []}


def _label(entry: Entry) -> Content:
    return {"name": entry["name"], **entry["properties"]}


def _task(entry: Entry) -> Content:
    return {**_members(entry, "name", "description", "query", "status"), **task_times(entry)}


def _variable(entry: Entry) -> Content:
    return {**_members(entry, "name", "description"), "args": entry["arguments"]}


def _copy_of(member: str) -> Callable[[Entry], Content]:
    return lambda entry: dict(entry[member])


CONTENTS: Mapping[str, Callable[[Entry], Content]] = {
    "buckets": _bucket,
    "checks": _copy_of("check"),
    "dashboards": _dashboard,
    "labels": _label,
    "notificationEndpoints": _copy_of("notificationEndpoint"),
    "notificationRules": lambda entry: _members(entry, *_RULE),
    "summaryTask": _task,
    "telegrafConfigs": _copy_of("telegrafConfig"),
    "variables": _variable,
}
"""Makes a side of a diff, by the list of the summary that has the entry."""


def task_times(entry: Entry) -> Content:
    """
    The times of a task that are not empty.

    The command line would show an empty ``cron`` as the schedule of the task. ``cron`` takes precedence over ``every``.
    """
    times = {name: entry[name] for name in _TASK_TIMES if entry[name]}
    if "cron" in times:
        times.pop("every", None)
    return times


def _members(entry: Entry, *names: str) -> Content:
    return {name: entry[name] for name in names}
