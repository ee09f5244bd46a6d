"""Stacks with every kind on the stand-in: packages, services with injected faults, and the resulting state."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import applier_svc.__main__ as applier
import services.drivers.__main__ as platform_process
from applier_svc.execution.timeouts import Timeouts
from services.platforms import Platform
from tests.applier.world import SUCCEEDED, Case, end
from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.cluster import Cluster, cluster
from tests.influx.orgs import add_org
from tests.influx.server import Influx, influx
from tests.influx.state import LABELLED, State

FIELD = 'from(bucket: "raw") |> range(start: -1h) |> filter(fn: (r) => r._field == "usage")'

_CHART = {"kind": "Single_Stat", "name": "CPU", "width": 4, "height": 3, "queries": [{"query": FIELD}]}


def _rule(name: str, endpoint: str, **spec: Any) -> dict[str, Any]:
    return a_rule(name, endpoint, name, ["red"], **{"messageTemplate": "${r._message}", **spec})


FULL = text(
    an_object("Label", "red", "red"),
    an_object("Label", "green", "green"),
    an_object("Bucket", "raw", "raw", ["red"], retentionRules=[{"type": "expire", "everySeconds": 3600}]),
    an_object("Variable", "region", "region", ["red"], type="constant", values=["eu", "us"]),
    an_object("Dashboard", "board", "board", ["red", "green"], charts=[_CHART]),
    an_object("Task", "roll", "roll", ["green"], every="1h", query="buckets()"),
    an_object("Telegraf", "agent", "agent", ["red"], config="[agent]"),
    a_check("Deadman", "silent", "silent", ["red"], timeSince="90s", level="CRIT"),
    a_check("Threshold", "hot", "hot", ["red"], query=FIELD),
    an_endpoint("HTTP", "hook", "hook", ["red"]),
    an_endpoint("PagerDuty", "pager", "pager", ["red"]),
    an_endpoint("Slack", "chat", "chat", ["red"]),
    _rule("to_hook", "hook"),
    _rule("to_pager", "pager"),
    _rule("to_chat", "chat"),
)
"""Every kind, with labels."""

CHANGED = text(
    an_object("Label", "red", "crimson"),
    an_object("Label", "blue", "blue"),
    an_object("Bucket", "raw", "raw", ["red"], retentionRules=[{"type": "expire", "everySeconds": 7200}]),
    an_object("Variable", "region", "region", ["blue"], type="constant", values=["eu"]),
    an_object("Dashboard", "board", "board", ["red"], charts=[{**_CHART, "note": "new"}]),
    an_object("Dashboard", "second", "board", ["red"], charts=[_CHART]),
    an_object("Task", "roll", "roll", ["blue"], every="2h", query="buckets()"),
    an_object("Telegraf", "agent", "agent", ["red"], config="[agent]\n  interval = '5s'"),
    a_check("Deadman", "silent", "quiet", ["red"], timeSince="90s", level="WARN"),
    a_check("Threshold", "hot", "hot", ["red"], query=FIELD.replace("usage", "load")),
    an_endpoint("HTTP", "hook", "hook", ["red"], url="https://moved.example.com"),
    an_endpoint("Slack", "chat", "talk", ["red"], url="https://moved.example.com"),
    _rule("to_hook", "hook"),
    _rule("to_pager", "chat"),
)
"""After FULL: updates of all kinds but one, which is removed; a rule gets another endpoint; labels change."""

LIVES = {"apply": ("", FULL), "update": (FULL, CHANGED), "uninstall": (FULL, "")}
"""The package of a stack before and after; an empty one afterwards is an uninstall."""


@dataclass
class Life:
    """
    Services whose platform is the stand-in.

    Attributes:
        services: The services.
        server: The stand-in.
    """

    services: Cluster
    server: Influx
    _count: int = 0

    async def case_with(self, package: str) -> Case:
        """A stack of *package*, in an organization of its own; the count of requests starts again."""
        self._count += 1
        org = f"org-{self._count}"
        add_org(self.server.state, org)
        case = Case(self.services, None, org)  # type: ignore[arg-type]
        if package:
            assert end(await case.apply(package)).state == SUCCEEDED
        self.server.records.clear()
        return case

    def content(self, case: Case) -> list[str]:
        """All that the server holds in the organization of *case*, including the scripts that it made itself."""
        return contents(self.server.state, case.org)


@asynccontextmanager
async def life(folder: Path, timeouts: Timeouts) -> AsyncIterator[Life]:
    """All services, with a driver of the stand-in."""
    async with influx() as server:
        (folder / "token").write_text(server.token)
        platform = Platform("embedded", "influxdb", "", {"url": server.url, "token_file": "token"})
        replaced = {
            "platform": partial(platform_process.opened, platform=platform),
            "applier": partial(applier.opened, timeouts=timeouts),
        }
        async with cluster(folder, replaced) as services:
            yield Life(services, server)


_LEFT_OUT = {"org", "createdAt", "updatedAt", "meta", "latestCompleted", "latestScheduled", "latestScheduledRun"}
_ID = re.compile("[0-9a-f]{16}")


def contents(state: State, org_name: str) -> list[str]:
    """The content of an organization as sorted texts, with names in place of ids, and without times."""
    found = state.org_by_name(org_name)
    assert found
    org = str(found["id"])
    labels = [label for label in state.labels.values() if label["orgID"] == org]
    held = {kind: list(state.of_org(kind, org)) for kind in LABELLED}
    names = {item["id"]: f"{kind} {item['name']}" for kind, items in held.items() for item in items}
    names |= {label["id"]: f"label {label['name']}" for label in labels} | {org: "org"}

    def said(kind: str, item: Any, more: Sequence[Any] = ()) -> str:
        kept = {key: value for key, value in item.items() if key not in _LEFT_OUT}
        written = json.dumps([kind, kept, *more], sort_keys=True, default=sorted)
        return _ID.sub(lambda id_: names.get(id_[0], "another"), written)

    texts = [said("label", label) for label in labels]
    for kind, items in held.items():
        for item in items:
            attached = sorted(label["name"] for label in state.labels_of(kind, item["id"]))
            views = [state.views.get((item["id"], cell["id"])) for cell in item.get("cells", ())]
            texts.append(said(kind, item, [attached, views]))
    texts += [f"secret {key}" for key in state.secrets.get(org, ())]
    return sorted(texts)
