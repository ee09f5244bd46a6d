"""A platform whose ids are not 16 hex digits: clients may use its ids, and the ids that answers show instead."""

from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import services.drivers.__main__ as platform
from services.gateway.ids import hex_id
from services.platforms import Platform
from services.system import MachineIds
from tests.apply.packages import an_object
from tests.cluster import cluster
from tests.gateway.gateway import client, gateway, settings


class _PathIds(MachineIds):
    """Ids such as ``resource/1``."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def token(self, size: int) -> str:
        return f"resource/{next(self._numbers)}" if size == 8 else super().token(size)


@pytest.fixture(params=["one=embedded/one", "one=embedded/one,two=embedded/two"])
async def session(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of a gateway in front of that platform, which serves one organization or two."""
    opened = partial(platform.opened, platform=Platform("embedded", "embedded", ""), ids=_PathIds())
    async with (
        cluster(tmp_path, {"platform": opened}) as services,
        gateway(settings(tmp_path, PKGER_HTTP_ORGS=request.param), services) as address,
        client(address) as session,
    ):
        yield session


async def sent(session: aiohttp.ClientSession, method: str, path: str, body: Any) -> tuple[int, Any]:
    async with session.request(method, path, json=body) as answer:
        return answer.status, await answer.json()


async def test_resources_are_named_by_either_id(session: aiohttp.ClientSession) -> None:
    async with session.get("/api/v2/orgs?org=one") as answer:
        org = (await answer.json())["orgs"][0]["id"]
    stacks = [(await sent(session, "POST", "/api/v2/stacks", {"orgID": org, "name": name}))[1]["id"] for name in "ab"]
    body = {"orgID": org, "stackID": stacks[0], "template": {"contents": [an_object("Bucket", "raw", "raw")]}}
    _, applied = await sent(session, "POST", "/api/v2/templates/apply", body)
    written = f"{applied['summary']['buckets'][0]['id']:016x}"
    native = next(id_ for id_ in (f"resource/{number}" for number in range(100)) if hex_id(id_) == written)
    for resource_id in (written, written.upper(), native):
        named = {"resources": [{"kind": "Bucket", "id": resource_id}]}
        status, exported = await sent(session, "POST", "/api/v2/templates/export", named)
        assert (status, [each["spec"]["name"] for each in exported]) == (200, ["raw"])
        added = {"additionalResources": [{"kind": "Bucket", "resourceID": resource_id}]}
        status, document = await sent(session, "PATCH", f"/api/v2/stacks/{stacks[0]}", added)
        assert (status, [each["resourceID"] for each in document["events"][-1]["resources"]]) == (200, [written])
        # For the other stack, the error names the owner; it does not say that the resource is missing.
        status, document = await sent(session, "PATCH", f"/api/v2/stacks/{stacks[1]}", added)
        assert (status, document["code"]) == (422, "conflict")
        assert stacks[0] in document["message"]


async def test_the_id_of_no_resource_is_invalid(session: aiohttp.ClientSession) -> None:
    async with session.get("/api/v2/orgs?org=one") as answer:
        org = (await answer.json())["orgs"][0]["id"]
    _, stack = await sent(session, "POST", "/api/v2/stacks", {"orgID": org})
    for resource_id in ("zz", "1" * 15, "0" * 16, "", "x" * 2000):
        for method, path, body in (
            ("POST", "/api/v2/templates/export", {"resources": [{"kind": "Bucket", "id": resource_id}]}),
            (
                "PATCH",
                f"/api/v2/stacks/{stack['id']}",
                {"additionalResources": [{"kind": "Bucket", "resourceID": resource_id}]},
            ),
        ):
            status, document = await sent(session, method, path, body)
            assert (status, document["code"]) == (400, "invalid"), document
            assert "is no id" in document["message"]
