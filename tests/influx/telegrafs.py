"""Telegraf configurations: TOML that is stored unchanged, and returned in several forms."""

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import shown
from tests.influx.problem import HIDDEN_REASON, Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State

PATH = "/api/v2/telegrafs"

FORMS = ("application/toml", "application/json", "application/octet-stream")
"""The forms of an answer to a read; the first unless the client prefers another."""

_FIELDS = {
    "name": gojson.text,
    "description": gojson.text,
    "config": gojson.text,
    "metadata": gojson.mapping(gojson.anything),
}
_NEW = gojson.struct_of({"orgID": gojson.identifier, **_FIELDS})
_CHANGE = gojson.struct_of(_FIELDS)


class Telegrafs:
    """A PUT replaces everything except the organization."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._all = state.kinds["telegrafs"]

    def routes(self) -> Sequence[Route]:
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._list),
            ("GET", f"{PATH}/{{id}}", self._read),
            ("PUT", f"{PATH}/{{id}}", self._replace),
            ("DELETE", f"{PATH}/{{id}}", self._delete),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW, "internal error")
        content = _content(sent)
        if not sent["orgID"]:
            raise Problem("invalid", "invalid org id for permission: invalid ID")
        call.caller.require("write", "telegrafs", sent["orgID"])
        id_ = self._state.new_id()
        self._all[id_] = {"id": id_, "orgID": sent["orgID"], **content}
        return answer(201, self._shown(self._all[id_]))

    def _list(self, call: Call) -> Answer:
        org = call.query_id("orgID")  # The name of an organization is ignored.
        listed = [
            self._shown(telegraf)
            for telegraf in self._all.values()
            if org in {"", telegraf["orgID"]}
            and call.caller.may("read", "telegrafs", telegraf["orgID"], telegraf["id"])
        ]
        return answer(200, {"configurations": listed})

    def _read(self, call: Call) -> Answer:
        telegraf = self._found(call, "read")
        form = preferred(call.headers.get("Accept", ""))
        if form == "application/json":
            return answer(200, self._shown(telegraf))
        body = telegraf["config"].encode()
        if form == "application/octet-stream":
            name = telegraf["name"].replace(" ", "_").strip().lower() or "telegraf"
            return Answer(200, body, form, {"Content-Disposition": f'attachment; filename="{name}.toml"'})
        return Answer(200, body, f"{form}; charset=utf-8")

    def _replace(self, call: Call) -> Answer:
        content = _content(call.read(_CHANGE, "internal error"))
        telegraf = self._found(call, "write")
        telegraf |= content
        return answer(200, self._shown(telegraf))

    def _delete(self, call: Call) -> Answer:
        del self._all[self._found(call, "write")["id"]]
        return nothing()

    def _found(self, call: Call, action: str) -> Resource:
        telegraf = self._all.get(call.id())
        if telegraf is None:
            raise Problem("not found", "telegraf configuration not found")
        call.caller.require(action, "telegrafs", telegraf["orgID"], telegraf["id"])
        return telegraf

    def _shown(self, telegraf: Resource) -> Resource:
        path = f"{PATH}/{telegraf['id']}"
        own = {"self": path, **{part: f"{path}/{part}" for part in ("labels", "members", "owners")}}
        found = {key: value for key, value in telegraf.items() if value or key == "metadata"}
        return {"links": own, **found, "labels": shown(self._state.labels_of("telegrafs", telegraf["id"]))}


def preferred(accept: str) -> str:
    """The form that the header prefers: by weight, then by exact name, then by the order of the forms."""
    best, found = (0.0, 0), FORMS[0]
    for form in FORMS:
        for part in accept.split(","):
            name, *params = (piece.strip() for piece in part.split(";"))
            weight = next((_weight(param[2:]) for param in params if param.startswith("q=")), 1.0)
            exactness = 2 if name == form else {"application/*": 1, "*/*": 0}.get(name, -1)
            if exactness >= 0 and (weight, exactness) > best:
                best, found = (weight, exactness), form
    return found


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _content(sent: Mapping[str, Any]) -> Resource:
    """The stored content. Missing metadata is made from the configuration, which then has to be TOML."""
    metadata = sent["metadata"] or {"buckets": _buckets(sent["config"])}
    return {"name": sent["name"], "description": sent["description"], "config": sent["config"], "metadata": metadata}


def _buckets(config: str) -> list[str]:
    try:
        outputs = tomllib.loads(config).get("outputs", {})
    except tomllib.TOMLDecodeError as error:
        raise Problem("internal error", HIDDEN_REASON) from error
    tables = outputs.get("influxdb_v2", []) if isinstance(outputs, dict) else []
    found = [table["bucket"] for table in tables if isinstance(table, dict) and "bucket" in table]
    if not all(isinstance(bucket, str) for bucket in found):
        raise Problem("internal error", "a panic has occurred: interface conversion: interface {} is not string")
    return found
