"""Variables: names that are unique without case, and a PUT that stores any value."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.call import Answer, Call, answer, nothing
from tests.influx.labels import shown
from tests.influx.paging import links, page
from tests.influx.problem import HIDDEN_REASON, Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, now, public

PATH = "/api/v2/variables"

PROTECTED = {"and", "import", "not", "return", "option", "test", "empty", "in", "or", "package", "builtin"}

_ARGUMENTS = gojson.optional(gojson.struct(type=gojson.text, values=gojson.anything))
_WHOLE = gojson.struct(
    orgID=gojson.identifier,
    name=gojson.text,
    description=gojson.text,
    selected=gojson.listing(gojson.text),
    arguments=_ARGUMENTS,
    createdAt=gojson.moment,
    updatedAt=gojson.moment,
)
_CHANGE = gojson.struct(
    name=gojson.text, description=gojson.text, selected=gojson.listing(gojson.text), arguments=_ARGUMENTS
)


class Variables:
    """A variable whose organization was changed by a PUT is listed in both."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._all, self._names = state.kinds["variables"], state.names["variables"]

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
        sent = call.read(_WHOLE)
        if not sent["orgID"]:
            raise Problem("invalid", "invalid org id for permission: invalid ID")
        _check(sent)
        call.caller.require("write", "variables", sent["orgID"])
        if self._names.are_taken(sent["orgID"], sent["name"]):
            raise Problem("conflict", f"variable is not unique for key {sent['orgID']}{sent['name'].lower()}")
        id_, time = self._state.new_id(), now()
        self._all[id_] = {"id": id_, **sent, "createdAt": time, "updatedAt": time, "_orgs": {sent["orgID"]}}
        self._names.record(self._all[id_])
        return answer(201, self._shown(self._all[id_]))

    def _list(self, call: Call) -> Answer:
        org = call.query_id("orgID")
        sent = {"orgID": org, "org": "" if org else call.query.get("org", "")}
        if sent["org"]:
            known = self._state.org_by_name(sent["org"])
            if known is None:
                raise Problem("internal error", HIDDEN_REASON)
            org = known["id"]
        found = [variable for variable in self._all.values() if not org or org in variable["_orgs"]]
        items = page(found, call)
        items = found if org else items  # Limit and offset are checked, but ignored with an organization.
        listed = [
            self._shown(variable)
            for variable in items
            if call.caller.may("read", "variables", variable["orgID"], variable["id"])
        ]
        return answer(200, {"links": links(PATH, call, len(items), sent), "variables": listed})

    def _read(self, call: Call) -> Answer:
        return answer(200, self._shown(self._found(call, "read")))

    def _change(self, call: Call) -> Answer:
        sent = call.read(_CHANGE)
        if not sent["name"] and not sent["description"] and sent["selected"] is None and sent["arguments"] is None:
            raise Problem("invalid", "no fields supplied in update")
        if sent["arguments"] is not None:
            _check_arguments(sent["arguments"])
        variable = self._found(call, "write")
        name = sent["name"].strip() if sent["name"] else variable["name"]
        self._check_free(variable, name)
        variable |= {key: value for key, value in sent.items() if value or (key == "selected" and value is not None)}
        variable |= {"name": name, "updatedAt": now()}
        self._names.record(variable)
        return answer(200, self._shown(variable))

    def _replace(self, call: Call) -> Answer:
        sent = call.read(_WHOLE)
        if not sent["orgID"]:
            raise Problem("invalid", "bad organization id: invalid ID")
        _check(sent)
        variable = self._found(call, "write")
        self._check_free(variable, sent["name"])
        variable |= sent
        variable["_orgs"].add(sent["orgID"])
        self._names.record(variable)
        return answer(200, self._shown(variable))

    def _delete(self, call: Call) -> Answer:
        del self._all[self._found(call, "write")["id"]]
        return nothing()

    def _found(self, call: Call, action: str) -> Resource:
        id_ = call.id()
        variable = self._all.get(id_)
        if variable is None:
            raise Problem("not found", f'variable not found for key "{id_}"')
        call.caller.require(action, "variables", variable["orgID"], id_)
        return variable

    def _check_free(self, variable: Resource, name: str) -> None:
        if self._names.are_taken(variable["orgID"], name, variable["id"]):
            key = f"{variable['orgID']}{name.lower()}"
            raise Problem("conflict", f"variable entity update conflicts with an existing entity for key {key}")

    def _shown(self, variable: Resource) -> Resource:
        path = f"{PATH}/{variable['id']}"
        own = {"self": path, "labels": f"{path}/labels", "org": f"/api/v2/orgs/{variable['orgID']}"}
        labels = shown(self._state.labels_of("variables", variable["id"]))
        return {"links": own, **public(variable), "labels": labels}


def _check(sent: Mapping[str, Any]) -> None:
    """Checks of creates and PUTs, but not of PATCHes."""
    name = sent["name"]
    if not name:
        raise Problem("invalid", "missing variable name")
    if sent["arguments"] is None:
        raise Problem("invalid", "invalid arguments type")
    _check_arguments(sent["arguments"])
    if not (name[0] == "_" or (name[0].isascii() and name[0].isalpha())):
        raise Problem("invalid", "variable name must start with a letter")
    if name in PROTECTED:
        raise Problem("invalid", f'"{name}" is a protected variable name')


def _check_arguments(arguments: dict[str, Any]) -> None:
    """Refuse arguments of an unknown form; sort the keys of maps."""
    type_, values = arguments["type"], arguments["values"]
    if type_ == "constant":
        if not isinstance(values, list):
            raise Problem("invalid", f"error parsing {values} as VariableConstantArguments")
        if not all(isinstance(value, str) for value in values):
            raise Problem("invalid", "expected variable constant value to be string")
    elif type_ == "map":
        if not isinstance(values, dict):
            raise Problem("invalid", f"error parsing {values} as VariableMapArguments")
        if not all(isinstance(value, str) for value in values.values()):
            raise Problem("invalid", "expected variable map value to be string")
        arguments["values"] = dict(sorted(values.items()))
    elif type_ == "query":
        if not isinstance(values, dict):
            raise Problem("invalid", f"error parsing {values} as VariableQueryArguments")
        for key in ("query", "language"):
            if not isinstance(values.get(key), str):
                raise Problem("invalid", f'"{key}" key not present in VariableQueryArguments')
        arguments["values"] = {key: values[key] for key in ("query", "language")}
    else:
        raise Problem("invalid", f"unknown VariableArguments type {type_}")
