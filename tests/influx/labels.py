"""Labels, and their attachments."""

import json
from collections.abc import Iterable, Iterator, Sequence

from tests.influx import gojson
from tests.influx.access import Caller
from tests.influx.call import JSON, Answer, Call, answer, checked_id, nothing
from tests.influx.problem import Problem
from tests.influx.routing import NEWER, Route
from tests.influx.state import LABELLED, Resource, State, lowered, trimmed

_NEW = gojson.struct(orgID=gojson.identifier, name=gojson.text, properties=gojson.mapping(gojson.text))
_CHANGE = gojson.struct(name=gojson.text, properties=gojson.mapping(gojson.text))
_MAPPING = gojson.struct(labelID=gojson.identifier)


class Labels:
    """Labels themselves: names that are unique without case, properties that a PATCH merges."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", "/api/v2/labels", self._create),
            ("GET", "/api/v2/labels", self._list),
            ("GET", "/api/v2/labels/{id}", self._read),
            ("PATCH", "/api/v2/labels/{id}", self._change),
            ("DELETE", "/api/v2/labels/{id}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        if not sent["orgID"]:
            raise Problem("invalid", "orgID is required")
        if not sent["name"]:
            raise Problem("invalid", "label name is required")
        call.caller.require("write", "labels", sent["orgID"])
        name = trimmed(sent["name"])
        self._check_free(sent["orgID"], name)
        id_ = self._state.new_id()
        self._state.labels[id_] = {"id": id_, "orgID": sent["orgID"], "name": name, "properties": sent["properties"]}
        self._state.names["labels"].record(self._state.labels[id_])
        return _answer(201, self._state.labels[id_])

    def _list(self, call: Call) -> Answer:
        org, name = call.query.get("orgID", ""), lowered(call.query.get("name", ""))
        if gojson.id_fault(org):
            org = ""  # An invalid id is ignored, and labels of all organizations are listed.
        found = (
            label
            for label in self._state.labels.values()
            if (not org or label["orgID"] == org.lower()) and (not name or lowered(label["name"]) == name)
        )
        return answer(200, {"links": {"self": "/api/v2/labels"}, "labels": shown(readable(call.caller, found))})

    def _read(self, call: Call) -> Answer:
        label = self._found(call.id())
        call.caller.require("read", "labels", label["orgID"], label["id"])
        return _answer(200, label)

    def _change(self, call: Call) -> Answer:
        id_, sent = call.id(), call.read(_CHANGE, "internal error")
        label = self._found(id_)
        call.caller.require("write", "labels", label["orgID"], id_)
        name = trimmed(sent["name"])
        if sent["name"] and lowered(name) != lowered(label["name"]):
            self._check_free(label["orgID"], name)
        if sent["name"]:
            label["name"] = name
            self._state.names["labels"].record(label)
        merged = {**(label["properties"] or {}), **(sent["properties"] or {})}
        for key in [key for key, value in (sent["properties"] or {}).items() if not value]:
            del merged[key]
        label["properties"] = merged
        return _answer(200, label)

    def _delete(self, call: Call) -> Answer:
        label = self._found(call.id())
        call.caller.require("write", "labels", label["orgID"], label["id"])
        del self._state.labels[label["id"]]
        return nothing()

    def _found(self, id_: str) -> Resource:
        if id_ not in self._state.labels:
            raise Problem("not found", "label not found")
        return self._state.labels[id_]

    def _check_free(self, org: str, name: str) -> None:
        if self._state.names["labels"].are_taken(org, name):
            raise Problem("conflict", f"label with name {name} already exists")


class Mappings:
    """The labels of resources: the same for all eight kinds, except the answer for a missing resource."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Iterator[Route]:
        for kind in LABELLED:
            mappings = _OfKind(self._state, kind)
            yield "GET", f"/api/v2/{kind}/{{id}}/labels", mappings.list
            yield "POST", f"/api/v2/{kind}/{{id}}/labels", mappings.attach
            yield "DELETE", f"/api/v2/{kind}/{{id}}/labels/{{label}}", mappings.detach


class _OfKind:
    def __init__(self, state: State, kind: str) -> None:
        self._state, self._kind = state, kind
        self._is_newer = kind in NEWER

    def list(self, call: Call) -> Answer:
        id_ = self._resource(call, "read")
        found = readable(call.caller, self._state.labels_of(self._kind, id_))
        return answer(200, {"links": {"self": "/api/v2/labels"}, "labels": shown(found)})

    def attach(self, call: Call) -> Answer:
        id_ = self._resource(call, "write")
        try:
            label = call.read(_MAPPING)["labelID"]
        except Problem:
            return self._malformed()
        if not label:
            raise Problem("invalid", "label id is required")
        if label not in self._state.labels:
            raise Problem("not found", "label not found")
        found = self._state.labels[label]
        self._require_label(call, found)
        attached = self._state.attached[self._kind, id_]
        if label in attached:
            raise Problem("conflict", "Cannot add label, label already exists on resource")
        attached.add(label)
        return _answer(201, found)

    def detach(self, call: Call) -> Answer:
        id_, label = self._resource(call, "write"), call.id("label")
        found = self._state.labels.get(label)
        if found is None and self._is_newer:
            raise Problem("not found", "label not found")
        if found is not None:
            self._require_label(call, found)
        self._state.attached[self._kind, id_].discard(label)
        return nothing()

    def _require_label(self, call: Call, label: Resource) -> None:
        """Raise unless the token permits to write *label*; only buckets and dashboards are guarded."""
        if self._is_newer:
            call.caller.require("write", "labels", label["orgID"], label["id"])

    def _resource(self, call: Call, action: str) -> str:
        """
        The id of the resource.

        Buckets and dashboards are looked up; for other kinds any valid id is accepted, and any
        active token may write.
        """
        id_ = call.id()
        resource = self._state.kinds[self._kind].get(id_)
        if self._is_newer and (
            resource is None or not call.caller.may("read", self._kind, resource["orgID"], resource["id"])
        ):
            raise Problem("not found", "404 page not found")
        call.caller.require_active()
        if resource is not None and (self._is_newer or action == "read"):
            call.caller.require(action, self._kind, resource["orgID"], id_)
        return id_

    def _malformed(self) -> Answer:
        """The error envelope; for buckets and dashboards, two of them in a row."""
        first = {"code": "invalid", "message": "Invalid post label map request"}
        second = {"code": "invalid", "message": "label id is required"}
        if self._is_newer:
            body = "".join(json.dumps(problem, indent="\t") for problem in (first, second))
        else:
            body = json.dumps(first)
        return Answer(400, body.encode(), JSON, {"X-Platform-Error-Code": "invalid"})


def readable(caller: Caller, labels: Iterable[Resource]) -> list[Resource]:
    return [label for label in labels if caller.may("read", "labels", label["orgID"], label["id"])]


def shown(labels: Iterable[Resource]) -> list[Resource]:
    """Labels in answers: without properties when there are none."""
    return [label if label["properties"] else _bare(label) for label in labels]


def at_creation(state: State, kind: str, id_: str, labels: Sequence[str] | None) -> None:
    """Attach the labels of a create; unknown ids are skipped."""
    for label in labels or ():
        if not gojson.id_fault(label) and checked_id(label) in state.labels:
            state.attached[kind, id_].add(checked_id(label))


def _bare(label: Resource) -> Resource:
    return {key: value for key, value in label.items() if key != "properties"}


def _answer(status: int, label: Resource) -> Answer:
    return answer(status, {"links": {"self": f"/api/v2/labels/{label['id']}"}, "label": shown([label])[0]})
