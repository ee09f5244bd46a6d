"""The diff of a plan (packages.md 11)."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

import orjson
from pkger.model.v1 import object_pb2, plan_pb2

from services.gateway.documents.contents import DIFF_KEYS, Content, content
from services.gateway.documents.ids import number_id
from services.kinds.registry import FAMILY_NAMES, KINDS, family_of

STATUSES = {
    plan_pb2.DIFF_STATUS_NEW: "new",
    plan_pb2.DIFF_STATUS_EXISTS: "exists",
    plan_pb2.DIFF_STATUS_REMOVE: "remove",
}

_WITH_ORG = ("check", "endpoint")
"""Families whose contents name their organisation: a strict client reads none without."""

_ENDPOINT = FAMILY_NAMES["NotificationEndpoint"]


def diff_document(diffs: plan_pb2.PlanDiffs, summary: Mapping[str, Any], org_id: str) -> dict[str, Any]:
    """
    The diff.

    Args:
        diffs: The differences of a plan.
        summary: Its summary, which knows what rules refer to.
        org_id: The organisation, in 16 hex digits.
    """
    document: dict[str, Any] = {key: [] for key in sorted(DIFF_KEYS.values())}
    endpoints = _Endpoints(diffs.resources, summary)
    names: dict[tuple[str, str], str] = {}
    for diff in diffs.resources:
        if diff.key.kind in KINDS:
            family = family_of(diff.key.kind)
            entry = _entry(diff, endpoints, org_id)
            names[diff.key.kind, diff.key.name] = _display_name(entry)
            document[DIFF_KEYS[family]].append(entry)
    for entries in document.values():
        entries.sort(key=itemgetter("templateMetaName"))
    mappings = [_mapping(diff, names) for diff in diffs.label_mappings]
    document["labelMappings"] = sorted(
        mappings, key=itemgetter("resourceType", "resourceTemplateMetaName", "labelName", "labelTemplateMetaName")
    )
    return document


def _entry(diff: plan_pb2.ResourceDiff, endpoints: "_Endpoints", org_id: str) -> Content:
    number = number_id(diff.resource_id)
    old_kind = diff.old_kind or diff.key.kind
    new = _side(diff.key.kind, diff.new_spec_json, number)
    old = _side(old_kind, diff.old_spec_json, number)
    if family_of(diff.key.kind) in _WITH_ORG:
        for side in filter(None, (new, old)):
            side["orgID"] = org_id
    if family_of(diff.key.kind) == "rule":
        if new is not None:
            new |= endpoints.of_new(diff.key.name)
        if old is not None:
            old |= endpoints.of_old(diff, old)
    entry = {
        "kind": diff.key.kind,
        "id": number,
        "stateStatus": STATUSES[diff.status],
        "templateMetaName": diff.key.name,
        "new": None if diff.status == plan_pb2.DIFF_STATUS_REMOVE else new,
    }
    if old is not None or family_of(diff.key.kind) != "variable":
        entry["old"] = old
    return entry


def _side(kind: str, spec_json: str, number: int) -> Content | None:
    return content(kind, orjson.loads(spec_json), number) if spec_json and kind in KINDS else None


def _display_name(entry: Content) -> str:
    side = entry["new"] or entry.get("old") or {}
    return str(side.get("name", ""))


class _Endpoints:
    """Which endpoint a rule has, on each side."""

    def __init__(self, diffs: Iterable[plan_pb2.ResourceDiff], summary: Mapping[str, Any]) -> None:
        self._by_rule = {rule["templateMetaName"]: rule for rule in summary["notificationRules"]}
        self._by_name: dict[str, plan_pb2.ResourceDiff] = {}
        self._by_id: dict[str, plan_pb2.ResourceDiff] = {}
        for diff in diffs:
            if family_of(diff.key.kind) == _ENDPOINT:
                self._by_name[diff.key.name] = diff
                self._by_id[diff.resource_id] = diff

    def of_new(self, rule: str) -> Content:
        """The endpoint that a rule is going to have."""
        found = self._by_rule.get(rule, {})
        return {
            "endpointID": found.get("endpointID", 0),
            "endpointName": found.get("endpointTemplateMetaName", ""),
            "endpointType": found.get("endpointType", ""),
        }

    def of_old(self, diff: plan_pb2.ResourceDiff, old: Content) -> Content:
        """The endpoint that a rule has now, under the name that the package or the stack has for it."""
        word = str(orjson.loads(diff.old_spec_json).get("endpointName", ""))
        change = next((each for each in diff.changes if each.path == "/endpointName"), None)
        before = orjson.loads(change.old_json) if change and change.old_json else None
        if isinstance(before, dict):
            known = self._by_id.get(before.get("id", ""))
            name = known.key.name if known else word
            return _named_endpoint(name, before.get("id", ""), str(before.get("kind", "")))
        if change is None and diff.new_spec_json:
            return self.of_new(diff.key.name)
        known = self._by_name.get(word)
        return (
            _named_endpoint(word, known.resource_id, known.old_kind or known.key.kind)
            if known
            else _named_endpoint(word, "", "")
        )


def _named_endpoint(name: str, resource_id: str, kind: str) -> Content:
    words = kind.removeprefix("NotificationEndpoint").lower()
    return {"endpointID": number_id(resource_id), "endpointName": name, "endpointType": words}


def _mapping(diff: plan_pb2.LabelMappingDiff, names: Mapping[tuple[str, str], str]) -> Content:
    is_going = diff.status == plan_pb2.DIFF_STATUS_REMOVE
    return {
        "stateStatus": STATUSES[diff.status],
        "resourceType": KINDS[diff.resource.kind].resource_type if diff.resource.kind in KINDS else "",
        "resourceID": number_id(diff.resource_id),
        "resourceName": "" if is_going else _name(diff.resource, names),
        "resourceTemplateMetaName": diff.resource.name,
        "labelID": number_id(diff.label_id),
        "labelName": "" if is_going else _name(diff.label, names),
        "labelTemplateMetaName": diff.label.name,
    }


def _name(key: object_pb2.ObjectKey, names: Mapping[tuple[str, str], str]) -> str:
    return names.get((key.kind, key.name), key.name)
