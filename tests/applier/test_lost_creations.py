"""A creation without a response, on a platform that forgets idempotency keys and has incomplete listings."""

import pytest

from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import BLOCKED, SUCCEEDED, Case, World, end
from tests.apply.packages import an_object, text

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
