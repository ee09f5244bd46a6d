"""
Applies without a stack: each template gets a stack of its own (docs/http.md, "Which stack an apply without one joins").
"""

import json
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cluster import Cluster
from tests.corpora import corpus_parameters, package_text, packages_in
from tests.gateway.gateway import client, gateway, settings
from tests.gateway.test_applies import ORG, an_object, get

APPLY, STACKS = "/api/v2/templates/apply", "/api/v2/stacks"

QUERY = 'buckets() |> keep(columns: ["name"])'
FIRST = [
    an_object("Variable", "first-var", name="bucket", type="query", language="flux", query=QUERY),
    an_object("Bucket", "first-data"),
    an_object("Dashboard", "first-board", name="First"),
]
SECOND = [
    an_object("Variable", "second-var", name="bucket", type="query", language="flux", query=QUERY),
    an_object("Bucket", "second-data"),
    an_object("Dashboard", "second-board", name="Second"),
]


@dataclass(frozen=True, slots=True)
class Site:
    """A gateway, and the services behind it."""

    http: aiohttp.ClientSession
    services: Cluster

    async def answer(self, contents: Any, source: str, **members: Any) -> tuple[int, Any]:
        """The answer to an apply without a stack."""
        body = {"orgID": ORG, "template": {"sources": [source], "contents": contents}, **members}
        async with self.http.post(APPLY, json=body) as answer:
            return answer.status, await answer.json()

    async def apply(self, contents: Any, source: str) -> Any:
        """Apply without a stack, after a dry run that names the same stack; return the answer."""
        status, dry = await self.answer(contents, source, dryRun=True)
        assert status == 200, dry
        status, done = await self.answer(contents, source)
        assert status == 201, done
        assert dry["stackID"] in ("", done["stackID"])
        return done

    async def stacks(self) -> dict[str, Any]:
        """The stacks by id."""
        return {each["id"]: each for each in (await get(self.http, f"{STACKS}?orgID={ORG}"))["stacks"]}

    async def remove(self, stack: str) -> None:
        """Delete a stack with its resources."""
        async with self.http.delete(f"{STACKS}/{stack}?orgID={ORG}") as answer:
            assert answer.status == 204, await answer.text()

    async def names(self) -> list[tuple[str, str]]:
        """Kinds and display names of the resources on the platform."""
        live = await self.services.resources("example")
        return sorted((each.kind, each.display_name) for each in live)

    async def content(self, stack: str) -> dict[tuple[str, str], tuple[str, frozenset[str]]]:
        """The resources in the record of a stack, by kind and id: spec, and the labels that the record wants."""
        live = {(each.kind, each.id): each for each in await self.services.resources("example")}
        record = await self.services.record(stack_id=stack)
        entries = {(each.key.kind, each.key.name): each for each in record.resources}
        found = {}
        for entry in entries.values():
            resource = live[entry.key.kind, entry.resource_id]
            wanted = {entries[label.kind, label.name].resource_id for label in entry.associations}
            assert wanted <= {*resource.label_ids}, f"{entry.key.name} of {stack} lost a label"
            found[entry.key.kind, entry.resource_id] = resource.spec_json, frozenset(wanted)
        return found


@pytest.fixture
async def site(services: Cluster, tmp_path: Path) -> AsyncIterator[Site]:
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        yield Site(session, services)


def changes(answer: Mapping[str, Any]) -> list[str]:
    """The objects of an answer that are not as the package has them, by name."""
    return [row["templateMetaName"] for _, row in changed(answer)]


def changed(answer: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The rows of an answer whose object is not on the platform as the package has it, each with its kind."""
    rows = [(kind, row) for kind, rows in answer["diff"].items() if kind != "labelMappings" for row in rows]
    return [(kind, row) for kind, row in rows if row["stateStatus"] != "exists" or differs(row["old"], row["new"])]


def differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two sides of a row differ; of the endpoint of a rule, one is a display name, the other metadata.name."""
    return {**old, "endpointName": ""} != {**new, "endpointName": ""}


def existing(answer: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Kinds and display names of the objects of an answer whose resource exists in another form."""
    return {(kind, row["new"]["name"]) for kind, row in changed(answer) if row["stateStatus"] == "exists"}


async def test_removing_a_template_leaves_another_one_whole(site: Site) -> None:
    first, second = await site.apply(FIRST, "a.yml"), await site.apply(SECOND, "b.yml")
    assert first["stackID"] != second["stackID"]
    _, dry = await site.answer(SECOND, "b.yml", dryRun=True)
    assert (dry["stackID"], changes(dry)) == (second["stackID"], [])
    listed = {each["id"]: each["sources"] for each in (await site.stacks()).values()}
    assert listed == {first["stackID"]: ["a.yml"], second["stackID"]: ["b.yml"]}

    await site.remove(second["stackID"])

    assert await site.names() == [("Bucket", "first-data"), ("Dashboard", "First"), ("Variable", "bucket")]
    assert changes(await site.apply(FIRST, "a.yml")) == []
    await site.remove(first["stackID"])
    assert await site.names() == []


async def test_what_the_owner_of_a_shared_resource_leaves_stays_with_its_user(site: Site) -> None:
    first, second = await site.apply(FIRST, "a.yml"), await site.apply(SECOND, "b.yml")

    await site.remove(first["stackID"])

    assert await site.names() == [("Bucket", "second-data"), ("Dashboard", "Second"), ("Variable", "bucket")]
    await site.remove(second["stackID"])
    assert await site.names() == []


@pytest.mark.parametrize("goes", ["first", "second"])
async def test_of_two_templates_that_differ_the_last_apply_wins(site: Site, goes: str) -> None:
    """The stack of the last apply owns the resource, and the other one uses it."""
    theirs = [an_object("Variable", "var", name="bucket", type="constant", values=["b"]), *SECOND[1:]]
    first, second = await site.apply(FIRST, "a.yml"), await site.apply(theirs, "b.yml")
    assert changes(await site.apply(theirs, "b.yml")) == []
    assert changes(await site.apply(FIRST, "a.yml")) == ["first-var"]
    last = await site.apply(theirs, "b.yml")
    assert (changes(last), last["stackID"]) == (["var"], second["stackID"])

    await site.remove({"first": first, "second": second}[goes]["stackID"])

    [variable] = [each for each in await site.services.resources("example") if each.kind == "Variable"]
    assert '"constant"' in variable.spec_json
    await site.remove({"first": second, "second": first}[goes]["stackID"])
    assert await site.names() == []


async def test_two_templates_keep_their_credentials_apart(site: Site) -> None:
    """Their endpoints have one ``metadata.name``, and are two endpoints."""
    secrets = []
    for name in ("one", "two"):
        endpoint = an_object("NotificationEndpointSlack", "chat", name=name, token=f"token of {name}")
        objects = [{**endpoint, "spec": {**endpoint["spec"], "url": "https://chat.example"}}, an_object("Bucket", name)]
        done = await site.apply(objects, f"{name}.json")
        secrets.append(done["summary"]["notificationEndpoints"][0]["notificationEndpoint"]["token"])
        assert changes(await site.apply(json.dumps(objects), f"{name}.json")) == []
    assert len({*secrets}) == len(await site.services.secret_keys("example")) == 2


@pytest.mark.timeout(900)
@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.slow))
async def test_packages_without_stacks_stay_apart(site: Site, folder: Path) -> None:
    packages = {path.stem: package_text(path) for path in packages_in(folder)}
    stacks: dict[str, str] = {}
    contested: set[tuple[str, str]] = set()
    for name, text in packages.items():
        done = await site.apply(text, name)
        stacks[name] = done["stackID"]
        contested |= existing(done)
        again = await site.apply(text, name)
        assert (again["stackID"], changes(again)) == (stacks[name], []), name
    assert len({*stacks.values()}) == len(packages)

    # Only what two templates declare differently changes with each apply.
    for name, text in packages.items():
        again = await site.apply(text, name)
        assert again["stackID"] == stacks[name]
        assert len(existing(again)) == len(changed(again)), name
        assert existing(again) <= contested, name

    content = {name: await site.content(stack) for name, stack in stacks.items()}
    for name in random.Random(0).sample(sorted(packages), len(packages)):
        await site.remove(stacks.pop(name))
        content.pop(name)
        assert {each: await site.content(stack) for each, stack in stacks.items()} == content, name
    assert await site.names() == []
    assert await site.stacks() == {}
