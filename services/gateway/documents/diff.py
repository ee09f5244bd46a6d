"""The diff document of a plan (docs/reference/package-format.md, "Diff")."""

from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import Any

import orjson
from pkger.model.v1 import plan_pb2

from services.gateway.documents.contents import CONTENTS, Content
from services.gateway.documents.summary import ENDPOINTS, hide_keys, json_fragment
from services.gateway.ids import number_id
from services.kinds.registry import KINDS
from services.views.ids import Entry

_Key = tuple[str, str]
"""Kind and metadata.name of an object."""

STATUSES = {
    plan_pb2.DIFF_STATUS_NEW: "new",
    plan_pb2.DIFF_STATUS_EXISTS: "exists",
    plan_pb2.DIFF_STATUS_REMOVE: "remove",
}

_NAMES = {"summaryTask": "tasks"}
"""Names of lists in a diff that differ from those in a summary."""

_WITH_ORG = ("checks", "notificationEndpoints")
"""Lists whose contents name their organization: a strict client rejects contents without it."""

_WITHOUT_NULL = "variables"
"""The list whose entries leave out ``old`` if there is no old side; entries of other lists have null."""

_ENDPOINT = "endpointName"
"""The field in which a rule names its endpoint."""

_ENDPOINT_POINTER = f"/{_ENDPOINT}"

_ENDPOINT_FAMILIES = frozenset(kind.uses[_ENDPOINT] for kind in KINDS.values() if _ENDPOINT in kind.uses)


class Diff:
    """The changes of objects and associations; made while the entries of the summary are written."""

    def __init__(self, diffs: plan_pb2.PlanDiffs, org_id: str, hidden: Collection[str] = ()) -> None:
        """
        Args:
            diffs: The diffs of the plan.
            org_id: Id of the organization, 16 hex digits.
            hidden: Keys of secrets that the new sides leave out.
        """
        # By key, with their positions. A diff is removed when its row is added.
        self._left = {(diff.key.kind, diff.key.name): (place, diff) for place, diff in enumerate(diffs.resources)}
        self._mappings = diffs.label_mappings
        self._sides = _Sides(diffs, org_id)
        self._hidden = hidden
        self._rows: dict[str, list[tuple[str, int, bytes]]] = {_list_of(kind): [] for kind in KINDS}
        self._names: dict[_Key, str] = {}
        self._ids: dict[_Key, int] = {}

    def add(self, entry: Entry) -> None:
        """Add the row of the object that has this entry in the completed summary; none if the plan leaves it out."""
        if row := self._left.pop((entry["kind"], entry["templateMetaName"]), None):
            self._add(*row, entry)

    def document(self) -> dict[str, orjson.Fragment]:
        """All lists. Objects whose rows were not added have no entry: the package no longer has them."""
        for (kind, _), (place, diff) in self._left.items():
            if kind in KINDS:
                self._add(place, diff, None)
        self._left = {}
        lists = {
            name: json_fragment([orjson.Fragment(text) for *_, text in sorted(self._rows.pop(name))])
            for name in tuple(self._rows)
        }
        mappings = [_mapping(each, self._names, self._ids) for each in self._mappings if each.resource.kind in KINDS]
        mappings.sort(key=itemgetter("resourceType", "resourceTemplateMetaName", "labelName", "labelTemplateMetaName"))
        return {**lists, "labelMappings": json_fragment(mappings)}

    def _add(self, place: int, diff: plan_pb2.ResourceDiff, entry: Entry | None) -> None:
        kind, name = key = (diff.key.kind, diff.key.name)
        new, old = self._sides.both(diff, entry)
        self._names[key] = (new or old or {}).get("name", name)
        # Also set for a resource that is gone, as the record has its id.
        self._ids[key] = number = number_id(diff.resource_id)
        list_name = _list_of(kind)
        row = {"kind": kind, "id": number, "stateStatus": STATUSES[diff.status], "templateMetaName": name, "new": new}
        if old is not None or list_name != _WITHOUT_NULL:
            row["old"] = old
        if new and list_name == ENDPOINTS:
            hide_keys(new, self._hidden)
        self._rows[list_name].append((name, place, orjson.dumps(row)))


def empty_diff() -> dict[str, list[Any]]:
    """The diff of a plan without objects."""
    return {name: [] for name in sorted((*map(_list_of, KINDS), "labelMappings"))}


def _list_of(kind: str) -> str:
    name = KINDS[kind].summary_key
    return _NAMES.get(name, name)


class _Sides:
    """Makes the sides of the entries of one plan."""

    def __init__(self, diffs: plan_pb2.PlanDiffs, org_id: str) -> None:
        self._org_id = org_id
        endpoints = [diff for diff in diffs.resources if _is_endpoint(diff.key.kind)]
        self._endpoints = {diff.key.name: diff for diff in endpoints}
        self._endpoints_by_id = {diff.resource_id: diff for diff in endpoints if diff.resource_id}

    def both(self, diff: plan_pb2.ResourceDiff, entry: Entry | None) -> tuple[Content | None, Content | None]:
        """
        The wanted and the live content; None for an object that is removed, or a resource that does not exist.

        Args:
            diff: The diff of an object.
            entry: Its entry in the summary; None: the package has no such object.
        """
        new = self._new(diff, entry)
        if new is not None and diff.old_spec_json == diff.new_spec_json and not diff.old_kind:
            old: Content | None = dict(new)
        else:
            old = self._side(diff, diff.old_kind or diff.key.kind, diff.old_spec_json)
        if _ENDPOINT in KINDS[diff.key.kind].uses:
            if new is not None:
                new |= _new_endpoint(entry)
            if old is not None:
                old |= self._old_endpoint(diff, entry)
        return new, old

    def _new(self, diff: plan_pb2.ResourceDiff, entry: Entry | None) -> Content | None:
        if diff.status == plan_pb2.DIFF_STATUS_REMOVE:
            return None
        if entry and not diff.old_spec_json:
            # The summary has the content of a created object. To make it from the spec again would take most of the
            # time for a large package.
            return self._content(diff.key.kind, entry)
        # An existing resource may keep some fields that the package declares otherwise.
        return self._side(diff, diff.key.kind, diff.new_spec_json)

    def _side(self, diff: plan_pb2.ResourceDiff, kind: str, spec: str) -> Content | None:
        if not spec:
            return None
        return self._content(kind, KINDS[kind].summarise(orjson.loads(spec), number_id(diff.resource_id)))

    def _content(self, kind: str, entry: Mapping[str, Any]) -> Content:
        name = KINDS[kind].summary_key
        content = CONTENTS[name](entry)
        if name in _WITH_ORG:
            content["orgID"] = self._org_id
        elif name == "telegrafConfigs":
            content.pop("orgID", None)
        return content

    def _old_endpoint(self, diff: plan_pb2.ResourceDiff, rule: Entry | None) -> Content:
        """The endpoint that a rule has on the platform."""
        if reference := next((each for each in diff.old_references if each.pointer == _ENDPOINT_POINTER), None):
            return self._live_endpoint(reference.resource_id, reference.key.kind)
        change = next((each for each in diff.changes if each.path == _ENDPOINT_POINTER), None)
        before = orjson.loads(change.old_json) if change and change.old_json else None
        if isinstance(before, dict):
            return self._live_endpoint(before.get("id", ""), before["kind"])
        if change is None and rule:
            # The reference does not change, so the rule has the endpoint that the package names.
            endpoint = self._endpoints.get(rule["endpointTemplateMetaName"])
            name = _live_name(endpoint) if endpoint else rule["endpointTemplateMetaName"]
            return _endpoint_members(rule["endpointID"], name, rule["endpointType"])
        # A platform without references stores the name of the object in the package.
        name = str(orjson.loads(diff.old_spec_json).get(_ENDPOINT, ""))
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return _endpoint_members(0, name, "")
        return self._live_endpoint(endpoint.resource_id, endpoint.old_kind or endpoint.key.kind)

    def _live_endpoint(self, endpoint_id: str, kind: str) -> Content:
        endpoint = self._endpoints_by_id.get(endpoint_id)
        return _endpoint_members(number_id(endpoint_id), _live_name(endpoint) if endpoint else "", _type(kind))


def _live_name(endpoint: plan_pb2.ResourceDiff) -> str:
    """The display name of an endpoint on the platform; the name of its object, if the endpoint does not exist."""
    return str(orjson.loads(endpoint.old_spec_json)["name"]) if endpoint.old_spec_json else endpoint.key.name


def _is_endpoint(kind: str) -> bool:
    return kind in KINDS and KINDS[kind].family in _ENDPOINT_FAMILIES


def _type(endpoint_kind: str) -> str:
    """The type of an endpoint: its kind without the name of the family."""
    family_kind = KINDS[endpoint_kind].family_kind if endpoint_kind in KINDS else ""
    return endpoint_kind.removeprefix(family_kind).lower()


def _new_endpoint(rule: Entry | None) -> Content:
    """The wanted endpoint of a rule."""
    entry = rule or {}
    return _endpoint_members(
        entry.get("endpointID", 0), entry.get("endpointTemplateMetaName", ""), entry.get("endpointType", "")
    )


def _endpoint_members(number: int, name: str, type_: str) -> Content:
    return {"endpointID": number, _ENDPOINT: name, "endpointType": type_}


def _mapping(diff: plan_pb2.LabelMappingDiff, names: Mapping[_Key, str], ids: Mapping[_Key, int]) -> dict[str, Any]:
    resource, label = diff.resource, diff.label
    kind, name, label_name = resource.kind, resource.name, label.name
    # A removed association has no display names, as in InfluxDB.
    is_removed = diff.status == plan_pb2.DIFF_STATUS_REMOVE
    return {
        "stateStatus": STATUSES[diff.status],
        "resourceType": KINDS[kind].resource_type,
        "resourceID": ids.get((kind, name)) or number_id(diff.resource_id),
        "resourceName": "" if is_removed else names.get((kind, name), name),
        "resourceTemplateMetaName": name,
        "labelID": ids.get((label.kind, label_name)) or number_id(diff.label_id),
        "labelName": "" if is_removed else names.get((label.kind, label_name), label_name),
        "labelTemplateMetaName": label_name,
    }
