"""
Resources of several stacks: one stack owns each, the others use it (docs/reference/engine.md, "Shared resources").
"""

import asyncio
import random
from collections.abc import Collection
from dataclasses import replace

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import InUse, PlanStale, ResourceOwned, SharedDiffers
from tests.applier.test_cancel import in_the_middle_of
from tests.applier.test_claims import reasons
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import an_object, text
from tests.drivers.client import detach, update

SENSORS = an_object("Label", "l", "sensors")
RAW = an_object("Bucket", "b", "raw", ["l"])
THEIRS = an_object("Label", "tag", "sensors")

OWNED, SHARED = object_pb2.ORIGIN_CREATED, object_pb2.ORIGIN_SHARED
ADOPTED = object_pb2.ORIGIN_ADOPTED


def beside(case: Case, stack: str) -> Case:
    """Another stack in the same organization."""
    return replace(case, stack=stack)


async def origins(case: Case) -> dict[str, int]:
    """The record of a stack: names of objects with their origins; empty without a stack."""
    record = (await case.look()).record
    return {entry.key.name: entry.origin for entry in record.resources} if record else {}


async def names(case: Case) -> list[tuple[str, tuple[str, ...]]]:
    """The resources on the platform: names with the names of labels."""
    return sorted((spec, labels) for _, spec, labels, _ in await named(case))


async def named(case: Case) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    snapshot = await case.look()
    return [
        (kind, spec.split('"name":"')[1].split('"')[0], labels, refs) for kind, spec, labels, refs in snapshot.content
    ]


async def ended(case: Case, *objects: dict[str, object]) -> operation_pb2.Finished:
    """The end of an apply of *objects*."""
    return end(await case.apply(text(*objects)))


async def test_a_resource_of_another_stack_is_used_and_not_written(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")

    assert (await ended(theirs, THEIRS)).state == SUCCEEDED

    assert case.driver.sent == []
    assert (await origins(case), await origins(theirs)) == ({"l": OWNED}, {"tag": SHARED})
    assert (await ended(theirs, THEIRS)).no_change
    assert (await ended(case, SENSORS)).no_change


async def test_all_differences_are_reported_at_once_with_owner_and_fields(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, an_object("Bucket", "b", "raw", description="mine")))
    package = text(
        an_object("Label", "tag", "sensors", color="#ff0000"), an_object("Bucket", "raw", "raw", description="theirs")
    )

    with pytest.raises(SharedDiffers) as caught:
        await beside(case, "theirs").apply(package)

    assert caught.value.metadata["count"] == "2"
    assert caught.value.metadata["objects"].split("\n") == [
        "Bucket 'raw' shares Bucket 'raw' of stack 's', where description is \"mine\" and not \"theirs\"",
        "Label 'tag' shares Label 'sensors' of stack 's', where color is \"\" and not \"#ff0000\"",
    ]
    assert (await beside(case, "theirs").look()).record is None


@pytest.mark.parametrize("way", ["leaves the package", "uninstall"])
async def test_a_resource_that_its_owner_removes_belongs_to_the_oldest_user(faulty: World, way: str) -> None:
    case = await faulty.case_with(text(SENSORS))
    second, third = beside(case, "second"), beside(case, "third")
    for each in (second, third):
        await ended(each, THEIRS)
    before = (await second.look()).record

    plan = await case.plan(text(an_object("Label", "other", "other")))
    assert plan.warnings == [
        "Label 'l' stays, as stack 'second' uses it; so does stack 'third': stack 'second' becomes its owner"
    ]
    finished = end(await case.uninstall() if way == "uninstall" else await case.apply_plan(plan))

    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0)
    assert [(await origins(each)).get("tag") for each in (second, third)] == [OWNED, SHARED]
    after = (await second.look()).record
    assert before
    assert after
    assert after.stack.generation == before.stack.generation + 1
    assert (await ended(second, THEIRS)).no_change
    for each in (second, third):
        assert end(await each.uninstall()).state == SUCCEEDED
    assert ("sensors", ()) not in await names(case)


async def test_a_stored_plan_of_an_heir_is_stale(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    plan = await theirs.plan(text(THEIRS, an_object("Label", "more", "more")))
    await case.uninstall()

    with pytest.raises(Exception, match="has moved from generation 1 to 2"):
        await theirs.apply_plan(plan)


async def test_what_was_adopted_stays_adopted_with_its_heir(faulty: World) -> None:
    case = faulty.case()
    creation = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"sensors"}')
    await case.driver.change(case.org, driver_pb2.Mutation(create=creation))
    await ended(case, SENSORS)
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)

    await case.uninstall()

    assert await origins(theirs) == {"tag": ADOPTED}
    await theirs.uninstall()
    assert await names(case) == [("sensors", ())]


async def test_a_resource_that_a_user_removes_stays(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS, RAW | {"metadata": {"name": "mine"}, "spec": {"name": "mine"}})

    events = await theirs.uninstall()

    assert events.plan.warnings == ["Label 'tag' belongs to stack 's', and stays"]
    assert end(events).state == SUCCEEDED
    assert await names(case) == [("sensors", ())]
    assert await origins(case) == {"l": OWNED}


async def test_the_owner_changes_what_others_use_and_their_next_plan_says_so(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)

    changed = await case.apply(text(an_object("Label", "l", "sensors", color="#000001")))

    assert end(changed).state == SUCCEEDED
    assert changed.plan.warnings == ["Label 'l' is used by stack 'theirs': the change is theirs as well"]
    with pytest.raises(SharedDiffers, match='of stack \'s\', where color is "#000001" and not ""'):
        await theirs.apply(text(THEIRS))


async def test_a_user_that_wants_something_else_gives_its_object_other_names(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    another = "give it another metadata.name and display name"

    with pytest.raises(SharedDiffers, match=f'where name is "sensors" and not "own".*{another}'):
        await theirs.apply(text(an_object("Label", "tag", "own")))

    assert (await ended(theirs, an_object("Label", "own", "own"))).state == SUCCEEDED
    assert await origins(theirs) == {"own": OWNED}
    assert await origins(case) == {"l": OWNED}


async def test_a_user_follows_the_name_and_not_the_resource_that_had_it(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    renamed = an_object("Label", "l", "probes")
    await ended(case, renamed)
    with pytest.raises(SharedDiffers, match='name is "probes" and not "sensors"'):
        await theirs.apply(text(THEIRS))
    await ended(case, renamed, an_object("Label", "new", "sensors"))

    finished = await ended(theirs, THEIRS)

    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0)
    mine, used = (await case.look()).record, (await theirs.look()).record
    assert mine
    assert used
    ids = {entry.key.name: entry.resource_id for entry in mine.resources}
    assert [(entry.resource_id, entry.origin) for entry in used.resources] == [(ids["new"], SHARED)]
    assert (await ended(theirs, THEIRS)).no_change
    # Only its owner has the resource that it used before.
    assert end(await case.uninstall()).state == SUCCEEDED
    assert await origins(theirs) == {"tag": OWNED}
    assert await names(case) == [("sensors", ())]


async def test_an_association_is_removed_when_no_record_has_it(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, RAW))
    theirs = beside(case, "theirs")
    more = an_object("Label", "more", "more")
    await ended(theirs, THEIRS, more, an_object("Bucket", "raw", "raw", ["tag", "more"]))
    assert ("raw", ("more", "sensors")) in await names(case)

    # The package of the owner no longer has the label, but the package of the user has it.
    assert (await ended(case, SENSORS, an_object("Bucket", "b", "raw"))).state == SUCCEEDED
    assert ("raw", ("more", "sensors")) in await names(case)
    # Now no package has it; only the package of the user has the other label.
    assert (await ended(theirs, THEIRS, more, an_object("Bucket", "raw", "raw", ["more"]))).state == SUCCEEDED
    assert ("raw", ("more",)) in await names(case)
    await theirs.uninstall()
    assert await names(case) == [("raw", ()), ("sensors", ())]


async def test_what_is_used_is_neither_replaced_nor_deleted(faulty: World) -> None:
    """Case 5: its deletion was planned before another stack used it."""
    case = await faulty.case_with(text(SENSORS, RAW))
    theirs = beside(case, "theirs")
    plan = await case.plan(text(an_object("Label", "other", "other")))
    await ended(theirs, THEIRS)

    refused = await case.apply_plan(plan)

    assert (end(refused).state, reasons(refused)) == (ROLLED_BACK, [operation_pb2.REJECTION_REASON_IN_USE])
    assert "is used by stack 'theirs'" in end(refused).cause
    assert "plan again" in end(refused).cause
    assert ("raw", ("sensors",)) in await names(case)
    assert ("sensors", ()) in await names(case)
    again = await case.apply(text(an_object("Label", "other", "other")))
    assert end(again).state == SUCCEEDED
    assert await origins(theirs) == {"tag": OWNED}
    assert await names(case) == [("other", ()), ("sensors", ())]


async def test_a_detachment_that_was_planned_before_another_record_wants_it_is_refused(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, RAW))
    theirs = beside(case, "theirs")
    plan = await case.plan(text(SENSORS, an_object("Bucket", "b", "raw")))
    await ended(theirs, THEIRS, an_object("Bucket", "raw", "raw", ["tag"]))

    refused = await case.apply_plan(plan)

    assert (end(refused).state, reasons(refused)) == (ROLLED_BACK, [operation_pb2.REJECTION_REASON_IN_USE])
    assert ("raw", ("sensors",)) in await names(case)


@pytest.mark.parametrize("who", ["another stack", "a person"])
async def test_a_label_that_was_detached_since_the_plan_is_not_recorded(faulty: World, who: str) -> None:
    """The use was planned before the label was detached, and is claimed after that."""
    case = await faulty.case_with(text(SENSORS, RAW))
    theirs = beside(case, "theirs")
    wanted = text(THEIRS, an_object("Bucket", "raw", "raw", ["tag"]))
    # The planner asks first, then the applier.
    gate = case.driver.gate_description(2)
    applying = asyncio.create_task(theirs.apply(wanted))
    await gate.reached.wait()
    if who == "a person":
        ids = dict((await case.look()).ids)
        await case.driver.change(case.org, detach("Bucket", ids["Bucket"], ids["Label"]))
    else:
        assert (await ended(case, SENSORS, an_object("Bucket", "b", "raw"))).state == SUCCEEDED

    gate.opened.set()
    refused = end(await applying)

    assert (refused.state, refused.cause.split(". ")[-1]) == (
        ROLLED_BACK,
        "What changed: Bucket 'raw' lost Label 'tag'",
    )
    assert await origins(theirs) == {}
    assert end(await theirs.apply(wanted)).state == SUCCEEDED
    assert ("raw", ("sensors",)) in await names(case)


async def test_an_adopted_resource_that_was_deleted_since_the_plan_is_not_recorded(faulty: World) -> None:
    case = faulty.case()
    theirs = beside(case, "theirs")
    creation = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"sensors"}')
    await case.driver.change(case.org, driver_pb2.Mutation(create=creation))
    gate = case.driver.gate_description(2)
    applying = asyncio.create_task(theirs.apply(text(THEIRS)))
    await gate.reached.wait()
    await ended(case, SENSORS)
    await ended(case, an_object("Label", "other", "other"))

    gate.opened.set()
    refused = end(await applying)

    assert (refused.state, refused.cause.split(". ")[-1]) == (ROLLED_BACK, "What changed: Label 'tag' is gone")
    assert await names(case) == [("other", ())]


async def test_what_is_relied_on_is_read_before_anything_is_written(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, RAW))
    theirs = beside(case, "theirs")
    gate = case.driver.gate_description(2)
    wanted = text(THEIRS, an_object("Bucket", "raw", "raw", ["tag"]))
    applying = asyncio.create_task(theirs.apply(wanted))
    await gate.reached.wait()
    case.driver.hide(look=case.driver.looks)
    gate.opened.set()

    refused = end(await applying)

    assert (refused.state, case.driver.calls) == (ROLLED_BACK, 0)
    assert "what the plan relies on cannot be read: " in refused.cause
    case.driver.heal()
    assert end(await theirs.apply(wanted)).state == SUCCEEDED


async def test_what_is_being_deleted_cannot_be_used(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, an_object("Label", "m", "more")))
    events, mine, opened = await in_the_middle_of(case, 0, text(an_object("Label", "m", "more")))

    with pytest.raises(ResourceOwned, match=f"{events[0].operation_id} of stack 's' .* claims until its end"):
        await beside(case, "theirs").apply(text(THEIRS, an_object("Label", "new", "new")))

    opened.set()
    await mine
    assert end(events).state == SUCCEEDED
    assert (await ended(beside(case, "theirs"), THEIRS)).state == SUCCEEDED


async def test_what_is_being_used_cannot_be_deleted(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS, an_object("Label", "m", "more")))
    plan = await case.plan(text(an_object("Label", "m", "more")))
    theirs = beside(case, "theirs")
    events, using, opened = await in_the_middle_of(theirs, 0, text(THEIRS, an_object("Label", "new", "new")))

    refused = await case.apply_plan(plan)

    assert end(refused).state == ROLLED_BACK
    assert f"is used by operation {events[0].operation_id} of stack 'theirs'" in end(refused).cause
    opened.set()
    await using
    assert end(events).state == SUCCEEDED


async def test_a_user_that_becomes_the_owner_of_what_it_drops_deletes_it_next_time(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS, an_object("Label", "own", "own"))
    case.driver.heal()
    events, dropping, opened = await in_the_middle_of(theirs, 0, text(an_object("Label", "other", "other")))

    assert end(await case.uninstall()).state == SUCCEEDED

    opened.set()
    await dropping
    finished = end(events)
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 1)
    assert finished.cause == "Label 'tag' stays in the record: no other stack has it or its labels any more"
    record = (await theirs.look()).record
    assert record
    assert {entry.key.name: entry.is_pending_delete for entry in record.resources} == {"other": False, "tag": True}
    assert (await ended(theirs, an_object("Label", "other", "other"))).state == SUCCEEDED
    assert await names(case) == [("other", ())]


async def test_owner_and_user_that_remove_it_at_once_leave_nothing(faulty: World) -> None:
    """The user, which is uninstalled, becomes the owner meanwhile."""
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS, an_object("Label", "own", "own"))
    case.driver.heal()
    gate = case.driver.gate(0)
    leaving = asyncio.create_task(theirs.uninstall())
    await gate.reached.wait()

    assert end(await case.uninstall()).state == SUCCEEDED

    gate.opened.set()
    assert end(await leaving).leftover_count == 1
    assert end(await theirs.uninstall()).state == SUCCEEDED
    assert await names(case) == []
    assert (await theirs.look()).record is None


async def test_without_a_stack_one_uses_and_keeps_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    stackless = beside(case, "")

    assert (await ended(stackless, THEIRS, an_object("Bucket", "raw", "raw", ["tag"]))).state == SUCCEEDED

    assert await names(case) == [("raw", ("sensors",)), ("sensors", ())]
    with pytest.raises(SharedDiffers):
        await stackless.apply(text(an_object("Label", "tag", "sensors", color="#000001")))


async def test_a_replacement_of_what_others_use_is_refused(faulty: World) -> None:
    case = await faulty.case_with(text(an_object("Bucket", "b", "raw", schemaType="implicit")))
    await ended(beside(case, "theirs"), an_object("Bucket", "raw", "raw"))

    with pytest.raises(InUse, match="would be replaced, as schemaType cannot change, but stack 'theirs' uses it"):
        await case.apply(text(an_object("Bucket", "b", "raw", schemaType="explicit")))


async def test_a_stored_use_of_a_resource_without_an_owner_is_stale(faulty: World) -> None:
    case = faulty.case()
    creation = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"sensors"}')
    await case.driver.change(case.org, driver_pb2.Mutation(create=creation))
    await ended(case, SENSORS)
    plan = await beside(case, "theirs").plan(text(THEIRS))
    # It existed before the stack, so it stays, without an owner.
    await case.uninstall()

    with pytest.raises(PlanStale, match="which no stack owns any more"):
        await beside(case, "theirs").apply_plan(plan)


async def test_a_deleted_shared_resource_is_created_by_the_first_apply(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    [label] = (await case.look()).resources
    deletion = driver_pb2.DeleteResource(kind="Label", id=label.id)
    await case.services.mutate(driver_pb2.Mutation(delete=deletion), org=case.org)

    assert (await ended(theirs, THEIRS)).state == SUCCEEDED
    assert await origins(theirs) == {"tag": OWNED}
    assert (await ended(case, SENSORS)).state == SUCCEEDED
    assert await origins(case) == {"l": SHARED}
    assert await names(case) == [("sensors", ())]


@pytest.mark.parametrize("is_used", [True, False])
async def test_a_plan_announces_the_next_owner_of_a_deleted_resource(faulty: World, is_used: bool) -> None:
    """If the user removes it before the apply, nothing is left, and there is nothing to do."""
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    [label] = (await case.look()).resources
    deletion = driver_pb2.DeleteResource(kind="Label", id=label.id)
    await case.services.mutate(driver_pb2.Mutation(delete=deletion), org=case.org)

    plan = await case.plan(text(an_object("Label", "other", "other")))
    assert plan.warnings == [
        "Label 'l' is gone from the platform, and stack 'theirs' uses it: stack 'theirs' becomes its owner"
    ]
    if not is_used:
        await theirs.uninstall()
    finished = end(await case.apply_plan(plan))
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0)
    assert await origins(case) == {"other": OWNED}
    assert await origins(theirs) == ({"tag": OWNED} if is_used else {})
    if is_used:
        assert (await ended(theirs, THEIRS)).state == SUCCEEDED
        assert ("sensors", ()) in await names(case)


async def test_an_edit_of_a_shared_resource_is_reported_to_its_users(faulty: World) -> None:
    case = await faulty.case_with(text(SENSORS))
    theirs = beside(case, "theirs")
    await ended(theirs, THEIRS)
    [label] = (await case.look()).resources
    await case.services.mutate(update("Label", label.id, {"name": "sensors", "color": "#000009"}), org=case.org)

    with pytest.raises(SharedDiffers):
        await theirs.apply(text(THEIRS))
    assert (await ended(case, SENSORS)).state == SUCCEEDED
    assert (await ended(theirs, THEIRS)).no_change


@pytest.mark.parametrize("seed", range(3))
async def test_shared_packages_come_and_go_in_any_order(faulty: World, seed: int) -> None:
    """Case 16 with few stacks: nothing is left, and no stack lacks a resource at any time."""
    case, rng = faulty.case(), random.Random(seed)
    stacks = [beside(case, f"s{number}") for number in range(6)]
    wanted = {each.stack: sorted(rng.sample(range(5), 3)) for each in stacks}

    def package(stack: str) -> str:
        labels = [an_object("Label", f"l{number}", f"label {number}") for number in wanted[stack]]
        bucket = an_object("Bucket", "b", "raw", [each["metadata"]["name"] for each in labels])
        return text(*labels, bucket)

    async def lacks_nothing(of: Collection[Case]) -> None:
        there = dict(await names(case))
        for each in of:
            assert {f"label {number}" for number in wanted[each.stack]} <= set(there["raw"]) & there.keys(), each.stack

    for each in stacks:
        assert end(await each.apply(package(each.stack))).state == SUCCEEDED
    await lacks_nothing(stacks)
    for each in stacks:
        assert end(await each.apply(package(each.stack))).no_change
    rng.shuffle(stacks)
    while stacks:
        leaving, stacks = stacks[:2], stacks[2:]
        again = list(leaving)
        for _ in range(5):
            results = await asyncio.gather(*(each.uninstall() for each in again), return_exceptions=True)
            again = [each for each in again if (await each.look()).record]
            await lacks_nothing(stacks)
            if not again:
                break
        assert not again, results
    assert await names(case) == []
