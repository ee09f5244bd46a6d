"""The document of a stack with its history (docs/http.md)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2

from services.gateway.ids import hex_id
from services.kinds.registry import FAMILY_NAMES, KINDS

API_VERSION = "influxdata.com/v2alpha1"

_FAMILY_KINDS = {family: word for word, family in FAMILY_NAMES.items()}


def stack_document(
    stack: stack_pb2.Stack,
    resources: Sequence[object_pb2.InventoryEntry],
    revisions: Sequence[stack_pb2.Revision],
    objects: Iterable[object_pb2.Object],
    org_id: str,
) -> dict[str, Any]:
    """
    The stack. Its last event has the members of its current record, and the document repeats them.

    Args:
        stack: The record.
        resources: Its inventory.
        revisions: Its history, the oldest first.
        objects: The objects of its package that refer to others.
        org_id: The organization.
    """
    uses = {(item.key.kind, item.key.name): _uses(item) for item in objects}
    now = {
        "name": stack.name,
        "description": stack.description,
        "sources": list(stack.sources),
        "urls": list(stack.urls),
        "resources": [_resource(entry, uses.get((entry.key.kind, entry.key.name), ())) for entry in resources],
    }
    events = _events(stack, revisions)
    if revisions and _is_uninstall(revisions[-1]):
        # The sources of the last apply; the record of an uninstalled stack has none.
        now["sources"] = next(event["sources"] for event in reversed(events) if "sources" in event)
    for event in events[:-1]:
        event |= {**now, "resources": [], "sources": event.get("sources", [])}
    events[-1] |= now
    return {"id": stack.id, "orgID": org_id, "createdAt": events[0]["updatedAt"], "events": events, **events[-1]}


def _events(stack: stack_pb2.Stack, revisions: Iterable[stack_pb2.Revision]) -> list[dict[str, Any]]:
    """The events, with strictly growing times: clients take the event with the latest time for the last one."""
    last = _time(stack.create_time)
    events = [_event("create", last)]
    sources: list[str] = []
    for revision in revisions:
        is_uninstall = _is_uninstall(revision)
        sources = sources if is_uninstall else list(revision.sources)
        last = max(_time(revision.create_time), last + timedelta(microseconds=1))
        events.append({**_event("uninstall" if is_uninstall else "update", last), "sources": sources})
    if _time(stack.update_time) > last:
        events.append(_event("update", _time(stack.update_time)))
    return events


def _is_uninstall(revision: stack_pb2.Revision) -> bool:
    return revision.kind == plan_pb2.OPERATION_KIND_UNINSTALL


def _event(kind: str, when: datetime) -> dict[str, Any]:
    return {"eventType": kind, "updatedAt": when.isoformat(timespec="microseconds").replace("+00:00", "Z")}


def _time(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(UTC)


def _resource(entry: object_pb2.InventoryEntry, uses: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    kind, resource_id = KINDS.get(entry.key.kind), hex_id(entry.resource_id)
    collection = kind.resource_type if kind else entry.key.kind
    labels = [{"kind": generic_kind(key.kind), "metaName": key.name} for key in entry.associations]
    return {
        "apiVersion": API_VERSION,
        "kind": generic_kind(entry.key.kind),
        "resourceID": resource_id,
        "templateMetaName": entry.key.name,
        "associations": [*labels, *uses],
        "links": {"self": f"/api/v2/{collection}/{resource_id}"},
    }


def _uses(item: object_pb2.Object) -> list[dict[str, str]]:
    """The objects that an object refers to by name."""
    kind = KINDS.get(item.key.kind)
    if kind is None or not kind.uses:
        return []
    spec = orjson.loads(item.spec_json)
    return [
        {"kind": _FAMILY_KINDS.get(family, family), "metaName": spec[field]}
        for field, family in kind.uses.items()
        if spec.get(field)
    ]


def generic_kind(kind: str) -> str:
    """The kind in a stack document: all kinds of checks have one name, and all kinds of endpoints."""
    return KINDS[kind].family_kind or kind if kind in KINDS else kind
