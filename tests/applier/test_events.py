"""The event stream of an operation, from its first event to its last."""

import pytest
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core.errors import PlanStale, SourceUndecodable, StackNotFound
from tests.applier.faulty import ItemFault, Memory
from tests.applier.packages import FRESH, MIXED
from tests.applier.world import SUCCEEDED, Case, World, end, lines
from tests.apply.packages import an_object, text
from tests.cluster import Calls, InvalidPackage

SMALL = text(
    an_object("Label", "red", "red"),
    an_object("Bucket", "raw", "raw", ["red"]),
    an_object("Dashboard", "cpu", "cpu"),
)
MADE = "3 creates, 1 attaches"


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NOTHING])
async def test_an_apply_reports_its_stages_and_steps(faulty: World, memory: Memory) -> None:
    """Also where the resources are listed before a creation, which stores what waits for the next write."""
    faulty.driver.memory = memory
    assert lines(await faulty.case().apply(SMALL)) == [
        "accepted 4 steps",
        "stage 0 labels: 1",
        ["done: create Label red"],
        "stage 1 buckets, dashboards: 2",
        ["done: create Bucket raw", "done: create Dashboard cpu"],
        "stage 2 associations: 1",
        ["done: attach Bucket raw red"],
        ["SUCCEEDED", MADE],
    ]


async def test_a_new_operation_is_named_before_it_has_a_plan(faulty: World) -> None:
    case = faulty.case()
    peer = faulty.services.peers["applier"]
    stream = peer.stream(ApplierServiceStub(peer.channel).Apply, case.request("hunter2: 1\nhunter2: 2\n"))
    begun = await anext(stream)
    assert (begun.WhichOneof("event"), begun.seq) == ("begun", 0)
    with pytest.raises(SourceUndecodable):
        await anext(stream)
    operation = await case.operation(begun.operation_id)
    assert (operation.state, operation.plan_id) == (operation_pb2.OPERATION_STATE_FAILED, "")
    assert [event async for event in case.watch(begun.operation_id)] == []


async def test_a_repeated_request_names_the_first_operation(faulty: World) -> None:
    case = faulty.case()
    peer = faulty.services.peers["applier"]
    request = case.request(SMALL)
    request.request_id = "r"
    first, second = [
        [event async for event in peer.stream(ApplierServiceStub(peer.channel).Apply, request)] for _ in range(2)
    ]
    assert [events[0].WhichOneof("event") for events in (first, second)] == ["begun", "begun"]
    assert second[0].operation_id == first[0].operation_id
    assert second[1:] == first[1:]


async def test_a_package_that_breaks_rules_has_only_such_events_after_the_first(faulty: World) -> None:
    case = faulty.case()
    peer = faulty.services.peers["applier"]
    request = case.request(text(an_object("Bucket", "raw", "raw", ["nowhere"])))
    begun, invalid = [event async for event in peer.stream(ApplierServiceStub(peer.channel).Apply, request)]
    assert begun.HasField("begun")
    assert (invalid.operation_id, invalid.seq) == (begun.operation_id, 0)
    assert len(invalid.package_invalid.violations) == 1


async def test_events_are_the_same_from_every_applier(faulty: World) -> None:
    case = faulty.case()
    for package in (SMALL, SMALL):
        events = await case.apply(package)
        assert [event async for event in case.watch(events[0].operation_id)] == events


async def test_an_apply_with_nothing_to_do_keeps_the_header_of_its_plan_only(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    plan = (await case.apply(SMALL)).plan
    assert (plan.no_change, plan.header.kind, len(plan.digest)) == (True, plan_pb2.OPERATION_KIND_APPLY, 71)
    assert (plan.steps, plan.resource_diffs, plan.label_mapping_diffs, plan.summary) == ([], [], [], None)


async def test_steps_are_reported_before_they_are_sent(faulty: World) -> None:
    events = await faulty.case().apply(SMALL)
    sent = [(position, step) for position, event in enumerate(events) for step in event.steps_sent.steps]
    ended = [(position, each.step) for position, event in enumerate(events) for each in event.steps_ended.outcomes]
    assert [step for _, step in sent] == [step for _, step in ended] == [0, 1, 2, 3]
    assert all(before < after for (before, _), (after, _) in zip(sent, ended, strict=True))


async def test_an_apply_with_nothing_to_do_says_so_at_once(faulty: World, calls: Calls) -> None:
    case = await faulty.case_with(SMALL)
    before = await case.look()
    calls.methods.clear()
    assert lines(await case.apply(SMALL)) == ["accepted 0 steps", ["SUCCEEDED no change", ""]]
    assert calls.count("Mutate") == 0
    assert await case.look() == before


async def test_a_rejection_is_reported_with_the_undo_that_follows(faulty: World) -> None:
    case = faulty.case()
    case.driver.fail({2: ItemFault.REJECT})
    cause = "create Dashboard 'cpu': scripted refusal"
    assert lines(await case.apply(SMALL)) == [
        "accepted 4 steps",
        "stage 0 labels: 1",
        ["done: create Label red"],
        "stage 1 buckets, dashboards: 2",
        ["done: create Bucket raw", "failed: create Dashboard cpu"],
        f"undo of 2: {cause}",
        ["undo", "done: create Bucket raw"],
        ["undo", "done: create Label red"],
        [f"ROLLED_BACK {cause}", ""],
    ]


async def test_a_rejected_undo_is_reported(faulty: World) -> None:
    case = faulty.case()
    case.driver.fail({2: ItemFault.REJECT, 4: ItemFault.REJECT})
    cause = "create Dashboard 'cpu': scripted refusal"
    assert lines(await case.apply(SMALL))[5:] == [
        f"undo of 2: {cause}",
        ["undo", "done: create Bucket raw"],
        ["undo", "failed: create Label red"],
        [f"BLOCKED {cause}", "1 creates"],
    ]


async def test_irreversible_steps_run_last_and_their_failures_are_leftovers(faulty: World) -> None:
    case = await faulty.case_with(FRESH)
    case.driver.fail({13: ItemFault.REJECT})
    assert lines(await case.apply(MIXED)) == [
        "accepted 14 steps",
        "stage 0 labels: 2",
        ["done: create Label blue", "done: update Label red"],
        "stage 1 dashboards, variables: 2",
        ["done: create Dashboard disk", "done: create Variable region"],
        "stage 2 associations: 6",
        [
            "done: detach Bucket raw red",
            "done: attach Dashboard cpu blue",
            "done: detach Dashboard cpu green",
            "done: detach Dashboard cpu red",
            "done: attach Dashboard disk red",
            "done: detach Task roll green",
        ],
        "stage 3 removals: 2",
        ["done: delete Dashboard mem", "done: delete Task roll"],
        "stage 4 removals: 1",
        ["done: delete Label green"],
        "stage 5 irreversible removals: 1",
        ["failed: delete Bucket raw"],
        [
            "SUCCEEDED delete Bucket 'raw': scripted refusal",
            "3 creates, 1 updates, 3 deletes, 2 attaches, 4 detaches",
            "1 left",
        ],
    ]
    assert await pending(case) == ["raw"]
    assert end(await case.apply(FRESH)).state == SUCCEEDED
    assert await pending(case) == []


async def pending(case: Case) -> list[str]:
    """Names of the recorded resources that could not be deleted yet."""
    record = (await case.look()).record
    return [entry.key.name for entry in (record.resources if record else ()) if entry.is_pending_delete]


async def test_an_uninstall_reports_the_steps_that_remove_resources(faulty: World) -> None:
    case = await faulty.case_with(SMALL)
    assert lines(await case.uninstall()) == [
        "accepted 4 steps",
        "stage 0 associations: 1",
        ["done: detach Bucket raw red"],
        "stage 1 removals: 1",
        ["done: delete Dashboard cpu"],
        "stage 2 removals: 1",
        ["done: delete Label red"],
        "stage 3 irreversible removals: 1",
        ["done: delete Bucket raw"],
        ["SUCCEEDED", "3 deletes, 1 detaches, 1 irreversible"],
    ]
    after = await case.look()
    assert (after.content, after.record) == ([], None)


async def test_an_uninstall_of_no_stack_writes_nothing(faulty: World) -> None:
    with pytest.raises(StackNotFound):
        await faulty.case().uninstall(after_uninstall=plan_pb2.AFTER_UNINSTALL_KEEP)


async def test_a_package_that_breaks_rules_is_answered_with_violations_and_releases_the_stack(
    faulty: World, calls: Calls
) -> None:
    case = faulty.case()
    with pytest.raises(InvalidPackage):
        await case.apply(text(an_object("Bucket", "raw", "raw", ["nowhere"])))
    assert (await case.look()).record is None
    await case.apply(SMALL)
    before = await case.look()
    calls.methods.clear()
    with pytest.raises(InvalidPackage):
        await case.apply(text(an_object("Bucket", "raw", "raw", ["nowhere"])))
    assert calls.count("Mutate") == 0
    assert await case.look() == before
    assert (await case.settled()).cause == "the package breaks rules"
    assert end(await case.apply(SMALL)).no_change


async def test_the_text_of_an_unreadable_package_is_not_stored(faulty: World) -> None:
    case = faulty.case()
    with pytest.raises(SourceUndecodable, match="hunter2"):
        await case.apply("hunter2: 1\nhunter2: 2\n")
    assert (await case.settled()).cause == "the package cannot be read"


async def test_a_plan_that_was_not_approved_writes_nothing_and_releases_the_stack(faulty: World, calls: Calls) -> None:
    case = await faulty.case_with(SMALL)
    before = await case.look()
    agreed = await faulty.services.plan(FRESH, stack="s", org=case.org)
    label = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"green"}')
    await faulty.services.mutate(driver_pb2.Mutation(create=label), org=case.org)
    calls.methods.clear()
    with pytest.raises(PlanStale):
        await case.apply(FRESH, digest=agreed.digest)
    assert calls.count("Mutate") == 0
    assert (await case.look()).record == before.record
    failed = await case.settled()
    assert failed.state == operation_pb2.OPERATION_STATE_FAILED
    assert agreed.digest in failed.cause
    assert end(await case.apply(SMALL)).no_change


async def test_an_operation_without_a_stack_is_undone_like_any_other(faulty: World) -> None:
    case = faulty.case(stack="")
    case.driver.fail({2: ItemFault.REJECT})
    finished = end(await case.apply(SMALL))
    assert lines(await case.apply(SMALL))[-1] == ["SUCCEEDED", MADE]
    assert not finished.stack_id
    after = await case.look()
    assert len(after.ids) == 3
    assert after.record is None
