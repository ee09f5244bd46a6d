"""The diff document of a plan (docs/reference/package-format.md, "Diff")."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import orjson
from pkger.model.v1 import plan_pb2

from services.gateway.documents.contents import CONTENTS, Content
from services.gateway.documents.ids import number_id
from services.gateway.documents.summary import LISTS, Summary
from services.kinds.registry import KINDS

_Key = tuple[str, str]
"""Kind and metadata.name of an object."""

Diff = dict[str, list[dict[str, Any]]]

STATUSES = {
    plan_pb2.DIFF_STATUS_NEW: "new",
    plan_pb2.DIFF_STATUS_EXISTS: "exists",
    plan_pb2.DIFF_STATUS_REMOVE: "remove",
}

_NAMES = {"summaryTask": "tasks"}
"""The lists that a diff calls otherwise than a summary."""

_WITH_ORG = ("checks", "notificationEndpoints")
"""Lists whose contents name their organisation: a strict client reads none without."""

_WITHOUT_NULL = "variables"
"""The list whose entries have no ``old`` where there is no old side; all other lists have null there."""

_ENDPOINT = "endpointName"
"""The field in which a rule names its endpoint."""

_ENDPOINT_POINTER = f"/{_ENDPOINT}"

_ENDPOINT_FAMILIES = frozenset(kind.uses[_ENDPOINT] for kind in KINDS.values() if _ENDPOINT in kind.uses)


def diff_document(diffs: plan_pb2.PlanDiffs, summary: Summary, org_id: str) -> Diff:
    """
    What happens to each object and to each association.

    Args:
        diffs: The differences that the plan is made of.
        summary: The completed summary of the plan, whose entries are what the package wants.
        org_id: Id of the organisation, 16 hex digits.
    """
    document = empty_diff()
    sides = _Sides(diffs, summary, org_id)
    names: dict[_Key, str] = {}
    ids: dict[_Key, int] = {}
    for diff in diffs.resources:
        kind, name = key = (diff.key.kind, diff.key.name)
        if kind not in KINDS:
            continue
        new, old = sides.both(diff)
        number = number_id(diff.resource_id)
        entry = {
            "kind": kind,
            "id": number,
            "stateStatus": STATUSES[diff.status],
            "templateMetaName": name,
            "new": new,
        }
        list_name = _list_of(kind)
        if old is not None or list_name != _WITHOUT_NULL:
            entry["old"] = old
        document[list_name].append(entry)
        names[key] = (new or old or {}).get("name", name)
        # Also that of a resource which is gone: the stack knows it.
        ids[key] = number
    for entries in document.values():
        entries.sort(key=itemgetter("templateMetaName"))
    mappings = [_mapping(each, names, ids) for each in diffs.label_mappings if each.resource.kind in KINDS]
    mappings.sort(key=itemgetter("resourceType", "resourceTemplateMetaName", "labelName", "labelTemplateMetaName"))
    document["labelMappings"] = mappings
    return document


def empty_diff() -> Diff:
    """The diff of a plan without objects."""
    return {name: [] for name in sorted((*(_NAMES.get(name, name) for name in LISTS), "labelMappings"))}


def _list_of(kind: str) -> str:
    name = KINDS[kind].summary_key
    return _NAMES.get(name, name)


class _Sides:
    """Makes the sides of the entries of one plan."""

    def __init__(self, diffs: plan_pb2.PlanDiffs, summary: Summary, org_id: str) -> None:
        self._org_id = org_id
        # What is created is in the summary already, and need not be made of specs again: of a large package, that takes
        # most of the time.
        self._wanted = {(entry["kind"], entry["templateMetaName"]): entry for name in LISTS for entry in summary[name]}
        endpoints = [diff for diff in diffs.resources if _is_endpoint(diff.key.kind)]
        self._endpoints = {diff.key.name: diff for diff in endpoints}
        self._endpoints_by_id = {diff.resource_id: diff for diff in endpoints if diff.resource_id}

    def both(self, diff: plan_pb2.ResourceDiff) -> tuple[Content | None, Content | None]:
        """What is wanted, and what the platform has; None for what goes away, or is not there."""
        new = self._new(diff)
        if new is not None and diff.old_spec_json == diff.new_spec_json and not diff.old_kind:
            old: Content | None = dict(new)
        else:
            old = self._side(diff, diff.old_kind or diff.key.kind, diff.old_spec_json)
        if _ENDPOINT in KINDS[diff.key.kind].uses:
            if new is not None:
                new |= self._new_endpoint(diff)
            if old is not None:
                old |= self._old_endpoint(diff)
        return new, old

    def _new(self, diff: plan_pb2.ResourceDiff) -> Content | None:
        if diff.status == plan_pb2.DIFF_STATUS_REMOVE:
            return None
        if not diff.old_spec_json and (entry := self._wanted.get((diff.key.kind, diff.key.name))):
            return self._content(diff.key.kind, entry)
        # What is there already may keep some of its fields, whatever the package says of them.
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

    def _new_endpoint(self, diff: plan_pb2.ResourceDiff) -> Content:
        """The endpoint that a rule is to have."""
        rule = self._wanted.get((diff.key.kind, diff.key.name), {})
        return _endpoint_members(
            rule.get("endpointID", 0), rule.get("endpointTemplateMetaName", ""), rule.get("endpointType", "")
        )

    def _old_endpoint(self, diff: plan_pb2.ResourceDiff) -> Content:
        """The endpoint that a rule has on the platform."""
        if reference := next((each for each in diff.old_references if each.pointer == _ENDPOINT_POINTER), None):
            return self._live_endpoint(reference.resource_id, reference.key.kind)
        change = next((each for each in diff.changes if each.path == _ENDPOINT_POINTER), None)
        before = orjson.loads(change.old_json) if change and change.old_json else None
        if isinstance(before, dict):
            return self._live_endpoint(before.get("id", ""), before["kind"])
        if change is None and (rule := self._wanted.get((diff.key.kind, diff.key.name))):
            # It leads where it is to lead, whatever word the platform has for that.
            known = self._endpoints.get(rule["endpointTemplateMetaName"])
            name = _live_name(known) if known else rule["endpointTemplateMetaName"]
            return _endpoint_members(rule["endpointID"], name, rule["endpointType"])
        # A platform that knows no references has the word of the package.
        word = str(orjson.loads(diff.old_spec_json).get(_ENDPOINT, ""))
        known = self._endpoints.get(word)
        if known is None:
            return _endpoint_members(0, word, "")
        return self._live_endpoint(known.resource_id, known.old_kind or known.key.kind)

    def _live_endpoint(self, endpoint_id: str, kind: str) -> Content:
        known = self._endpoints_by_id.get(endpoint_id)
        return _endpoint_members(number_id(endpoint_id), _live_name(known) if known else "", _type(kind))


def _live_name(endpoint: plan_pb2.ResourceDiff) -> str:
    """The display name that an endpoint has on the platform; where it is not there, the name of its object."""
    return str(orjson.loads(endpoint.old_spec_json)["name"]) if endpoint.old_spec_json else endpoint.key.name


def _is_endpoint(kind: str) -> bool:
    return kind in KINDS and KINDS[kind].family in _ENDPOINT_FAMILIES


def _type(endpoint_kind: str) -> str:
    """The type of an endpoint: what its kind adds to the word for the whole family."""
    family_kind = KINDS[endpoint_kind].family_kind if endpoint_kind in KINDS else ""
    return endpoint_kind.removeprefix(family_kind).lower()


def _endpoint_members(number: int, name: str, type_: str) -> Content:
    return {"endpointID": number, _ENDPOINT: name, "endpointType": type_}


def _mapping(diff: plan_pb2.LabelMappingDiff, names: Mapping[_Key, str], ids: Mapping[_Key, int]) -> dict[str, Any]:
    resource, label = diff.resource, diff.label
    kind, name, label_name = resource.kind, resource.name, label.name
    # What goes away is told without names, as InfluxDB does.
    is_going = diff.status == plan_pb2.DIFF_STATUS_REMOVE
    return {
        "stateStatus": STATUSES[diff.status],
        "resourceType": KINDS[kind].resource_type,
        "resourceID": ids.get((kind, name)) or number_id(diff.resource_id),
        "resourceName": "" if is_going else names.get((kind, name), name),
        "resourceTemplateMetaName": name,
        "labelID": ids.get((label.kind, label_name)) or number_id(diff.label_id),
        "labelName": "" if is_going else names.get((label.kind, label_name), label_name),
        "labelTemplateMetaName": label_name,
    }
