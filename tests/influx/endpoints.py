"""Notification endpoints: plain texts in secret fields become secrets of the organization."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import at_creation, shown
from tests.influx.paging import links, page
from tests.influx.problem import Problem
from tests.influx.queries import typed
from tests.influx.routing import Route
from tests.influx.scripted import checked_change
from tests.influx.state import Resource, State, now

KIND = "notificationEndpoints"
PATH = f"/api/v2/{KIND}"

SECRETS = {"token": "token", "username": "username", "password": "password", "routingKey": "routing-key"}
"""Secret fields, and the suffixes of the keys under which their plain texts are stored."""

_BASE = {
    "type": gojson.text,
    "name": gojson.text,
    "description": gojson.text,
    "orgID": gojson.identifier,
    "status": gojson.text,
    "labels": gojson.listing(gojson.text),
}
_TYPES: Mapping[str, Mapping[str, gojson.Shape]] = {
    "slack": {"url": gojson.text, "token": gojson.text},
    "http": {
        "url": gojson.text,
        "headers": gojson.mapping(gojson.text),
        "token": gojson.text,
        "username": gojson.text,
        "password": gojson.text,
        "authMethod": gojson.text,
        "method": gojson.text,
        "contentTemplate": gojson.text,
    },
    "pagerduty": {"clientURL": gojson.text, "routingKey": gojson.text},
    "telegram": {"token": gojson.text, "channel": gojson.text},
}
_SHAPE = typed({name: gojson.struct_of({**_BASE, **fields}) for name, fields in _TYPES.items()})


class Endpoints:
    """Names are unique over all types; a PUT replaces all fields, and may move the endpoint to another organization."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._all, self._names = state.kinds[KIND], state.names[KIND]

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._list),
            ("GET", f"{PATH}/{{id}}", self._read),
            ("PATCH", f"{PATH}/{{id}}", self._change),
            ("PUT", f"{PATH}/{{id}}", self._replace),
            ("DELETE", f"{PATH}/{{id}}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        if not sent["orgID"]:
            raise Problem("invalid", "invalid org id for permission: invalid ID")
        call.caller.require("write", KIND, sent["orgID"])
        _check(sent)
        if self._names.are_taken(sent["orgID"], sent["name"]):
            raise Problem("conflict", f"notification endpoint is not unique for key {sent['orgID']}{sent['name']}")
        id_, time = self._state.new_id(), now()
        labels = sent.pop("labels")
        self._all[id_] = {"id": id_, **self._referring(id_, sent), "createdAt": time, "updatedAt": time}
        self._names.record(self._all[id_])
        at_creation(self._state, KIND, id_, labels)
        return answer(201, self._shown(self._all[id_]))

    def _list(self, call: Call) -> Answer:
        if call.query.get("org"):
            raise Problem("internal error", f"a panic has occurred: {PATH}: runtime error")
        org, user = call.query_id("orgID"), call.query_id("user")
        if not org and not user:
            raise Problem("unauthorized", "cannot process a request without a org or user filter")
        items = page([each for each in self._all.values() if org in {"", each["orgID"]}], call)
        seen = [self._shown(each) for each in items if call.caller.may("read", KIND, each["orgID"], each["id"])]
        return answer(200, {"links": links(PATH, call, len(seen), {"orgID": org, "user": user}), KIND: seen})

    def _read(self, call: Call) -> Answer:
        return answer(200, self._shown(self._found(call, "read")))

    def _change(self, call: Call) -> Answer:
        changes = checked_change(call, "Notification Endpoint")
        endpoint = self._found(call, "write")
        self._check_free(endpoint, endpoint["orgID"], changes.get("name") or endpoint["name"])
        endpoint |= {**changes, "updatedAt": now()}
        self._names.record(endpoint)
        return answer(200, self._shown(endpoint))

    def _replace(self, call: Call) -> Answer:
        sent = call.read(_SHAPE, whole=True)
        del sent["labels"]
        if not sent["orgID"]:
            raise Problem(
                "invalid", "provided notification endpoint Unique Key is an invalid format: no ID was provided"
            )
        _check(sent)
        endpoint = self._found(call, "write")
        self._check_free(endpoint, sent["orgID"], sent["name"])
        kept = {key: endpoint[key] for key in ("id", "createdAt")}
        self._all[endpoint["id"]] = {**kept, **self._referring(endpoint["id"], sent), "updatedAt": now()}
        self._names.record(self._all[endpoint["id"]])
        return answer(200, self._shown(self._all[endpoint["id"]]))

    def _delete(self, call: Call) -> Answer:
        self._found(call, "read")
        del self._all[self._found(call, "write")["id"]]
        return nothing()

    def _found(self, call: Call, action: str) -> Resource:
        endpoint = found_endpoint(self._state, call.id())
        call.caller.require(action, KIND, endpoint["orgID"], endpoint["id"])
        return endpoint

    def _referring(self, id_: str, sent: Mapping[str, Any]) -> Resource:
        """The endpoint with references in its secret fields; plain texts become secrets."""
        found = dict(sent)
        for field, end in SECRETS.items():
            value = found.get(field)
            if value and not value.startswith("secret: "):
                self._state.secrets[sent["orgID"]][f"{id_}-{end}"] = value
                found[field] = f"secret: {id_}-{end}"
        return found

    def _check_free(self, endpoint: Resource, org: str, name: str) -> None:
        if self._names.are_taken(org, name, endpoint["id"]):
            key = f"{org}{name}"
            raise Problem(
                "conflict", f"notification endpoint entity update conflicts with an existing entity for key {key}"
            )

    def _shown(self, endpoint: Resource) -> Resource:
        path = f"{PATH}/{endpoint['id']}"
        own = {"self": path, **{part: f"{path}/{part}" for part in ("labels", "members", "owners")}}
        found = {key: value for key, value in endpoint.items() if value or key not in {"description", "headers"}}
        return {"links": own, **found, "labels": shown(self._state.labels_of(KIND, endpoint["id"]))}


def found_endpoint(state: State, id_: str) -> Resource:
    """The endpoint with this id."""
    endpoint = state.kinds[KIND].get(id_)
    if endpoint is None:
        raise Problem("not found", f'notification endpoint not found for key "{id_}"')
    return endpoint


def _check(sent: Mapping[str, Any]) -> None:
    if not sent["name"]:
        raise Problem("invalid", "Notification Endpoint Name can't be empty")
    if sent["status"] not in {"active", "inactive"}:
        raise Problem("invalid", "invalid status")
    if "url" in sent:
        _check_url(sent["type"], sent["url"])
    if sent["type"] == "http":
        _check_http(sent)
    if sent["type"] == "pagerduty" and not sent["routingKey"]:
        raise Problem("invalid", "pagerduty routing key is invalid")
    if sent["type"] == "telegram" and not sent["token"]:
        raise Problem("invalid", "empty telegram bot token")
    if sent["type"] == "telegram" and not sent["channel"]:
        raise Problem("invalid", "empty telegram channel")


def _check_http(sent: Mapping[str, str]) -> None:
    if sent["method"] not in {"GET", "POST", "PUT"}:
        raise Problem("invalid", "invalid http http method")
    if sent["authMethod"] not in {"none", "basic", "bearer"}:
        raise Problem("invalid", "invalid http auth method")
    if sent["authMethod"] == "basic" and not (sent["username"] and sent["password"]):
        raise Problem("invalid", "invalid http username/password for basic auth")
    if sent["authMethod"] == "bearer" and not sent["token"]:
        raise Problem("invalid", "invalid http token for bearer auth")


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def _check_url(type_: str, url: str) -> None:
    """The server accepts nearly any text as a URL."""
    if not url:
        raise Problem("invalid", f"{type_} endpoint URL must be provided")
    path, _, fragment = url.partition("#")
    path = path.partition("?")[0]
    scheme = _SCHEME.match(path)
    rest = path[scheme.end() :] if scheme else path
    host = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    port = re.fullmatch(r"(?:.*@)?(?:\[[^\]]*\]|[^:]*)(?::(.*))?", host)
    faults = {
        "invalid control character in URL": any(letter < " " or letter == "\x7f" for letter in url),
        "missing protocol scheme": path.startswith(":"),
        "first path segment in URL cannot contain colon": not scheme and ":" in path.partition("/")[0],
        "invalid URL escape": re.search(r"%(?![0-9a-fA-F]{2})", path + fragment) is not None,
        "invalid character in host name": re.search(r'[ "<>\\^`{|}]', host) is not None,
        "invalid port": port is None or not (port[1] or "0").isdigit(),
    }
    for fault, is_there in faults.items():
        if is_there:
            raise Problem("invalid", f"{type_} endpoint URL is invalid: {fault}")
