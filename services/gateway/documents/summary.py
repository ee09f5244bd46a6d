"""The summary of a plan (packages.md 10), with what clients need beside it."""

from collections.abc import Mapping
from typing import Any

from services.gateway.documents.ids import number_id

Document = dict[str, Any]

_TIMES = ("cron", "every", "offset")


def summary_document(summary: Document, ids: Mapping[tuple[str, str], str], org_id: str, is_applied: bool) -> Document:
    """
    Complete a summary, in place.

    Args:
        summary: As the planner makes it.
        ids: Ids of resources, by kind and name.
        org_id: The organisation, in 16 hex digits.
        is_applied: Whether the plan ran: InfluxDB names the organisation of endpoints and variables only then.
    """
    number = int(org_id, 16)
    for label in summary["labels"]:
        _complete_label(label, ids, number)
    for key, entries in summary.items():
        for entry in entries if key not in _PLAIN else ():
            for label in entry.get("labelAssociations", ()):
                _complete_label(label, ids, number)
    for bucket in summary["buckets"]:
        _set_id(bucket, ids)
        bucket["orgID"] = number
    for check in summary["checks"]:
        check["check"]["orgID"] = org_id
        _flatten(check, "check", ids)
    for dashboard in summary["dashboards"]:
        _set_id(dashboard, ids)
        dashboard["orgID"] = number
    for endpoint in summary["notificationEndpoints"]:
        if is_applied:
            endpoint["notificationEndpoint"]["orgID"] = org_id
        _flatten(endpoint, "notificationEndpoint", ids)
    for telegraf in summary["telegrafConfigs"]:
        telegraf["telegrafConfig"]["orgID"] = org_id
    for variable in summary["variables"]:
        _set_id(variable, ids)
        if is_applied:
            variable["orgID"] = number
    # A list of its own: the command line ends with an error for a task with an empty time, and reads no other list.
    summary["tasks"] = [
        {key: value for key, value in task.items() if value or key not in _TIMES} for task in summary["summaryTask"]
    ]
    return summary


_PLAIN = ("labels", "labelMappings", "missingEnvRefs", "missingSecrets")
"""Lists whose entries carry no labels."""


def _complete_label(label: Document, ids: Mapping[tuple[str, str], str], org: int) -> None:
    _set_id(label, ids)
    label["orgID"] = org


def _set_id(entry: Document, ids: Mapping[tuple[str, str], str]) -> None:
    """Fill in the id of an entry that has none, where its resource has one that is no number itself."""
    if not entry.get("id") and (found := ids.get((entry["kind"], entry["templateMetaName"]))):
        entry["id"] = number_id(found)


def _flatten(entry: Document, inner: str, ids: Mapping[tuple[str, str], str]) -> None:
    """Put the members of the embedded object at the entry, too, with the id as a number."""
    number = number_id(ids.get((entry["kind"], entry["templateMetaName"]), entry[inner].get("id", "")))
    for key, value in entry[inner].items():
        entry.setdefault(key, value)
    entry["id"] = number
