"""The command line prints the same JSON for a message as the HTTP API returns."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import environment, parts, pkger
from tests.cluster import Cluster
from tests.gateway.transcoding.api import LABEL, Api, a_source


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, services.addresses)


async def printed(*arguments: str, env: dict[str, str]) -> str:
    ended = await pkger(*arguments, "-o", "json", env=env)
    assert (ended.code, ended.err) == (0, "")
    return ended.out


async def test_a_stack_a_plan_and_an_operation_are_the_same(
    api: Api, services: Cluster, env: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "fleet.yml"
    file.write_text(LABEL)
    lines = (await printed("apply", "-f", str(file), "--stack", "fleet", env=env)).splitlines()
    events: list[Any] = list(map(json.loads, lines))
    watched = await api.call("ApplierService_WatchOperation", events[0]["operation_id"])
    assert watched.documents == events[1:]

    operation = (await api.call("ApplierService_GetOperation", events[0]["operation_id"])).document["operation"]
    assert json.loads(await printed("operations", "show", operation["id"], env=env)) == operation

    stack = (await api.call("StackService_GetStack", operation["stack_id"])).document
    resources = (await api.call("StackService_ListResources", operation["stack_id"])).document["resources"]
    shown = json.loads(await printed("stacks", "show", "fleet", env=env))
    assert shown == {**stack, "resources": resources, "owners": [], "users": []}

    # Of a plan that did not run, as the command line adds the ids of created resources to others.
    file.write_text(LABEL.replace("fleet", "other"))
    planned = (await printed("plan", "-f", str(file), "--stack", "other", "--save", env=env)).splitlines()
    plan_id = json.loads(planned[0])["header"]["id"]
    views = [("view", f"PLAN_VIEW_{view}") for view in ("STEPS", "DIFFS", "SUMMARY", "RECORD")]
    plan = await api.call("StackService_GetPlan", plan_id, query=views)
    plan_lines = (await printed("plans", "show", plan_id, env=env)).splitlines()
    assert list(map(json.loads, plan_lines)) == [each["part"] for each in plan.documents]
    assert json.loads(await printed("plans", "list", env=env))[0] == plan.documents[0]["part"]["header"]


async def test_findings_are_those_of_the_parser(api: Api, env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "fleet.yml"
    for text in (LABEL, LABEL.replace("name: fleet}\n", "name: fleet, colour: red}\n"), LABEL.replace("Label", "Labl")):
        file.write_text(text)
        source = {"sources": [{**a_source(text)["sources"][0], "name": str(file)}], "view": ["PACKAGE_VIEW_WARNINGS"]}
        parsed = await api.call("ParserService_ParsePackage", body=source)
        ended = await pkger("validate", str(file), "-o", "json", env=env)
        assert parts(ended.out) == {name: value for each in parsed.documents for name, value in each.items()}
