"""
What a diff shows of one side of an object, made of the entry that a summary has for it
(docs/reference/package-format.md, "Summary entries", "Diff").
"""

from collections.abc import Callable, Mapping
from typing import Any

Entry = Mapping[str, Any]
"""What only its kind has in the summary entry of an object."""

Content = dict[str, Any]

_NANOSECONDS = 10**9

_TASK_TIMES = ("cron", "every", "offset")


def _bucket(entry: Entry) -> Content:
    seconds = entry["retentionPeriod"] // _NANOSECONDS
    content = {
        **_members(entry, "name", "description"),
        "retentionRules": [{"type": "expire", "everySeconds": seconds}] if seconds else None,
    }
    # Implicit is what a bucket is that says nothing, and the command line knows no other word.
    if entry.get("schemaType") == "explicit":
        content["schemaType"] = "explicit"
    if schemas := entry.get("measurementSchemas"):
        content["measurementSchemas"] = schemas
    return content


def _check(entry: Entry) -> Content:
    return dict(entry["check"])


def _dashboard(entry: Entry) -> Content:
    return {**_members(entry, "name", "description"), "charts": entry["charts"] or []}


def _endpoint(entry: Entry) -> Content:
    return dict(entry["notificationEndpoint"])


def _label(entry: Entry) -> Content:
    return {"name": entry["name"], **entry["properties"]}


def _rule(entry: Entry) -> Content:
    return _members(entry, "name", "description", "every", "offset", "messageTemplate", "statusRules", "tagRules")


def _task(entry: Entry) -> Content:
    return {**_members(entry, "name", "description", "query", "status"), **task_times(entry)}


def _telegraf(entry: Entry) -> Content:
    return dict(entry["telegrafConfig"])


def _variable(entry: Entry) -> Content:
    return {**_members(entry, "name", "description"), "args": entry["arguments"]}


CONTENTS: Mapping[str, Callable[[Entry], Content]] = {
    "buckets": _bucket,
    "checks": _check,
    "dashboards": _dashboard,
    "labels": _label,
    "notificationEndpoints": _endpoint,
    "notificationRules": _rule,
    "summaryTask": _task,
    "telegrafConfigs": _telegraf,
    "variables": _variable,
}
"""How a side of a diff is made, by the list of the summary that has the entry."""


def task_times(entry: Entry) -> Content:
    """
    When a task runs, without what is empty.

    The command line shows an empty ``cron`` as the cycle of the task. With ``cron``, there is no ``every``: it counts.
    """
    times = {name: entry[name] for name in _TASK_TIMES if entry[name]}
    if "cron" in times:
        times.pop("every", None)
    return times


def _members(entry: Entry, *names: str) -> Content:
    return {name: entry[name] for name in names}
