"""The claims of docs/reference/influxdb-fields.md: each field is set on the server, then the driver updates another."""

import copy
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.drivers.influxdb.codecs.chart import problem_of, read_cell, unexpressed_in, written_cell
from services.kinds.influxdb.charts.kinds import CHART_KINDS
from tests.drivers.client import DriverClient, create, spec, update
from tests.drivers.influxdb.running import REAL, Server, influxdb_client, real_server, stand_in
from tests.drivers.influxdb.samples import influxdb_sample as sample
from tests.drivers.influxdb.test_keeping import asked
from tests.drivers.specs import full_chart, normal
from tests.influx.views import decoded

PAGE = Path(__file__).parents[3] / "docs/reference/influxdb-fields.md"

COLLECTIONS = {
    "Label": "labels",
    "Bucket": "buckets",
    "Variable": "variables",
    "CheckThreshold": "checks",
    "CheckDeadman": "checks",
    "NotificationEndpointHTTP": "notificationEndpoints",
    "NotificationEndpointSlack": "notificationEndpoints",
    "NotificationEndpointPagerDuty": "notificationEndpoints",
    "NotificationRule": "notificationRules",
    "Task": "tasks",
    "Telegraf": "telegrafs",
    "Dashboard": "dashboards",
}
PATCHED = ("labels", "buckets", "tasks", "dashboards")

SERVERS_OWN = frozenset(
    (
        *("id", "orgID", "org", "ownerID", "taskID", "type", "links", "labels", "createdAt", "updatedAt", "meta"),
        *("latestCompleted", "latestScheduled", "lastRunStatus", "lastRunError"),
        # Of tasks, read from the script.
        *("name", "every", "cron", "offset", "flux"),
    )
)
"""Fields that the server sets, and that have no row."""


def rows(heading: str) -> list[list[str]]:
    """The rows of the table under a heading of the page, without its head."""
    part = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
    return found[2:]


CLAIMS = {(kind, field): tuple(claims) for kind, field, *claims in rows("Resources") if claims[0] in ("yes", "no")}

Body = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """
    A field of a resource.

    Attributes:
        change: Returns the body with another value of the field, as a user would write it.
        shown: Returns the value of the field in a body.
        word: What a warning about the field contains.
    """

    change: Callable[[Body], Body]
    shown: Callable[[Body], Any]
    word: str


def at(path: str, value: Any, **further: Any) -> Case:
    """A field at a *path* of keys, with *further* top-level fields that the server demands beside it."""
    keys = path.split(".")

    def change(body: Body) -> Body:
        changed = copy.deepcopy(body) | further
        inner = changed
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        inner[keys[-1]] = value
        return changed

    def shown(body: Body) -> Any:
        for key in keys[:-1]:
            body = body.get(key) or {}
        return body.get(keys[-1])

    return Case(change, shown, path)


def in_rule(key: str, value: int) -> Case:
    def change(body: Body) -> Body:
        return {**body, "retentionRules": [{**body["retentionRules"][0], key: value}]}

    return Case(change, lambda body: body["retentionRules"][0][key], f"retentionRules[0].{key}")


def in_script(old: str, new: str, word: str = "") -> Case:
    def change(body: Body) -> Body:
        assert old in body["flux"]
        return {**body, "flux": body["flux"].replace(old, new, 1)}

    return Case(change, lambda body: new in body["flux"], word)


_QUERY = 'from(bucket: "other") |> filter(fn: (r) => r._field == "load")'
_BUILDER = {"buckets": ["raw"], "tags": [], "functions": [], "aggregateWindow": {"period": "", "fillValues": False}}
_CHECK = {
    "status": "inactive",
    "every": "2m0s",
    "offset": "7s",
    "tags": [{"key": "a", "value": "b"}],
    "statusMessageTemplate": "other",
    "query.text": _QUERY,
    "query.editMode": "builder",
    "query.name": "by hand",
    "query.builderConfig": _BUILDER,
}
_VALUES: dict[str, dict[str, Any]] = {
    "Label": {"properties.color": "#ffffff", "properties.description": "d"},
    "Bucket": {},
    "Variable": {"selected": ["eu"], "arguments": {"type": "map", "values": {"a": "b"}}},
    "CheckThreshold": {**_CHECK, "thresholds": [{"type": "lesser", "value": 1, "level": "OK"}]},
    "CheckDeadman": {**_CHECK, "level": "OK", "staleTime": "3m0s", "timeSince": "4m0s", "reportZero": True},
    "NotificationEndpointHTTP": {
        "status": "inactive",
        "url": "http://other",
        "method": "GET",
        "authMethod": "none",
        **{key: f"secret: other-{key}" for key in ("token", "username", "password")},
        "headers": {"a": "b"},
        "contentTemplate": "t",
    },
    "NotificationEndpointSlack": {"status": "inactive", "url": "http://other", "token": "secret: other"},
    "NotificationEndpointPagerDuty": {
        "status": "inactive",
        "clientURL": "http://other",
        "routingKey": "secret: other",
    },
    "NotificationRule": {
        "status": "inactive",
        "every": "20m0s",
        "offset": "7s",
        "statusRules": [{"currentLevel": "OK", "previousLevel": "WARN"}],
        "tagRules": [],
        "messageTemplate": "other",
        "channel": "#other",
        "runbookLink": "http://book",
        "sleepUntil": "2040-01-01T00:00:00Z",
    },
    "Telegraf": {"config": "[agent]\n"},
    "Dashboard": {},
    "Task": {"status": "inactive"},
}

CASES: dict[tuple[str, str], Case] = {
    (kind, f"`{path}`"): at(path, value)
    for kind, values in _VALUES.items()
    for path, value in {
        **({} if kind == "Task" else {"name": "other"}),
        **({} if kind == "Label" else {"description": "d"}),
        **values,
    }.items()
} | {
    ("Label", "`properties.*`, any other"): at("properties.team", "ops"),
    ("Bucket", "`retentionRules[0].everySeconds`"): in_rule("everySeconds", 20 * 86_400),
    ("Bucket", "`retentionRules[0].shardGroupDurationSeconds`"): in_rule("shardGroupDurationSeconds", 3600),
    ("Bucket", "`rp`"): at("rp", "autogen"),
    ("NotificationRule", "`limit`"): at("limit", 2, limitEvery=3),
    ("NotificationRule", "`limitEvery`"): at("limitEvery", 3, limit=2),
    ("Task", "`flux`: the script"): in_script("-1h", "-2h"),
    ("Task", "`flux`: `name` of `option task`"): in_script('name: "held"', 'name: "other"'),
    ("Task", "`flux`: `every` of `option task`"): in_script("every: 1h0m0s", "every: 1mo"),
    ("Task", "`flux`: `cron` of `option task`"): in_script("every: 1h0m0s", 'cron: "@daily"'),
    ("Task", "`flux`: `offset` of `option task`"): in_script("offset: 5m0s", "offset: 7m0s"),
    ("Task", "`flux`: `concurrency` of `option task`"): in_script("5m0s", "5m0s, concurrency: 3", "concurrency"),
    ("Task", "`flux`: `retry` of `option task`"): in_script("5m0s", "5m0s, retry: 3", "retry"),
    ("Task", "`flux`: any other key of `option task`"): in_script("5m0s", '5m0s, team: "ops"', "team"),
    ("Telegraf", "`metadata.buckets`, not those of the configuration"): at("metadata.buckets", ["by hand"]),
    ("Telegraf", "`metadata.*`, any other"): at("metadata.owner", "ops"),
}


def of_cell(type_: str, **properties: Any) -> Case:
    """A second cell, beside the chart."""
    view = {"shape": "chronograf-v2", "type": type_, **properties} if type_ else {"shape": "empty"}

    def shown(body: Body) -> Any:
        return [cell["properties"] for cell in body["cells"] if cell.get("name") == "by hand"]

    def change(body: Body) -> Body:
        cell = {"name": "by hand", "x": 0, "y": 9, "w": 1, "h": 1, "properties": view}
        return {**body, "cells": [*body["cells"], cell]}

    return Case(change, shown, "cell 'by hand'")


def of_chart(**change: Any) -> Case:
    """A change of the cell of the chart."""
    return Case(
        lambda body: {**body, "cells": [{**body["cells"][0], **change}, *body["cells"][1:]]},
        lambda body: {key: body["cells"][0][key] for key in change},
        "no warning",
    )


_AXES: Body = {"x": {}, "y": {}}
CASES |= {
    ("Dashboard", "`cells[].x`, `y`, `w`, `h` of a chart"): of_chart(x=5, y=6, w=7, h=8),
    ("Dashboard", "`cells[].name` of a chart"): of_chart(name="other"),
    ("Dashboard", "cells of type `check`"): of_cell("check", checkID="0000000000000001"),
    ("Dashboard", "cells of type `log-viewer`"): of_cell("log-viewer"),
    ("Dashboard", "cells without a view"): of_cell(""),
    ("Dashboard", "charts that break a rule of packages, such as `geom: stepAfter`"): of_cell(
        "xy", geom="stepAfter", axes=_AXES
    ),
}

OTHERS = {("NotificationRule", "`endpointID`"), ("CheckCustom", "the check")} | {
    ("NotificationEndpointTelegram", "the endpoint")
}
"""Rows with a test of their own."""


def test_each_field_has_a_row() -> None:
    assert CASES.keys() | OTHERS == CLAIMS.keys()


@pytest.fixture(params=[stand_in, *([real_server] if REAL else [])], ids=lambda serving: serving.__name__)
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with request.param() as running:
        yield running


@pytest.fixture
async def client(server: Server, tmp_path: Path) -> AsyncIterator[DriverClient]:
    async with influxdb_client(server.url, server.token, server.orgs, tmp_path) as driver:
        yield driver


async def shown(server: Server, path: str) -> Body:
    body: Body = await asked(server, "GET", f"{path}?include=properties")
    return body["label"] if path.startswith("labels/") else body


async def write(server: Server, path: str, body: Body) -> str:
    """Write a resource as a user does; return its path."""
    collection = path.partition("/")[0]
    if collection == "buckets" and "rp" in body:
        # It can be set only when a bucket is created.
        await asked(server, "DELETE", path)
        return f"buckets/{(await asked(server, 'POST', 'buckets', body))['id']}"
    if collection == "tasks":
        # The server would write the other fields into the script.
        body = {key: body[key] for key in ("flux", "status", "description") if key in body}
    if collection == "dashboards":
        body = {**body, "cells": [{**cell, "properties": {"properties": cell["properties"]}} for cell in body["cells"]]}
    await asked(server, "PATCH" if collection in PATCHED else "PUT", path, body)
    return path


def is_covered(kind: str, key: str) -> bool:
    """Whether a field of an answer is in the table, or is the server's own."""
    named = " ".join(field for each, field in CLAIMS if each == kind)
    return key in SERVERS_OWN or bool(re.search(rf"\b{key}\b", named))


@pytest.mark.parametrize("row", CASES, ids=lambda row: f"{row[0]} {row[1]}")
async def test_each_claim_about_a_field_holds(client: DriverClient, server: Server, row: tuple[str, str]) -> None:
    kind, case = row[0], CASES[row]
    first = sample(kind, "held", "")
    if kind == "Bucket":
        first["retentionRules"] = [{"type": "expire", "everySeconds": 30 * 86_400}]
    [made] = await client.made(create(kind, first))
    path = f"{COLLECTIONS[kind]}/{made.id}"
    before = await shown(server, path)
    path = await write(server, path, case.change(before))
    body = await shown(server, path)
    assert case.shown(body) != case.shown(before)
    assert [key for key in body if not is_covered(kind, key)] == []

    [held] = await client.read((kind, path.rpartition("/")[2]))
    assert held
    is_seen = spec(held) != spec(made)
    is_named = any(case.word in what for what in held.unexpressed)
    changed = "name" if "description" in case.word else "description"
    [written] = await client.made(update(kind, held.id, {**spec(held), changed: "changed"}, held.references))
    is_kept = case.shown(await shown(server, path)) == case.shown(body)
    assert spec(written) == {**spec(held), changed: "changed"}
    assert written.unexpressed == held.unexpressed
    claimed = ("yes" if is_seen else "no", "yes" if is_kept else "no", "–" if is_seen else "yes" if is_named else "no")
    assert (*claimed, "yes" if is_seen else "no") == CLAIMS[row]


async def test_the_endpoint_of_a_rule_is_expressed(client: DriverClient, server: Server) -> None:
    [made] = await client.made(create("NotificationRule", sample("NotificationRule", "held", "")))
    [other] = await client.made(create("NotificationEndpointSlack", sample("NotificationEndpointSlack", "another", "")))
    path = f"notificationRules/{made.id}"
    await write(server, path, {**await shown(server, path), "endpointID": other.id})
    [held] = await client.read(("NotificationRule", made.id))
    assert held
    assert held.references != made.references
    await client.made(update(held.kind, held.id, {**spec(held), "description": "changed"}, held.references))
    assert (await shown(server, path))["endpointID"] == other.id
    assert CLAIMS["NotificationRule", "`endpointID`"] == ("yes", "yes", "–", "yes")


@pytest.mark.parametrize("row", sorted(OTHERS - {("NotificationRule", "`endpointID`")}), ids=lambda row: row[0])
def test_kinds_that_packages_lack_are_only_named(row: tuple[str, str]) -> None:
    """``test_unexpressed.py`` has the tests of that."""
    assert CLAIMS[row] == ("no", "yes", "yes", "no")


Path_ = tuple[str | int, ...]

_WORDS = {"geom": ("step", "line"), "position": ("stacked", "overlaid"), "wrapping": ("wrap", "truncate")}


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The properties of a view; the state of the query builder counts as one."""
    if isinstance(value, dict) and path[-1:] != ("builderConfig",):
        for key in value:
            if path or key not in ("shape", "type"):
                yield from leaves(value[key], (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from leaves(value[0], (*path, 0))
    else:
        yield path


def value_at(value: Any, path: Path_) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else value[key]
    return value


def another(path: Path_, value: Any) -> Any:
    """Another valid value of a property."""
    key = next(key for key in reversed(path) if isinstance(key, str))
    match value:
        case dict():
            return {**value, "buckets": ["raw"]}
        case bool():
            return not value
        case int() | float():
            return value + 1 if abs(value) < 2**20 else 5
        case str():
            return next((word for word in _WORDS.get(key, ()) if word != value), f"{value}x")
        case _:
            texts = ["7", "8"] if key == "bounds" else ["x"]
            return [7, 8] if key.endswith("Domain") else [*(value or ()), *texts]


def dotted(path: Path_) -> str:
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).lstrip(".")


@pytest.mark.parametrize("kind", CHART_KINDS)
def test_each_property_of_a_chart_is_expressed_or_named_and_kept(kind: str) -> None:
    [chart] = normal("Dashboard", "board", {"charts": [full_chart(kind)]})["charts"]
    cell = {**written_cell(chart), "id": "0000000000000001"}
    view = decoded(cell["properties"]["properties"])
    assert view
    properties, unseen = list(leaves(view)), set[str]()
    for path in properties:
        changed = copy.deepcopy(view)
        value_at(changed, path[:-1])[path[-1]] = another(path, value_at(view, path))
        live = {**cell, "properties": decoded(changed)}
        assert value_at(live["properties"], path) != value_at(view, path), path
        read = read_cell(live)
        if read is None:
            assert problem_of(live), path
            continue
        named = unexpressed_in(live, read)
        if read != chart:
            continue
        unseen.add(dotted(path))
        assert [re.sub(r"\d+", "", name) for name in named] == [dotted(path)]
        kept = decoded(written_cell({**chart, "note": "other"}, live)["properties"]["properties"])
        assert value_at(kept, path) == value_at(live["properties"], path), path
    assert len(properties) > len(unseen)
    assert unseen == {name for name, types in unexpressed_properties(view) if is_of(types, view)}


def unexpressed_properties(view: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """The properties of the second table, each with its types of views."""
    found = []
    for name, types, *claims in rows("Properties of charts"):
        assert claims == ["no", "yes", "yes", "no"]
        found.append((name.strip("`"), types))
    return found


def is_of(types: str, view: Mapping[str, Any]) -> bool:
    return "queries" in view if types == "all with queries" else f"`{view['type']}`" in types.split(", ")
