"""Organizations and their secrets."""

from collections.abc import Sequence
from urllib.parse import quote

from tests.influx import gojson
from tests.influx.buckets import add_system_buckets
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.paging import page
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, now

_NEW = gojson.struct(name=gojson.text, description=gojson.text)
_CHANGE = gojson.struct(name=gojson.optional(gojson.text), description=gojson.optional(gojson.text))
_VALUES = gojson.mapping(gojson.text)
_KEYS = gojson.struct(secrets=gojson.listing(gojson.text))


class Orgs:
    """Names are unique except for spaces at their ends; deleting an organization leaves most of its resources."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", "/api/v2/orgs", self._create),
            ("GET", "/api/v2/orgs", self._list),
            ("GET", "/api/v2/orgs/{id}", self._read),
            ("PATCH", "/api/v2/orgs/{id}", self._change),
            ("DELETE", "/api/v2/orgs/{id}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        if not sent["name"].strip():
            raise Problem("invalid", "org name is empty")
        call.caller.require("write", "orgs")
        self._check_free(sent["name"])
        return answer(201, shown_org(add_org(self._state, sent["name"], sent["description"])))

    def _list(self, call: Call) -> Answer:
        id_, name = call.query_id("orgID"), call.query.get("org", "")
        if id_:
            found = [self._found(id_)]
        elif name:
            found = [self._state.orgs[self._state.named_org(name)]]
        else:
            found = sorted(self._state.orgs.values(), key=lambda org: str(org["id"]))
        listed = [shown_org(org) for org in page(found, call) if call.caller.may("read", "orgs", "", org["id"])]
        return answer(200, {"links": {"self": "/api/v2/orgs"}, "orgs": listed})

    def _read(self, call: Call) -> Answer:
        id_ = call.id()
        call.caller.require("read", "orgs", "", id_)
        return answer(200, shown_org(self._found(id_)))

    def _change(self, call: Call) -> Answer:
        id_, sent = call.id(), call.read(_CHANGE)
        call.caller.require("write", "orgs", "", id_)
        org = self._found(id_)
        if sent["name"] is not None and sent["name"] != org["name"]:
            if not sent["name"].strip():
                raise Problem("invalid", "org name is empty")
            self._check_free(sent["name"])
            org["name"] = sent["name"]
        if sent["description"] is not None:
            org["description"] = sent["description"]
        org["updatedAt"] = now()
        return answer(200, shown_org(org))

    def _delete(self, call: Call) -> Answer:
        id_ = call.id()
        call.caller.require("write", "orgs", "", id_)
        if id_ not in self._state.orgs:
            raise Problem("not found", f"error deleting organization id: {id_}: organization not found")
        del self._state.orgs[id_]
        for kind in ("buckets", "tasks"):
            for item in list(self._state.of_org(kind, id_)):
                del self._state.kinds[kind][item["id"]]
        return nothing()

    def _found(self, id_: str) -> Resource:
        if id_ not in self._state.orgs:
            raise Problem("not found", "organization not found")
        return self._state.orgs[id_]

    def _check_free(self, name: str) -> None:
        if self._state.org_by_name(name):
            raise Problem("conflict", f"organization with name {name} already exists")


class Secrets:
    """Values are written and never returned."""

    def __init__(self, state: State) -> None:
        self._state = state

    def routes(self) -> Sequence[Route]:
        return (
            ("GET", "/api/v2/orgs/{id}/secrets", self._list),
            ("PATCH", "/api/v2/orgs/{id}/secrets", self._put),
            ("POST", "/api/v2/orgs/{id}/secrets/delete", self._delete_many),
            ("DELETE", "/api/v2/orgs/{id}/secrets/{key}", self._delete_one),
        )

    def _list(self, call: Call) -> Answer:
        org = self._org(call, "read")
        own = {"org": f"/api/v2/orgs/{org}", "self": f"/api/v2/orgs/{org}/secrets"}
        keys = sorted(self._state.secrets[org], key=str.encode)
        return answer(200, {"links": own, "secrets": keys})

    def _put(self, call: Call) -> Answer:
        org = self._org(call, "write")
        self._state.secrets[org] |= call.read(_VALUES) or {}
        return nothing()

    def _delete_many(self, call: Call) -> Answer:
        org = self._org(call, "write")
        for key in call.read(_KEYS)["secrets"] or ():
            self._state.secrets[org].pop(key, None)
        return nothing()

    def _delete_one(self, call: Call) -> Answer:
        org = self._org(call, "write")
        self._state.secrets[org].pop(call.params["key"], None)
        return nothing()

    def _org(self, call: Call, action: str) -> str:
        """The organization, which the token has to be able to read."""
        id_ = call.id()
        if id_ not in self._state.orgs or not call.caller.may("read", "orgs", "", id_):
            raise Problem("not found", "404 page not found")
        call.caller.require(action, "secrets", id_)
        return id_


def add_org(state: State, name: str, description: str = "") -> Resource:
    """A new organization with its system buckets."""
    id_, time = state.random_id(), now()
    org = {"id": id_, "name": name, "description": description, "createdAt": time, "updatedAt": time}
    state.orgs[id_] = org
    add_system_buckets(state, id_)
    return org


def shown_org(org: Resource) -> Resource:
    path = f"/api/v2/orgs/{org['id']}"
    by_name = {kind: f"/api/v2/{kind}?org={quote(org['name'])}" for kind in ("buckets", "dashboards", "tasks")}
    own = {part: f"{path}/{part}" for part in ("labels", "logs", "members", "owners", "secrets")}
    return {"links": {**by_name, **own, "self": path}, **org}
