"""What one side of a diff says of an object: its content, as InfluxDB has it, made of its spec."""

from collections.abc import Callable, Mapping
from typing import Any

from services.kinds.registry import KINDS

Content = dict[str, Any]

DIFF_KEYS = {kind.family: "tasks" if kind.family == "task" else kind.summary_key for kind in KINDS.values()}
"""The list of the diff for each family: that of the summary, but for tasks."""

_TIMES = ("cron", "every", "offset")


def content(kind: str, spec: Mapping[str, Any], number: int) -> Content:
    """
    The content of an object, without what it refers to.

    Args:
        kind: Its kind.
        spec: Its normalised spec.
        number: Id of its resource; 0: unknown.
    """
    entry = KINDS[kind].summarise(spec, number)
    return _SHAPES[KINDS[kind].family](spec, entry)


def _bucket(spec: Mapping[str, Any], entry: Content) -> Content:
    return {
        "name": entry["name"],
        "description": entry["description"],
        "retentionRules": list(spec["retentionRules"]) or None,
    }


def _check(spec: Mapping[str, Any], entry: Content) -> Content:
    check: Content = entry["check"]
    return check


def _dashboard(spec: Mapping[str, Any], entry: Content) -> Content:
    return {"name": entry["name"], "description": entry["description"], "charts": entry["charts"] or []}


def _endpoint(spec: Mapping[str, Any], entry: Content) -> Content:
    endpoint: Content = entry["notificationEndpoint"]
    return endpoint


def _label(spec: Mapping[str, Any], entry: Content) -> Content:
    return {"name": entry["name"], **entry["properties"]}


def _rule(spec: Mapping[str, Any], entry: Content) -> Content:
    return {key: value for key, value in entry.items() if key not in ("id", "status")}


def _task(spec: Mapping[str, Any], entry: Content) -> Content:
    return {key: value for key, value in entry.items() if key != "id" and (value or key not in _TIMES)}


def _telegraf(spec: Mapping[str, Any], entry: Content) -> Content:
    config: Content = entry["telegrafConfig"]
    return config


def _variable(spec: Mapping[str, Any], entry: Content) -> Content:
    return {"name": entry["name"], "description": entry["description"], "args": entry["arguments"]}


_SHAPES: dict[str, Callable[[Mapping[str, Any], Content], Content]] = {
    "bucket": _bucket,
    "check": _check,
    "dashboard": _dashboard,
    "endpoint": _endpoint,
    "label": _label,
    "rule": _rule,
    "task": _task,
    "telegraf": _telegraf,
    "variable": _variable,
}
