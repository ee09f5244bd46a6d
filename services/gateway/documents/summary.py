"""The summary document of a plan as InfluxDB's clients read it: ids as numbers, the organisation, members twice."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from services.gateway.documents.contents import task_times
from services.kinds.registry import KINDS

Summary = dict[str, Any]

Ids = Mapping[tuple[str, str], int]
"""Ids of resources, by kind and metadata.name of their objects."""

LISTS = tuple(sorted({kind.summary_key for kind in KINDS.values()}))
"""The lists of objects."""

_EMBEDDED = {"checks": "check", "notificationEndpoints": "notificationEndpoint", "telegrafConfigs": "telegrafConfig"}
"""The member that is the object itself, in the lists whose entries have one."""

_FLAT = ("checks", "notificationEndpoints")
"""Lists whose entries have the members of the embedded object, too: clients look for them there."""

_NUMBERED = ("dashboards", "labels", "notificationRules", "summaryTask")
"""Lists whose entries tell an unknown id as 0; buckets and variables leave it out."""


def summary_document(text: str, ids: Ids, org_id: str, is_applied: bool) -> Summary:
    """
    Complete a summary.

    Args:
        text: The document as the planner made it (docs/reference/package-format.md, "Summary"), as JSON.
        ids: Ids of all resources that are there.
        org_id: Id of the organisation, 16 hex digits.
        is_applied: Whether the plan ran: InfluxDB names the organisation of endpoints and variables only then.
    """
    document: Summary = orjson.loads(text) if text else {name: [] for name in LISTS}
    for name in LISTS:
        for entry in document[name]:
            number = ids.get((entry["kind"], entry["templateMetaName"]), 0)
            _complete(name, entry, number, org_id, is_applied)
    labels = {entry["templateMetaName"]: entry["id"] for entry in document["labels"]}
    for name in LISTS:
        for entry in document[name]:
            for label in entry.get("labelAssociations", ()):
                label["id"] = labels.get(label["templateMetaName"], 0)
                label["orgID"] = int(org_id, 16)
    _complete_mappings(document, labels, ids)
    _complete_rules(document, ids)
    document["tasks"] = [_plain_task(entry) for entry in document["summaryTask"]]
    document.setdefault("missingEnvRefs", [])
    document.setdefault("missingSecrets", [])
    return document


def empty_summary() -> Summary:
    """The summary of a package that breaks rules."""
    return {name: [] for name in (*LISTS, "labelMappings", "missingEnvRefs", "missingSecrets", "tasks")}


def _complete(name: str, entry: dict[str, Any], number: int, org_id: str, is_applied: bool) -> None:
    if name in _EMBEDDED:
        embedded = entry[_EMBEDDED[name]]
        embedded.pop("id", None)
        if number:
            embedded["id"] = f"{number:016x}"
        if name != "notificationEndpoints" or is_applied:
            embedded["orgID"] = org_id
        if name in _FLAT:
            entry |= {**embedded, "id": number, **({"status": entry["status"]} if "status" in entry else {})}
    elif name in _NUMBERED:
        entry["id"] = number
    else:
        entry.pop("id", None)
        if number:
            entry["id"] = number
    if name in ("buckets", "dashboards", "labels") or (name == "variables" and is_applied):
        entry["orgID"] = int(org_id, 16)


def _complete_mappings(document: Summary, labels: Mapping[str, int], ids: Ids) -> None:
    # A mapping has the word for all kinds of a family, in which no two objects have the same name.
    numbers = {(KINDS[kind].resource_type, name): number for (kind, name), number in ids.items()}
    for mapping in document.setdefault("labelMappings", []):
        mapping["resourceID"] = numbers.get((mapping["resourceType"], mapping["resourceTemplateMetaName"]), 0)
        mapping["labelID"] = labels.get(mapping["labelTemplateMetaName"], 0)


def _complete_rules(document: Summary, ids: Ids) -> None:
    endpoints = dict(_endpoints(ids))
    for rule in document["notificationRules"]:
        # One that is left out is in no diff; what the planner says of it stays.
        rule["endpointID"] = endpoints.get(rule["endpointTemplateMetaName"], rule["endpointID"])


def _endpoints(ids: Ids) -> Iterator[tuple[str, int]]:
    return ((name, number) for (kind, name), number in ids.items() if KINDS[kind].family == "endpoint")


def _plain_task(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a task without times that are empty: one of them crashes the command line."""
    return {name: value for name, value in entry.items() if name not in ("cron", "every", "offset")} | task_times(entry)
