"""Changes of packages under faults: packages, inventory, revision and platform are those of before, or as planned."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from services.core.errors import TokenStale
from tests.applier.drifting import drift
from tests.applier.faulty import CallFault, ItemFault
from tests.applier.history import check_history
from tests.applier.world import ROLLED_BACK, SUCCEEDED
from tests.apply.packages import a_rule, an_endpoint, an_object
from tests.package_stacks.client import Client

Objects = Mapping[str, Sequence[dict[str, Any]]]

_LABEL = an_object("Label", "env", "env")
_OWN = an_object("Label", "own", "own")
_PAGER = an_endpoint("PagerDuty", "pager", "pager")


def _bucket(display_name: str, *labels: str) -> dict[str, Any]:
    return an_object("Bucket", "web", display_name, labels)


class Situation(NamedTuple):
    """What is published, the first change, what is published then, and the second change."""

    before: Sequence[str]
    first: str
    after: Sequence[str]
    second: str
    objects: Objects


SITUATIONS: Mapping[str, Situation] = {
    "three packages come": Situation(
        ["a 1.0.0"],
        "install a",
        ["b 1.0.0 [a]", "c 1.0.0 [b]"],
        "install c",
        {
            "a": [_LABEL],
            "b": [_OWN, _bucket("web", "a.env", "own")],
            "c": [_PAGER, a_rule("rule", "pager", labels=["b.own"])],
        },
    ),
    "the package with the key leaves": Situation(
        ["p 1.0.0", "q 1.0.0"],
        "install p q",
        [],
        "uninstall p",
        {"p": [_LABEL, _OWN, _bucket("web", "own")], "q": [_LABEL, _bucket("web", "env")]},
    ),
    "the package with the key renames": Situation(
        ["p 1.0.0", "q 1.0.0"],
        "install p q",
        ["p 2.0.0"],
        "update p",
        {
            "p@1.0.0": [_LABEL, _bucket("web", "env")],
            "p@2.0.0": [_LABEL, _bucket("site", "env")],
            "q": [_bucket("web")],
        },
    ),
    "one drops what the other renames": Situation(
        ["p 1.0.0", "q 1.0.0"],
        "install p q",
        ["p 2.0.0", "q 2.0.0"],
        "update p q",
        {
            "p@1.0.0": [_LABEL, _bucket("web", "env")],
            "p@2.0.0": [],
            "q@1.0.0": [_LABEL, _bucket("web", "env")],
            "q@2.0.0": [an_object("Label", "env", "stage"), _bucket("site", "env")],
        },
    ),
}


async def prepared(client: Client, situation: Situation) -> None:
    """Bring the first change about, and publish what the second one needs."""
    await client.publish(*situation.before, objects=situation.objects)
    await client.change(situation.first)
    await client.publish(*situation.after, objects=situation.objects)
    assert client.driver
    client.driver.heal()


async def consistent(client: Client) -> None:
    await check_history(client.case)
    assert (await drift(client.case)).differences == {}


@pytest.mark.parametrize("name", SITUATIONS)
async def test_a_refused_write_leaves_all_packages_as_they_were(faulty: Client, name: str) -> None:
    """Each write in turn; after the seal, deletions are left over and the packages are as planned."""
    situation, driver = SITUATIONS[name], faulty.driver
    assert driver
    await prepared(faulty, situation)
    before, packages, ids = (await faulty.look()).content, await faulty.installed(), await faulty.ids()
    number = 0
    while True:
        plan = await faulty.plan(situation.second)
        if number >= len(plan.steps):
            break
        driver.fail({number: ItemFault.REJECT}, lasting=True)
        finished = await faulty.run(plan)
        driver.heal()
        if finished.state == SUCCEEDED:
            # Only a deletion follows the seal.
            assert finished.leftover_count
            break
        assert finished.state == ROLLED_BACK
        assert ((await faulty.look()).content, await faulty.installed()) == (before, packages)
        assert (await faulty.ids()).keys() == ids.keys()
        await consistent(faulty)
        number += 1
    if number >= len(plan.steps):
        assert (await faulty.run(plan)).state == SUCCEEDED
    await faulty.change("update-all")
    assert (await faulty.plan("update-all")).no_change
    await consistent(faulty)


@pytest.mark.parametrize("name", SITUATIONS)
async def test_an_interrupted_change_is_ended_by_the_next_applier(faulty: Client, name: str) -> None:
    situation, driver = SITUATIONS[name], faulty.driver
    assert driver
    await prepared(faulty, situation)
    plan = await faulty.plan(situation.second)
    if not plan.steps:
        pytest.fail("the situation has no step to interrupt")
    driver.fail(calls={0: CallFault.CUT_OFF})
    with pytest.raises(TokenStale):
        await faulty.run(plan)
    assert (await faulty.case.settled()).state == SUCCEEDED
    driver.heal()
    assert (await faulty.plan("update-all")).no_change
    await consistent(faulty)


LEFTOVERS = {"p@1.0.0": [_LABEL, _bucket("web")], "p@2.0.0": [_LABEL], "z": [_OWN]}


async def left_over(client: Client, words: str) -> None:
    """Apply a change whose deletion of a bucket is refused after the seal."""
    assert client.driver
    await client.publish("p 1.0.0", objects=LEFTOVERS)
    await client.change("install p")
    await client.publish("p 2.0.0", "z 1.0.0", objects=LEFTOVERS)
    plan = await client.plan(words)
    [number] = [each.number for each in plan.steps if each.key.kind == "Bucket"]
    client.driver.fail({number: ItemFault.REJECT}, lasting=True)
    finished = await client.run(plan)
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 1)
    client.driver.heal()


async def test_a_deletion_that_is_left_over_is_tried_again_when_its_package_is_gone(faulty: Client) -> None:
    """With any plan of packages of the stack."""
    await left_over(faulty, "uninstall p")
    assert await faulty.versions() == {}
    plan = await faulty.change("install z")
    assert [str(each.key) for each in plan.steps if each.key.kind == "Bucket"] == ["Bucket 'p.web'"]
    assert {each[0] for each in (await faulty.look()).content} == {"Label"}
    await consistent(faulty)


async def test_a_deletion_that_is_left_over_waits_for_a_plan_of_its_package(faulty: Client) -> None:
    await left_over(faulty, "update p")
    plan = await faulty.change("install z")
    assert not [each for each in plan.steps if each.key.kind == "Bucket"]
    assert "Bucket" in {each[0] for each in (await faulty.look()).content}
    await faulty.change("install p")
    assert {each[0] for each in (await faulty.look()).content} == {"Label"}
    await consistent(faulty)


async def test_a_package_comes_back_while_the_deletion_of_its_bucket_is_left_over(faulty: Client) -> None:
    await left_over(faulty, "update p")
    await faulty.publish("p 1.0.0", "z 1.0.0", objects=LEFTOVERS)
    before = [each.id for each in (await faulty.look()).resources if each.kind == "Bucket"]
    await faulty.change("install p@1.0.0", allow_downgrade=True)
    assert [each.id for each in (await faulty.look()).resources if each.kind == "Bucket"] == before
    await consistent(faulty)
