"""Our own scenarios of conversations with the gateway, in ``tests/fixtures/service.yml``."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import yaml

from tests.corpora import FIXTURES
from tests.gateway.cases import Scenario, in_one_piece
from tests.gateway.gateway import client
from tests.gateway.service_recordings import Servers

_FILE = FIXTURES / "service.yml"

_PATHS = {"apply": "/api/v2/templates/apply", "export": "/api/v2/templates/export"}

_OUTSIDE_BODY = ("method", "path", "query")


def read_scenarios() -> list[dict[str, Any]]:
    """All scenarios; steps have whole requests."""
    scenarios: list[dict[str, Any]] = yaml.load(_FILE.read_text(), yaml.CSafeLoader)
    return [scenario | {"steps": [_whole_step(step) for step in scenario["steps"]]} for scenario in scenarios]


def is_by_hand(step: Mapping[str, Any]) -> bool:
    """Whether a user of the platform performs the step."""
    performer: str = step["by"]
    return performer == "user"


class Player:
    """Plays scenarios against servers."""

    def __init__(self, servers: Servers, gateway: aiohttp.ClientSession, platform: aiohttp.ClientSession) -> None:
        self._servers, self._gateway, self._platform = servers, gateway, platform

    async def play(self, scenario: Mapping[str, Any]) -> list[str]:
        """The differences of the answers, in an organization of its own."""
        called = Scenario(self._gateway, {"org": await self._new_org(scenario["about"])}, in_one_piece)
        by_hand = Scenario(self._platform, {}, in_one_piece)
        by_hand.saved = called.saved
        found = []
        for number, step in enumerate(scenario["steps"], 1):
            problems = await (by_hand if is_by_hand(step) else called).play(step)
            found += [f"{scenario['about']}: step {number}: {problem}" for problem in problems]
        return found

    async def _new_org(self, name: str) -> str:
        if self._servers.orgs is not None:
            return next(self._servers.orgs)[0]
        async with self._platform.post("/api/v2/orgs", json={"name": name}) as answer:
            org: dict[str, str] = await answer.json()
        return org["id"]


@asynccontextmanager
async def player(servers: Servers) -> AsyncIterator[Player]:
    """A player whose clients have the token of the tests."""
    platform = servers.platform.removeprefix("http://") or servers.gateway
    async with client(servers.gateway) as gateway, client(platform) as direct:
        yield Player(servers, gateway, direct)


def _whole_step(step: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "by": step.get("by", "client"),
        "request": _whole_request(step["send"]),
        "expect": {"status": step["status"], "body": step.get("body", {})},
        "save": step.get("save", {}),
    }


def _whole_request(short: Mapping[str, Any]) -> dict[str, Any]:
    path, method = short["path"], short.get("method", "POST")
    request = {
        "method": method,
        "path": _PATHS.get(path) or (path if path.startswith("/") else f"/api/v2/{path}"),
        "query": short.get("query", []),
    }
    body = {key: value for key, value in short.items() if key not in _OUTSIDE_BODY}
    if path in ("apply", "stacks") and method == "POST":
        body = {"orgID": "${org}"} | body
    if contents := body.pop("contents", None):
        body["template"] = {"contentType": "json", "contents": [_whole_object(each) for each in contents]}
    return request | ({"headers": {"Content-Type": "application/json"}, "body": body} if body else {})


def _whole_object(short: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "influxdata.com/v2alpha1",
        "kind": short["kind"],
        "metadata": {"name": short["name"]},
        "spec": short.get("spec", {}),
    }
