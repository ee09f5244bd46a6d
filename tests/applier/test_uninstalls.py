"""An uninstall deletes the resources that a stack created, and keeps or deletes the stack, as approved."""

from dataclasses import replace

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import PlanStale, RequestIdReused, RequestInvalid, StackMoved, StackNotFound
from tests.applier.faulty import ItemFault
from tests.applier.world import SUCCEEDED, Case, World, check, end
from tests.apply.packages import an_object, text
from tests.cluster import Record, Shown

KEEP, DELETE = plan_pb2.AFTER_UNINSTALL_KEEP, plan_pb2.AFTER_UNINSTALL_DELETE
SMALL = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"]))
URL = "https://example.com/p.yml"


async def record_of(case: Case) -> Record:
    record = (await case.look()).record
    assert record
    return record


async def with_words(case: Case) -> Record:
    """The record of a stack, with description and URLs."""
    peer, made = case.services.peers["stack"], await record_of(case)
    urls, ref = stack_pb2.StackUrls(urls=[URL]), object_pb2.StackRef(id=made.id)
    request = stack_pb2.UpdateStackRequest(stack=ref, description="text", urls=urls)
    await peer.call(StackServiceStub(peer.channel).UpdateStack, request)
    return await record_of(case)


async def test_a_kept_stack_owns_nothing_and_starts_again(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    before = await with_words(case)

    finished = end(await case.uninstall(after_uninstall=KEEP))

    assert (finished.state, finished.stack_id, finished.generation) == (SUCCEEDED, before.id, before.generation + 1)
    after = await case.look()
    assert after.content == []
    assert after.record
    assert after.record.resources == []
    stack = after.record.stack
    assert (stack.id, stack.name, stack.create_time) == (before.id, before.name, before.stack.create_time)
    assert (stack.description, list(stack.urls)) == ("text", [URL])
    assert (stack.generation, stack.resource_count, list(stack.sources)) == (before.generation + 1, 0, [])
    assert stack.etag != before.stack.etag

    await clear_urls(case)
    again = await case.apply(SMALL)

    assert end(again).counts.creates == 2
    kept = await record_of(case)
    assert (kept.id, kept.generation) == (before.id, before.generation + 2)
    assert {*kept.ids.values()}.isdisjoint(before.ids.values())


async def clear_urls(case: Case) -> None:
    peer, ref = case.services.peers["stack"], object_pb2.StackRef(id=(await record_of(case)).id)
    request = stack_pb2.UpdateStackRequest(stack=ref, urls=stack_pb2.StackUrls())
    await peer.call(StackServiceStub(peer.channel).UpdateStack, request)


async def test_a_second_uninstall_has_nothing_to_do(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    await case.uninstall(after_uninstall=KEEP)
    before = await record_of(case)
    case.driver.heal()

    finished = end(await case.uninstall(after_uninstall=KEEP))

    assert (finished.state, finished.no_change, finished.generation) == (SUCCEEDED, True, before.generation)
    assert case.driver.sent == []
    assert await record_of(case) == before


async def test_a_stack_is_kept_by_default(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = await case.services.plan(stack=case.stack, org=case.org, destroy=True)
    assert plan.header.after_uninstall == KEEP

    assert end(await case.uninstall(after_uninstall=plan_pb2.AFTER_UNINSTALL_UNSPECIFIED)).stack_id

    assert (await record_of(case)).resources == []


async def test_a_deleted_stack_is_gone_and_may_be_deleted_again(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    finished = end(await case.uninstall(after_uninstall=DELETE))
    assert (finished.state, finished.stack_id, finished.no_change) == (SUCCEEDED, "", False)
    assert (await case.look()).record is None

    assert await case.uninstall(after_uninstall=DELETE) == []

    for call in (case.uninstall(after_uninstall=KEEP), planned(case, DELETE)):
        with pytest.raises(StackNotFound):
            await call


async def test_an_uninstalled_stack_is_deleted(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    await case.uninstall(after_uninstall=KEEP)
    plan = await planned(case, DELETE)
    assert (plan.header.no_change, len(plan.steps)) == (False, 0)

    assert end(await case.uninstall(after_uninstall=DELETE)).stack_id == ""

    assert (await case.look()).record is None


async def planned(case: Case, after_uninstall: "plan_pb2.AfterUninstall.ValueType") -> Shown:
    """A stored plan of an uninstall."""
    return await case.services.plan(
        stack=case.stack, org=case.org, store=True, destroy=True, after_uninstall=after_uninstall
    )


async def test_keeping_or_deleting_the_stack_is_part_of_the_approved_plan(faulty: World) -> None:
    """
    The two plans have the same steps and different digests; a stored plan keeps or deletes the stack as it declares.
    """
    case = await faulty.case_with(SMALL)
    keep, delete = await planned(case, KEEP), await planned(case, DELETE)
    assert keep.steps == delete.steps
    assert keep.digest != delete.digest
    assert ((await case.services.stored_plan(keep.name)).header.after_uninstall, delete.header.after_uninstall) == (
        KEEP,
        DELETE,
    )
    with pytest.raises(PlanStale):
        await uninstalled(case, DELETE, keep.digest)

    assert end(await case.apply_plan(keep)).stack_id

    assert (await record_of(case)).resources == []
    with pytest.raises(StackMoved):
        await case.apply_plan(delete)
    assert end(await case.apply_plan(await planned(case, DELETE))).stack_id == ""
    assert (await case.look()).record is None


async def uninstalled(case: Case, after_uninstall: int, digest: str = "") -> None:
    peer, ref = case.services.peers["applier"], object_pb2.StackRef(id=(await record_of(case)).id)
    request = applier_pb2.UninstallStackRequest(
        stack=ref,
        run_options=applier_pb2.RunOptions(expected_plan_digest=digest),
        after_uninstall=after_uninstall,  # type: ignore[arg-type]
    )
    async for _ in peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request):
        pass


async def test_an_unknown_value_is_refused(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    before = await case.look()
    with pytest.raises(RequestInvalid, match="after_uninstall: 7 is not a value to send"):
        await uninstalled(case, 7)
    with pytest.raises(RequestInvalid, match=r"destroy\.after_uninstall: 7 is not a value to send"):
        await planned(case, 7)  # type: ignore[arg-type]
    assert await case.look() == before


async def test_a_request_id_is_for_one_of_both(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    kept = await case.uninstall("r-1", KEEP)
    assert await case.uninstall("r-1", KEEP) == kept
    with pytest.raises(RequestIdReused):
        await case.uninstall("r-1", DELETE)

    deleted = await case.uninstall("r-2", DELETE)

    assert await case.uninstall("r-2", DELETE) == deleted


@pytest.mark.parametrize("after_uninstall", [KEEP, DELETE])
async def test_what_cannot_be_removed_stays_in_the_record(
    faulty: World, after_uninstall: "plan_pb2.AfterUninstall.ValueType"
) -> None:
    case = await faulty.case_with(SMALL)
    steps = len((await planned(case, after_uninstall)).steps)
    at_first = await case.look()
    case.driver.fail({steps - 1: ItemFault.REJECT}, lasting=True)

    events = await case.uninstall(after_uninstall=after_uninstall)

    check(at_first, events, await case.look(), [])
    assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 1)
    [left] = (await record_of(case)).resources
    assert (left.key.name, left.is_pending_delete) == ("raw", True)
    case.driver.heal()
    assert end(await case.uninstall(after_uninstall=after_uninstall)).leftover_count == 0
    after = await case.look()
    assert after.content == []
    assert (after.record is None) is (after_uninstall == DELETE)


async def test_a_kept_stack_hands_over_shared_resources_and_releases_adopted_ones(faulty: World) -> None:
    case = faulty.case()
    create = driver_pb2.CreateResource(kind="Bucket", spec_json='{"name":"raw"}')
    await case.services.mutate(driver_pb2.Mutation(create=create), org=case.org)
    await case.apply(SMALL)
    theirs = replace(case, stack="theirs")
    await theirs.apply(text(an_object("Label", "tag", "red")))

    assert end(await case.uninstall(after_uninstall=KEEP)).state == SUCCEEDED

    assert (await record_of(case)).resources == []
    [tag] = (await record_of(theirs)).resources
    assert tag.origin == object_pb2.ORIGIN_CREATED
    assert sorted(each.display_name for each in (await case.look()).resources) == ["raw", "red"]
