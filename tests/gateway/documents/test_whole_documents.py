"""Answers to requests about one stack, each in a golden file, with numbers in place of ids and times."""

import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.cluster import Cluster
from tests.gateway.gateway import client, gateway, settings

FOLDER = Path(__file__).parent
PACKAGE = list(yaml.safe_load_all((FOLDER / "every_kind.yml").read_text()))

_ID = re.compile("[0-9a-f]{16}")
_TIME = re.compile(r"2\d{3}-\d\d-\d\dT[\d:.]+Z")


class Steady:
    """Replaces values that differ between runs; ids become numbers in the order of their occurrence."""

    def __init__(self, org: str) -> None:
        self._numbers = {org: "org"}

    def __call__(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self(inner, key) for key, inner in sorted(value.items())}
        if isinstance(value, list):
            return [self(inner, name) for inner in value]
        if name == "planDigest":
            return "<digest>"
        if isinstance(value, int) and name.lower().endswith("id") and value:
            return f"<number of {self._named(f'{value:016x}')}>"
        if not isinstance(value, str):
            return value
        found = _ID.sub(lambda match: f"<{self._named(match[0])}>", value)
        return _TIME.sub("<time>", found)

    def _named(self, text: str) -> str:
        return self._numbers.setdefault(text, f"id {len(self._numbers)}")


def changed() -> list[dict[str, Any]]:
    """A changed package: other names, an endpoint and an association changed, and half of the objects removed."""
    removed = {"silent", "pager", "nightly", "names", "strict", "agent"}
    found: list[dict[str, Any]] = json.loads(
        json.dumps([each for each in PACKAGE if each["metadata"]["name"] not in removed])
    )
    specs = {each["metadata"]["name"]: each["spec"] for each in found}
    specs["readings"] |= {"name": "all-readings", "retentionRules": []}
    specs["tell"] |= {"endpointName": "chat"}
    specs["line"] |= {"values": ["north", "south", "west"], "associations": []}
    specs["ovens"]["charts"] = specs["ovens"]["charts"][:1]
    specs["means"] |= {"every": "1h"}
    return found


async def answers_of_a_stack(session: aiohttp.ClientSession) -> dict[str, Any]:
    """The answers from the first dry run of a package until its stack is uninstalled."""
    async with session.get("/api/v2/orgs", params={"org": "example"}) as answer:
        org = (await answer.json())["orgs"][0]["id"]
    steady, found = Steady(org), dict[str, Any]()

    async def ask(name: str, /, method: str, path: str, status: int, **body: Any) -> Any:
        async with session.request(method, path, json={"orgID": org, **body} if body else None) as answer:
            document = await answer.json()
            assert answer.status == status, document
        found[name] = steady(document)
        return document

    async def apply(name: str, status: int, contents: list[dict[str, Any]], **more: Any) -> None:
        template = {"contents": contents, "sources": ["every_kind.yml"]}
        await ask(name, "POST", "/api/v2/templates/apply", status, template=template, **more)

    secrets = {"hook-token": "one", "pager-key": "two"}
    stack = (await ask("stack-new", "POST", "/api/v2/stacks", 201, name="factory", urls=[]))["id"]
    await apply("dry-run-new", 200, PACKAGE, dryRun=True, stackID=stack)
    await apply("applied", 201, PACKAGE, stackID=stack, secrets=secrets)
    await apply("dry-run-same", 200, PACKAGE, dryRun=True, stackID=stack)
    await apply("dry-run-changed", 200, changed(), dryRun=True, stackID=stack)
    await apply("applied-changed", 201, changed(), stackID=stack)
    await ask("stack-changed", "GET", f"/api/v2/stacks/{stack}", 200)
    await ask("stack-uninstalled", "POST", f"/api/v2/stacks/{stack}/uninstall", 200)
    bad = [{**PACKAGE[0], "kind": "Lable"}, {**PACKAGE[1], "spec": {"retentionRules": [{"type": "x"}]}}]
    await apply("refused", 422, bad, dryRun=True)
    return found


async def test_the_answers_about_a_stack_are_those_of_the_golden_files(
    services: Cluster, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        found = await answers_of_a_stack(session)
    differing: list[str] = []
    for name, document in found.items():
        path, text = (
            FOLDER / "golden" / f"{name}.json",
            json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n",
        )
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        if path.read_text() != text:
            differing.append(name)
    assert differing == [], "look at the difference that --update-golden makes"
