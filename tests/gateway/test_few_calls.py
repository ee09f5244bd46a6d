"""How many calls an apply over HTTP takes."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.cluster import Calls, Cluster
from tests.gateway.gateway import client, gateway, settings
from tests.gateway.test_applies import APPLY, BUCKET, LABEL, SLACK, body_of, post


@pytest.fixture
async def http(services: Cluster, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        yield session


async def test_calls(http: aiohttp.ClientSession, services: Cluster, calls: Calls) -> None:
    assert (await post(http, APPLY, body_of(SLACK)))[0] == 201
    calls.methods.clear()
    assert (await post(http, APPLY, body_of(LABEL, BUCKET)))[0] == 201
    print(len(calls.methods), calls.methods)
    calls.methods.clear()
    assert (await post(http, APPLY, body_of(LABEL, BUCKET)))[0] == 201
    print(len(calls.methods), calls.methods)
    calls.methods.clear()
    literal = {**SLACK, "spec": {**SLACK["spec"], "token": "x"}}
    assert (await post(http, APPLY, body_of(literal)))[0] == 201
    print(len(calls.methods), calls.methods)
