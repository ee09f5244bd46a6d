"""Dashboards, their cells, and the views of the cells."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.influx import gojson
from tests.influx.call import Answer, Call, answer, checked_id, nothing
from tests.influx.labels import shown
from tests.influx.paging import is_descending, limit_of, links, page
from tests.influx.problem import Problem
from tests.influx.routing import Route
from tests.influx.state import Resource, State, now
from tests.influx.views import EMPTY, decoded, nested

KIND = "dashboards"
PATH = f"/api/v2/{KIND}"

_PLACE = ("x", "y", "w", "h")
_CELL = gojson.struct_of(
    {
        "id": gojson.identifier,
        "name": gojson.text,
        "properties": gojson.anything,
        **dict.fromkeys(_PLACE, gojson.integer(32)),
    }
)
_CELLS = gojson.listing(_CELL)
_NEW = gojson.struct(orgID=gojson.identifier, name=gojson.text, description=gojson.text, cells=_CELLS)
_CHANGE = gojson.struct(
    name=gojson.optional(gojson.text), description=gojson.optional(gojson.text), cells=gojson.optional(_CELLS)
)
_NEW_CELL = gojson.struct_of(
    {"usingView": gojson.identifier, **dict.fromkeys(_PLACE, gojson.optional(gojson.integer(32)))}
)
_MOVE = gojson.struct_of(dict.fromkeys(_PLACE, gojson.optional(gojson.integer(32))))
_VIEW = gojson.struct(name=gojson.optional(gojson.text), properties=gojson.anything)

_CellForm = Callable[[Resource, Resource], Resource]
"""Returns the form of a cell in an answer, given its dashboard."""

_SORTED_BY: Mapping[str, Callable[[Resource], str]] = {
    "ID": lambda dashboard: dashboard["id"],
    "CreatedAt": lambda dashboard: dashboard["meta"]["createdAt"],
    "UpdatedAt": lambda dashboard: dashboard["meta"]["updatedAt"],
    "Name": lambda dashboard: dashboard["name"],
}


class Dashboards:
    """A dashboard has its cells in order; views are stored separately, by the ids of the cells."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._all = state.kinds[KIND]
        self._views = state.views

    def routes(self) -> Sequence[Route]:
        one, cell = f"{PATH}/{{id}}", f"{PATH}/{{id}}/cells/{{cell}}"
        return (
            ("POST", PATH, self._create),
            ("GET", PATH, self._list),
            ("GET", one, self._read),
            ("PATCH", one, self._change),
            ("DELETE", one, self._delete),
            ("POST", f"{one}/cells", self._add_cell),
            ("PUT", f"{one}/cells", self._replace_cells),
            ("PATCH", cell, self._move_cell),
            ("DELETE", cell, self._delete_cell),
            ("GET", f"{cell}/view", self._read_view),
            ("PATCH", f"{cell}/view", self._change_view),
        )

    def _create(self, call: Call) -> Answer:
        sent = call.read(_NEW)
        if not sent["orgID"]:
            raise Problem("invalid", "invalid org id for permission: invalid ID")
        call.caller.require("write", KIND, sent["orgID"])
        id_, time = self._state.new_id(), now()
        dashboard: Resource = {
            **{key: sent[key] for key in ("orgID", "name", "description")},
            "id": id_,
            "meta": {"createdAt": time, "updatedAt": time},
            "cells": [],
            "_owner": call.caller.user,
        }
        self._all[id_] = dashboard
        self._write_cells(dashboard, [{**cell, "id": ""} for cell in sent["cells"] or ()])
        return answer(201, self._shown(dashboard, self._as_written))

    def _list(self, call: Call) -> Answer:
        limit_of(call)
        filters, accepts = self._filter(call)
        found = [dashboard for dashboard in self._all.values() if accepts(dashboard)]
        sort = call.query.get("sortBy", "")
        if sort in _SORTED_BY:
            found.sort(key=_SORTED_BY[sort])
        items: Sequence[Resource] = found[::-1] if is_descending(call) else found
        if not filters:
            items = page(found, call)
        listed = [
            self._shown(dashboard, _as_stored)
            for dashboard in items
            if call.caller.may("read", KIND, dashboard["orgID"], dashboard["id"])
        ]
        return answer(200, {"links": links(PATH, call, len(items), {**filters, "sortBy": sort}), KIND: listed})

    def _read(self, call: Call) -> Answer:
        dashboard = self._found(call, "read")
        has_views = call.query.get("include") == "properties"
        return answer(200, self._shown(dashboard, self._with_view if has_views else _as_stored))

    def _change(self, call: Call) -> Answer:
        id_, sent = call.id(), call.read(_CHANGE)
        if id_ not in self._all:
            raise Problem("not found", "dashboard not found")
        if sent["name"] is None and sent["description"] is None:
            raise Problem("invalid", "must update at least one attribute")
        dashboard = self._found(call, "write")
        dashboard |= {key: sent[key] for key in ("name", "description") if sent[key] is not None}
        shown_as: _CellForm = _as_stored
        if sent["cells"] is not None:
            self._write_cells(dashboard, sent["cells"])
            shown_as = self._as_written
        _touch(dashboard)
        return answer(200, self._shown(dashboard, shown_as))

    def _delete(self, call: Call) -> Answer:
        dashboard = self._found(call, "write")
        self._forget_views(dashboard)
        del self._all[dashboard["id"]]
        return nothing()

    def _add_cell(self, call: Call) -> Answer:
        sent = call.read(_NEW_CELL)
        if all(sent[key] is None for key in _PLACE):
            raise Problem("invalid", "req body is empty")
        dashboard = self._found(call, "write")
        view: Mapping[str, Any] = {"name": "", "properties": EMPTY}
        if sent["usingView"]:
            view = self._found_view(dashboard, sent["usingView"])
        cell: Resource = {"id": self._state.new_id(), **{key: sent[key] or 0 for key in _PLACE}}
        self._views[dashboard["id"], cell["id"]] = dict(view)
        dashboard["cells"].append(cell)
        _touch(dashboard)
        return answer(201, _shown_cell(dashboard, cell, _as_stored))

    def _replace_cells(self, call: Call) -> Answer:
        sent = call.read(_CELLS) or []
        dashboard = self._found(call, "write")
        known = {cell["id"]: cell for cell in dashboard["cells"]}
        if any(cell["id"] not in known for cell in sent):
            raise Problem("conflict", "cannot replace cells that were not already present")
        cells = [{**known[cell["id"]], **{key: cell[key] for key in _PLACE}} for cell in sent]
        for id_ in known.keys() - {cell["id"] for cell in cells}:
            self._views.pop((dashboard["id"], id_), None)
        dashboard["cells"] = cells
        _touch(dashboard)
        own = {"self": f"{PATH}/{dashboard['id']}/cells"}
        return answer(201, {"cells": [_shown_cell(dashboard, cell, _as_stored) for cell in cells], "links": own})

    def _move_cell(self, call: Call) -> Answer:
        sent = {key: value for key, value in call.read(_MOVE).items() if value is not None}
        if not sent:
            raise Problem("invalid", "must update at least one attribute")
        dashboard, cell = self._found_cell(call)
        cell |= sent
        _touch(dashboard)
        return answer(200, _shown_cell(dashboard, cell, _as_stored))

    def _delete_cell(self, call: Call) -> Answer:
        dashboard, cell = self._found_cell(call)
        dashboard["cells"].remove(cell)
        self._views.pop((dashboard["id"], cell["id"]), None)
        _touch(dashboard)
        return nothing()

    def _read_view(self, call: Call) -> Answer:
        dashboard = self._found(call, "read")
        return self._shown_view(dashboard, checked_id(call.params["cell"]))

    def _change_view(self, call: Call) -> Answer:
        sent = call.read(_VIEW)
        if sent["name"] is None and sent["properties"] is None:
            raise Problem("invalid", "expected at least one attribute to be updated")
        dashboard, id_ = self._found(call, "write"), checked_id(call.params["cell"])
        view = self._found_view(dashboard, id_)
        # A name without properties resets them; an unknown type keeps them.
        properties = dict(EMPTY) if sent["properties"] is None else self._decoded(sent["properties"])
        name = view["name"] if sent["name"] is None else sent["name"]
        self._views[dashboard["id"], id_] = {"name": name, "properties": properties or view["properties"]}
        return self._shown_view(dashboard, id_)

    def _decoded(self, properties: Any) -> dict[str, Any] | None:
        try:
            return decoded(properties)
        except gojson.BadJson as error:
            raise Problem("internal error", str(error)) from error

    def _found(self, call: Call, action: str) -> Resource:
        dashboard = self._all.get(call.id())
        if dashboard is None:
            raise Problem("not found", "dashboard not found")
        call.caller.require(action, KIND, dashboard["orgID"], dashboard["id"])
        return dashboard

    def _found_cell(self, call: Call) -> tuple[Resource, Resource]:
        dashboard, id_ = self._found(call, "write"), checked_id(call.params["cell"])
        cell = next((cell for cell in dashboard["cells"] if cell["id"] == id_), None)
        if cell is None:
            raise Problem("not found", "cell not found")
        return dashboard, cell

    def _found_view(self, dashboard: Resource, cell: str) -> Mapping[str, Any]:
        view = self._views.get((dashboard["id"], cell))
        if view is None:
            raise Problem("not found", "view not found")
        return view

    def _forget_views(self, dashboard: Resource) -> None:
        for cell in dashboard["cells"]:
            self._views.pop((dashboard["id"], cell["id"]), None)

    def _write_cells(self, dashboard: Resource, sent: Sequence[Mapping[str, Any]]) -> None:
        """Replace all cells and their views; a cell without properties gets an empty view."""
        self._forget_views(dashboard)
        dashboard["cells"] = []
        for each in sent:
            id_ = each["id"] or self._state.new_id()
            written: Resource = {"id": id_, **{key: each[key] for key in _PLACE}}
            if each["properties"] is not None:
                written["name"] = each["name"]
            properties = nested(each["properties"]) if "name" in written else dict(EMPTY)
            self._views[dashboard["id"], id_] = {"name": written.get("name", ""), "properties": properties}
            dashboard["cells"].append(written)

    def _filter(self, call: Call) -> tuple[dict[str, str | Sequence[str]], Callable[[Resource], bool]]:
        """The first filter in the query applies."""
        ids = [checked_id(id_) for id_ in call.query.getall("id", [])]
        if ids:
            return {"id": ids}, lambda dashboard: dashboard["id"] in ids
        owner, org, name = call.query_id("ownerID"), call.query_id("orgID"), call.query.get("org", "")
        if owner:
            return {"owner": owner}, lambda dashboard: bool(dashboard["_owner"] == owner)
        if org:
            return {"orgID": org}, lambda dashboard: bool(dashboard["orgID"] == org)
        if name:
            named = self._state.named_org(name)
            return {"org": name}, lambda dashboard: bool(dashboard["orgID"] == named)
        return {}, lambda _: True

    def _shown(self, dashboard: Resource, cell_as: _CellForm) -> Resource:
        path = f"{PATH}/{dashboard['id']}"
        parts = {part: f"{path}/{part}" for part in ("members", "owners", "cells", "labels")}
        return {
            "links": {"self": path, **parts, "org": f"/api/v2/orgs/{dashboard['orgID']}"},
            **{key: dashboard[key] for key in ("id", "orgID", "name", "description", "meta")},
            "cells": [_shown_cell(dashboard, cell, cell_as) for cell in dashboard["cells"]],
            "labels": shown(self._state.labels_of(KIND, dashboard["id"])),
        }

    def _as_written(self, dashboard: Resource, cell: Resource) -> Resource:
        """A cell in the answer to the request that wrote it: with its view, if the request had one."""
        return self._with_view(dashboard, cell) if "name" in cell else cell

    def _with_view(self, dashboard: Resource, cell: Resource) -> Resource:
        view = self._found_view(dashboard, cell["id"])
        place = {key: cell[key] for key in ("id", *_PLACE)}
        return {**place, "properties": view["properties"], **({"name": view["name"]} if view["name"] else {})}

    def _shown_view(self, dashboard: Resource, id_: str) -> Answer:
        own = {"self": f"{PATH}/{dashboard['id']}/cells/{id_}"}
        return answer(200, {"links": own, "id": id_, **self._found_view(dashboard, id_)})


def _as_stored(_: Resource, cell: Resource) -> Resource:
    """A cell without its view; if its request had properties, it shows an empty view, whatever the real one is."""
    if "name" not in cell:
        return cell
    place = {key: cell[key] for key in ("id", *_PLACE)}
    return {**place, "properties": EMPTY, **({"name": cell["name"]} if cell["name"] else {})}


def _shown_cell(dashboard: Resource, cell: Resource, cell_as: _CellForm) -> Resource:
    path = f"{PATH}/{dashboard['id']}/cells/{cell['id']}"
    return {**cell_as(dashboard, cell), "links": {"self": path, "view": f"{path}/view"}}


def _touch(dashboard: Resource) -> None:
    dashboard["meta"] = {**dashboard["meta"], "updatedAt": now()}
