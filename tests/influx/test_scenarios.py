"""
Conversations with the stand-in: our own, which follow the specification of the API, and recorded ones with a real
InfluxDB 2.9.1, compared by the program beside them.
"""

import asyncio
import copy
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest

from tests import needs
from tests.influx.replay import Replay
from tests.influx.server import influx

SCENARIOS = [
    json.loads(line) for line in Path(__file__).with_name("scenarios.jsonl").read_text(encoding="utf-8").splitlines()
]

RECORDED = needs.SHARED / "golden" / "influxdb"

GROUPS = (
    *("authorizations", "buckets", "cascades", "charts", "charts-nested", "checks", "dashboards", "labels", "names"),
    *("notificationEndpoints", "notificationRules", "orgs", "rights", "secrets", "setup", "tasks", "telegrafs"),
    *("transport", "variables", "views"),
)
"""The recorded scenarios by the first part of their names."""

LEFT_OUT = {
    "checks/threshold-kinds",
    "checks/deadman",
    "checks/patch",
    "checks/put-type",
    "checks/hidden-script",
    "notificationRules/slack",
    "notificationRules/http",
    "notificationRules/endpoint-changed",
    "notificationRules/hidden-script",
}
"""Scenarios with scripts as the server formats them. Those of the stand-in have the same content in another form."""


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["name"]) for each in SCENARIOS])
async def test_answers_as_specified(scenario: dict[str, Any]) -> None:
    async with influx() as server, aiohttp.ClientSession() as session:
        assert await Replay(session, server.url, server.token).run(scenario) == []


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("label/name", "another"),
        ("label/id", "${org}"),
        ("label/more", 1),
        ("label/properties", None),
        ("label/properties/color", ""),
    ],
)
async def test_the_replay_finds_a_wrong_answer(path: str, wrong: object) -> None:
    scenario = copy.deepcopy(next(each for each in SCENARIOS if each["name"] == "labels"))
    *holder, last = path.split("/")
    expected = scenario["steps"][0]["answer"]
    for step in holder:
        expected = expected[step]
    expected[last] = wrong
    async with influx() as server, aiohttp.ClientSession() as session:
        found = await Replay(session, server.url, server.token).run(scenario)
    assert len(found) == 1
    assert found[0].startswith(f"step 1 POST /api/v2/labels: /{path} is")


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    """The program beside the recordings."""
    spec = importlib.util.spec_from_file_location("influxdb_compare", RECORDED / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs.shared(RECORDED)
def test_every_recorded_scenario_without_scripts_is_replayed(compare: ModuleType) -> None:
    recorded = {scenario["name"]: scenario.get("tags", ()) for scenario in compare.load(RECORDED / "transcripts.jsonl")}
    assert {name.partition("/")[0] for name in recorded} == {*GROUPS}
    assert [name for name in LEFT_OUT if "script" not in recorded[name]] == []


@needs.shared(RECORDED)
@pytest.mark.parametrize("group", GROUPS)
async def test_answers_as_the_real_server(compare: ModuleType, group: str) -> None:
    assert await replayed(compare, lambda name: name.partition("/")[0] == group and not takes_long(name)) == []


@needs.shared(RECORDED)
@pytest.mark.slow
async def test_answers_long_conversations_as_the_real_server(compare: ModuleType) -> None:
    assert await replayed(compare, takes_long) == []


def takes_long(name: str) -> bool:
    """Whether a recorded scenario takes long, as do those in pages of a hundred."""
    return name in {"labels/many", "transport/big-body"} or name.endswith("/paging")


async def replayed(compare: ModuleType, is_chosen: Callable[[str], bool]) -> list[str]:
    """The differences in the scenarios with certain names; each has an organization of its own."""
    scenarios = [
        scenario
        for scenario in compare.load(RECORDED / "transcripts.jsonl")
        if is_chosen(scenario["name"]) and scenario["name"] not in LEFT_OUT
    ]
    is_set_up = not any("setup" in scenario.get("tags", ()) for scenario in scenarios)
    async with influx(is_set_up=is_set_up) as server:
        replay = compare.Replay(server.url, server.token or "the-token-that-the-set-up-fixes", links=True)
        try:
            return [
                f"{scenario['name']}: {text}"
                for scenario in scenarios
                for text in await asyncio.to_thread(replay.run, scenario)
            ]
        finally:
            replay.server.connection.close()
