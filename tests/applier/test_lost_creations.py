"""A creation without a response, on a platform that forgets idempotency keys and has incomplete listings."""

from dataclasses import replace
from pathlib import Path

import pytest

from services.core.errors import TokenStale
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.test_cancel import in_the_middle_of
from tests.applier.world import BLOCKED, QUICK, SUCCEEDED, Case, World, end, world
from tests.apply.packages import an_object, text
from tests.drivers.client import attach

TASK = text(an_object("Task", "roll", "roll", every="1h", query="buckets()"))
BUCKET = text(an_object("Bucket", "logs", "logs"))
SEARCHED, NAMED = pytest.param(TASK, 2, id="searched"), pytest.param(BUCKET, 1, id="named")
"""A package, and the read that first looks up its creation: repeatable names are also listed before it is sent."""


def lost(faulty: World) -> Case:
    """A case whose first creation takes effect and gets no response."""
    faulty.driver.memory = Memory.NOTHING
    case = faulty.case()
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    return case


async def has_one(case: Case) -> bool:
    """Whether there is one resource, which the stack owns."""
    now = await case.look()
    return len(now.ids) == 1 and set(now.recorded.values()) == now.ids


@pytest.mark.parametrize(("package", "look"), [SEARCHED, NAMED])
async def test_it_is_found_in_the_second_listing(faulty: World, package: str, look: int) -> None:
    case = lost(faulty)
    case.driver.lack(look)
    assert end(await case.apply(package)).state == SUCCEEDED
    assert len(case.driver.sent) == 1
    assert await has_one(case)


async def test_a_deleted_resource_in_a_stale_listing_is_not_adopted(faulty: World) -> None:
    """The deleted resource is equal; the listing lacks the new one."""
    case = await faulty.case_with(TASK)
    before = (await case.look()).resources
    assert end(await case.uninstall()).state == SUCCEEDED
    faulty.driver.memory = Memory.NOTHING
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    looks = case.driver.looks
    case.driver.list_old({looks + 2: before})
    assert end(await case.apply(TASK)).state == SUCCEEDED
    assert await has_one(case)


@pytest.mark.parametrize("package", [TASK, BUCKET])
async def test_it_is_sent_again_once_two_listings_agree(faulty: World, package: str) -> None:
    case = lost(faulty)
    case.driver.fail({0: ItemFault.LOSE_REQUEST})
    assert end(await case.apply(package)).state == SUCCEEDED
    assert len(case.driver.sent) == 2
    assert await has_one(case)


async def test_a_taken_name_leads_to_another_lookup(faulty: World) -> None:
    """Both listings lacked it, so it was sent again, and rejected."""
    case = lost(faulty)
    case.driver.lack(1, 2)
    assert end(await case.apply(BUCKET)).state == SUCCEEDED
    assert len(case.driver.sent) == 2
    assert await has_one(case)


async def test_a_taken_name_that_is_never_listed_blocks_the_operation(faulty: World) -> None:
    case = lost(faulty)
    case.driver.lack(*range(1, 20))
    events = await case.apply(BUCKET)
    assert end(events).state == BLOCKED
    [step] = (await case.operation(events[0].operation_id)).blocked_steps
    assert "reports its name as taken, but lists no resource of that name" in step.message
    case.driver.heal()
    assert (await case.recover(events[0].operation_id))[-1].finished.state == SUCCEEDED
    assert await has_one(case)


async def test_it_is_not_sent_again_while_another_operation_detaches_a_label_from_it(tmp_path: Path) -> None:
    """A person attached a label of another stack to the resource before the outcome of its creation was known."""
    async with world(tmp_path, replace(QUICK, recovery=2.0)) as faulty:
        faulty.driver.memory = Memory.NOTHING
        theirs = await faulty.case_with(text(an_object("Label", "l", "sensors")))
        case = replace(theirs, stack="mine")
        case.driver.fail(calls={0: CallFault.CUT_OFF})
        stream = case.events(TASK)
        operation = (await anext(stream)).operation_id
        with pytest.raises(TokenStale):
            [event async for event in stream]
        ids = dict((await case.look()).ids)
        await case.driver.change(case.org, attach("Task", ids["Task"], ids["Label"]))
        case.driver.heal()
        _, detaching, opened = await in_the_middle_of(theirs, 2, text(an_object("Dashboard", "d", "board")))

        # The recovery loop takes the operation over.
        blocked = [event async for event in case.watch(operation)][-1].finished

        opened.set()
        assert end(await detaching).state == SUCCEEDED
        assert blocked.state == BLOCKED
        assert (await case.recover(operation))[-1].finished.state == SUCCEEDED
        assert {key[0]: id_ for key, (_, id_) in (await case.look()).recorded.items()} == {"Task": ids["Task"]}
        assert [kind for kind, _ in (await case.look()).ids].count("Task") == 1
