"""Conversations for checkouts without recordings. They follow the specification of the API."""

import copy
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.influx.replay import Replay
from tests.influx.server import influx

SCENARIOS = [
    json.loads(line) for line in Path(__file__).with_name("scenarios.jsonl").read_text(encoding="utf-8").splitlines()
]


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
