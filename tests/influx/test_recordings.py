"""Recorded conversations with a real InfluxDB 2.9.1, replayed against the stand-in (skipped without ../shared)."""

import asyncio
import importlib.util
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from tests import needs
from tests.influx.server import influx

FOLDER = needs.SHARED / "golden" / "influxdb"

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


SLOW = {"labels/many", "transport/big-body"}
"""Scenarios that take long, as do those in pages of a hundred."""


@cache
def _compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("influxdb_compare", FOLDER / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs.shared(FOLDER)
def test_leaves_out_nothing_but_scripts() -> None:
    tags = {scenario["name"]: scenario.get("tags", ()) for scenario in _compare().load(FOLDER / "transcripts.jsonl")}
    assert [name for name in LEFT_OUT if "script" not in tags[name]] == []


def _is_slow(name: str) -> bool:
    return name in SLOW or name.endswith("/paging")


def _scenarios() -> list[Any]:
    if not FOLDER.exists():
        return [pytest.param(None, id="absent", marks=needs.shared(FOLDER))]
    return [
        pytest.param(scenario, id=scenario["name"], marks=[pytest.mark.slow] if _is_slow(scenario["name"]) else [])
        for scenario in _compare().load(FOLDER / "transcripts.jsonl")
        if scenario["name"] not in LEFT_OUT
    ]


@pytest.mark.parametrize("scenario", _scenarios())
async def test_answers_as_the_real_server(scenario: dict[str, Any]) -> None:
    is_set_up = "setup" not in scenario.get("tags", ())
    async with influx(is_set_up=is_set_up) as server:
        replay = _compare().Replay(server.url, server.token or "the-token-that-the-set-up-fixes", links=True)
        try:
            differences = await asyncio.to_thread(replay.run, scenario)
        finally:
            replay.server.connection.close()
    assert differences == []
