"""Suspended packages: changes of others neither compare nor move their objects."""

import json

from pkger.planner.v1 import package_pb2

from tests.applier.drifting import drift
from tests.applier.history import check_history, roll_back
from tests.applier.world import ROLLED_BACK, SUCCEEDED, end
from tests.apply.packages import an_object
from tests.drivers.client import delete, update
from tests.package_stacks.client import Client, a_label, spec_of, step_words

OBJECTS = {
    "d": [a_label("env"), a_label("other")],
    "p@1.0.0": [an_object("Dashboard", "web", "web", ["d.env"])],
    "p@2.0.0": [an_object("Dashboard", "web", "web", ["d.other"]), an_object("Dashboard", "new", "new", ["d.env"])],
    "q": [an_object("Bucket", "reserved", "_system")],
}


def suspend(name: str) -> package_pb2.PackageChange:
    return package_pb2.PackageChange(suspend=package_pb2.PinnedPackage(name=name))


async def labels(client: Client) -> dict[str, tuple[str, ...]]:
    """The labels of each dashboard."""
    content = (await client.look()).content
    return {json.loads(each[1])["name"]: each[2] for each in content if each[0] == "Dashboard"}


async def install_and_suspend(client: Client) -> None:
    await client.publish("d 1.0.0", "p 1.0.0 [d]", objects=OBJECTS)
    await client.change("install p d")
    await client.change(suspend("d"))
    await client.publish("d 1.0.0", "p 2.0.0 [d]", "q 1.0.0", objects=OBJECTS)


async def test_labels_of_a_suspended_package_are_attached_and_detached(client: Client) -> None:
    await install_and_suspend(client)
    plan = await client.change("update p")
    assert step_words(plan) == [
        "create Dashboard p.new",
        "attach Dashboard p.new d.env",
        "detach Dashboard p.web d.env",
        "attach Dashboard p.web d.other",
    ]
    assert await labels(client) == {"web": ("label of other",), "new": ("label of env",)}
    assert (await drift(client.case)).differences == {}
    assert (await client.plan("update p")).no_change
    await check_history(client.case)
    assert end(await roll_back(client.case, 1)).state == SUCCEEDED
    assert await labels(client) == {"web": ("label of env",)}


async def test_labels_of_a_suspended_package_are_as_before_after_an_undo(faulty: Client) -> None:
    await install_and_suspend(faulty)
    before = await faulty.state()
    plan = await faulty.plan("update p; install q")
    assert (await faulty.run(plan)).state == ROLLED_BACK
    assert await labels(faulty) == {"web": ("label of env",)}
    assert (await faulty.state())[1:3] == before[1:3]


async def test_a_suspended_label_that_differs_or_is_gone_stays_so(client: Client) -> None:
    await install_and_suspend(client)
    ids = await client.ids()
    live = {each.id: each for each in (await client.look()).resources}
    env = {**spec_of(live[ids["Label:d.env"]]), "color": "blue"}
    await client.services.mutate(update("Label", ids["Label:d.env"], env))
    await client.services.mutate(delete("Label", ids["Label:d.other"]))
    plan = await client.change("update p")
    assert step_words(plan) == [
        "create Dashboard p.new", "attach Dashboard p.new d.env", "detach Dashboard p.web d.env",
    ]  # fmt: skip
    assert await labels(client) == {"web": (), "new": ("label of env",)}
