"""How many calls an apply over HTTP takes."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cluster import Calls, Cluster
from tests.gateway.gateway import client, gateway, settings
from tests.gateway.test_applies import APPLY, BUCKET, LABEL, SLACK, body_of, post


@pytest.fixture
async def http(services: Cluster, tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    async with gateway(settings(tmp_path), services) as address, client(address) as session:
        yield session


async def applied(http: aiohttp.ClientSession, calls: Calls, *objects: Any) -> None:
    """Apply *objects*; *calls* then has the calls of this apply."""
    calls.methods.clear()
    assert (await post(http, APPLY, body_of(*objects)))[0] == 201
    await calls.ended("ApplyPlan")


async def test_a_first_apply_of_two_objects_takes_few_calls(http: aiohttp.ClientSession, calls: Calls) -> None:
    await applied(http, calls, SLACK)
    await applied(http, calls, LABEL, BUCKET)
    assert sorted(calls.methods) == [
        "AdvanceOperation",
        "AdvanceOperation",
        "ApplyPlan",
        "BeginOperation",
        "FindNamelessStacks",
        "FinishOperation",
        # For the plan, and before the operation sends anything.
        "ListResources",
        "ListResources",
        # The token of the operation, labels, and buckets.
        "Mutate",
        "Mutate",
        "Mutate",
        "ParsePackage",
        "PlanStandalonePackage",
        "PrepareSpecs",
        "StorePlan",
    ]


async def test_an_apply_with_nothing_to_do_takes_few_calls(http: aiohttp.ClientSession, calls: Calls) -> None:
    await applied(http, calls, LABEL, BUCKET)
    await applied(http, calls, LABEL, BUCKET)
    assert sorted(calls.methods) == [
        "ApplyPlan",
        "BeginOperation",
        "FindNamelessStacks",
        "FinishOperation",
        "ListResources",
        "ParsePackage",
        "PlanStandalonePackage",
        "StorePlan",
    ]


async def test_credentials_take_no_second_parse_and_plan(http: aiohttp.ClientSession, calls: Calls) -> None:
    literal = {**SLACK, "spec": {**SLACK["spec"], "token": "a-token"}}
    assert (await post(http, APPLY, body_of(literal)))[0] == 201
    assert (calls.count("ParsePackage"), calls.count("PlanStandalonePackage"), calls.count("CreatePlan")) == (1, 1, 0)
