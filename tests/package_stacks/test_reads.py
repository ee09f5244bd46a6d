"""What the plan of a small change reads in a stack of many packages: what is compared, and no more."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.apply.packages import an_object
from tests.cluster import Calls, cluster
from tests.drivers.costly_listing import LISTED, READ, costly_platform
from tests.package_stacks.client import Client, a_label, step_words
from tests.transport import InMemory

NAMES = tuple(f"p{number}" for number in range(8))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A stack of packages, each with a label, two dashboards and a bucket; they require the package ``base``."""
    async with cluster(tmp_path / "data", {"platform": costly_platform}, transport=InMemory()) as services:
        client = Client(services.in_org("team"), tmp_path)
        await publish(client)
        await client.change(f"install {' '.join(NAMES)}")
        LISTED.clear()
        READ.clear()
        yield client


async def publish(client: Client, version: str = "1.0.0", **spec: str) -> None:
    objects = {
        name: [
            a_label(name),
            an_object("Dashboard", "one", "one", ["base.base"], **spec),
            an_object("Dashboard", "two", "two", [name]),
            an_object("Bucket", "raw", f"raw {name}", ["base.base"]),
        ]
        for name in NAMES
    }
    packages = [f"{name} {version} [base]" for name in NAMES]
    new = {"new": [a_label("new")], "board": [an_object("Dashboard", "board", "board")], "data": []}
    await client.publish(*packages, "base 1.0.0", *(f"{each} 1.0.0" for each in new), objects={**objects, **new})


async def test_a_new_label_needs_labels_only(client: Client) -> None:
    assert step_words(await client.plan("install new")) == ["create Label new.new"]
    assert (sorted(LISTED), READ) == (["Label"], [])


async def test_a_new_dashboard_reads_no_dashboard_of_others_by_id(client: Client) -> None:
    """Namesakes of what is created are looked for by one listing."""
    assert step_words(await client.plan("install board")) == ["create Dashboard board.board"]
    assert READ == []


async def test_an_update_reads_its_own_dashboards(client: Client) -> None:
    ids = await client.ids()
    await publish(client, "1.1.0", description="other")
    LISTED.clear()
    plan = await client.plan("update p3")
    assert step_words(plan) == ["update Dashboard p3.one"]
    assert set(READ) == {("Dashboard", ids[f"Dashboard:p3.{each}"]) for each in ("one", "two")}
    assert sorted(LISTED) == ["Bucket", "Label"]


async def test_a_package_without_objects_reads_nothing(client: Client) -> None:
    assert (await client.plan("install data")).steps == []
    assert (LISTED, READ) == ([], [])


async def test_an_update_of_all_reads_each_kind_once(client: Client, calls: Calls) -> None:
    plan = await client.plan("update-all")
    assert plan.no_change
    assert sorted(LISTED) == ["Bucket", "Label"]
    assert len(READ) == len(set(READ)) == 2 * len(NAMES)
    assert calls.count("ReadResources") == 1


async def test_a_request_to_the_parser_is_made_for_each_package_that_changes_only(client: Client, calls: Calls) -> None:
    await publish(client, "1.1.0", description="other")
    calls.methods.clear()
    await client.plan("update p1 p2")
    assert calls.count("ParsePackage") == 2
    calls.methods.clear()
    await client.plan("update base")
    assert calls.count("ParsePackage") == 0
