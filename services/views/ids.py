"""
Ids of created resources in the diffs and the summary of a plan.

A plan is stored as it was made, before its resources existed. The events of its operation have their ids.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core.model import LABEL, Key
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS
from services.kinds.summary import id_numbers
from services.rpc.convert.objects import key_from_pb
from services.rpc.plan_parts import JoinedPlan

Entry = dict[str, Any]
"""An entry of a summary."""

EMBEDDED = {
    "checks": "check",
    "notificationEndpoints": "notificationEndpoint",
    "telegrafConfigs": "telegrafConfig",
}
"""The member of an entry that has the object itself, by list of the summary."""


def add_ids(ids: dict[int, str], event: operation_pb2.OperationEvent) -> None:
    """Add the ids of an event to *ids*, which are by number of the step; steps that were undone have none."""
    for outcome in event.steps_ended.outcomes:
        if outcome.HasField("done"):
            ids[outcome.step] = outcome.done.resource_id
    for outcome in event.steps_undone.outcomes:
        if outcome.HasField("done"):
            ids.pop(outcome.step, None)


def fill_in(plan: JoinedPlan, events: Iterable[operation_pb2.OperationEvent]) -> None:
    """Put the ids of the resources that exist after *events* of the operation of *plan* into its diffs and summary."""
    ids: dict[int, str] = {}
    for event in events:
        add_ids(ids, event)
    created = fill_in_diffs(plan.diffs, ids)
    if created and plan.summary:
        document, summary_ids = orjson.loads(plan.summary), SummaryIds(id_numbers(created))
        for name in {kind.summary_key for kind in KINDS.values()}:
            for entry in document[name]:
                summary_ids.complete(name, entry)
        for mapping in document["labelMappings"]:
            summary_ids.complete_mapping(mapping)
        plan.summaries = [canonical_text(document)]


def fill_in_diffs(diffs: plan_pb2.PlanDiffs, ids: Mapping[int, str]) -> dict[Key, str]:
    """
    Put the *ids* of created resources, by number of the step, into *diffs*.

    Returns:
        The ids by key.
    """
    created = {}
    for diff in diffs.resources:
        if diff.HasField("create_step") and diff.create_step in ids:
            diff.resource_id = created[key_from_pb(diff.key)] = ids[diff.create_step]
    for mapping in diffs.label_mappings if created else ():
        mapping.resource_id = created.get(key_from_pb(mapping.resource), mapping.resource_id)
        mapping.label_id = created.get(key_from_pb(mapping.label), mapping.label_id)
    return created


class SummaryIds:
    """Puts ids into a summary (docs/reference/package-format.md, "Summary entries"); others stay as they are."""

    def __init__(self, numbers: Mapping[tuple[str, str], int]) -> None:
        """*numbers* are the ids as numbers, by kind and metadata.name of the object."""
        self._numbers = numbers
        self._endpoints = {name: number for (kind, name), number in numbers.items() if KINDS[kind].family == "endpoint"}
        # A mapping names the family and not the kind; names are unique in a family.
        self._resources = {(KINDS[kind].resource_type, name): number for (kind, name), number in numbers.items()}

    def complete(self, name: str, entry: Entry) -> int:
        """
        Put ids into an entry of the list *name*: its own id, and the ids of its labels and its endpoint.

        Returns:
            Its own id; 0 when it is not known.
        """
        number = self._numbers.get((entry["kind"], entry["templateMetaName"]), 0)
        if number and name in EMBEDDED:
            entry[EMBEDDED[name]]["id"] = f"{number:016x}"
        elif number:
            entry["id"] = number
        for label in entry.get("labelAssociations", ()):
            label["id"] = self._label(label["templateMetaName"], label["id"])
        if name == "notificationRules":
            entry["endpointID"] = self._endpoints.get(entry["endpointTemplateMetaName"], entry["endpointID"])
        return number

    def complete_mapping(self, mapping: Entry) -> None:
        """Put ids into an entry of the list of associations."""
        resource = mapping["resourceType"], mapping["resourceTemplateMetaName"]
        mapping["resourceID"] = self._resources.get(resource, mapping["resourceID"])
        mapping["labelID"] = self._label(mapping["labelTemplateMetaName"], mapping["labelID"])

    def _label(self, name: str, id_: int) -> int:
        return self._numbers.get((LABEL, name), id_)
