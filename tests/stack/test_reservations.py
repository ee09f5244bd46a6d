"""Stacks that an action set has reserved: what is refused meanwhile, and to whom."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1.object_pb2 import ORIGIN_ADOPTED, InventoryEntry, ObjectKey, StackRef
from pkger.model.v1.operation_pb2 import OPERATION_STATE_BLOCKED, OPERATION_STATE_CANCELLED, OPERATION_STATE_FAILED
from pkger.stack.v1 import policy_pb2, stack_pb2
from pkger.stack.v1.stack_pb2 import Stack

from services.core.errors import RequestInvalid, StackLeased
from tests.stack.action_sets import (
    begin,
    begin_child,
    create,
    finish,
    named,
    new_action_set,
    start_request,
    write,
)
from tests.stack.service import ELSEWHERE, Begun, Client, Clock, a_plan, entry

URL = "https://example.com/package.yml"


async def reserved_by(service: Client, run: Begun) -> tuple[str, str, str]:
    """Stack, operation and action set that a refused reservation names."""
    position = run.position
    holder = (await write(service, run, reserve=True)).reserved_by
    assert run.position == position
    return holder.stack_name, holder.operation_id, holder.action_set


async def test_all_stacks_are_reserved_or_none(service: Client) -> None:
    for name in ("one", "two"):
        await service.create(name)
    running = await service.begin("two")
    run = await create(service, "a", reserved=["one", "two", "new"])
    assert await reserved_by(service, run) == ("two", running.operation, "")
    await service.begin("one")
    await service.create("new")


async def test_a_reservation_waits_for_operations_and_for_other_action_sets(service: Client, clock: Clock) -> None:
    stack = await service.create("prod")
    await service.create("free")
    run = await create(service, "a", reserved=["free", "prod", "new"])
    begun = await service.begin(stack_id=stack.id)
    assert await reserved_by(service, run) == ("prod", begun.operation, "")
    await service.abandon(begun, state=OPERATION_STATE_BLOCKED)
    assert await reserved_by(service, run) == ("prod", begun.operation, "")
    heir, _ = await service.claim(begun.operation)
    await service.abandon(heir)
    # Nothing of it is reserved so far.
    await service.abandon(await service.begin("free"))
    first = await service.begin("new", steps=None)
    assert await reserved_by(service, run) == ("new", first.operation, "")
    clock.forward(20)
    await service.renew(run)
    clock.forward(11)
    # It died before it sent anything.
    assert not (await write(service, run, reserve=True)).HasField("reserved_by")
    assert (await service.operation(first.operation)).state == OPERATION_STATE_FAILED

    other = await create(service, "b", reserved=["new"])
    assert await reserved_by(service, other) == ("new", run.operation, "a")
    elsewhere = await create(service, "c")
    assert not (await write(service, elsewhere, reserve=True)).HasField("reserved_by")
    await finish(service, run, OPERATION_STATE_CANCELLED)
    assert not (await write(service, other, reserve=True)).HasField("reserved_by")


async def test_stacks_are_reserved_with_the_start(service: Client) -> None:
    stack = await service.create("prod")
    run = await begin(service)
    request = start_request(run, new_action_set("a", ["prod"]))
    request.writes.add(position=2, action=action_set_pb2.ActionRecords(reserve=True))
    for _ in range(2):
        await service.peer.call(service.journal.AdvanceOperation, request)
    reservation = (await service.get(stack.id)).reservation
    assert (reservation.action_set, reservation.operation_id) == ("a", run.operation)


async def forget(service: Client, stack: Stack) -> None:
    request = stack_pb2.ForgetResourceRequest(stack=StackRef(id=stack.id), key=ObjectKey(kind="Bucket", name="one"))
    await service.peer.call(service.stacks.ForgetResource, request)


async def rename_resource(service: Client, stack: Stack) -> None:
    key = ObjectKey(kind="Bucket", name="one")
    request = stack_pb2.RenameResourceRequest(stack=StackRef(id=stack.id), key=key, new_name="two")
    await service.peer.call(service.stacks.RenameResource, request)


async def import_resource(service: Client, stack: Stack) -> None:
    key = ObjectKey(kind="Bucket", name="three")
    imported = InventoryEntry(key=key, resource_id="id-three", origin=ORIGIN_ADOPTED)
    baseline = journal_pb2.Baseline(key=key, spec_json="{}")
    request = journal_pb2.RecordImportRequest(stack_id=stack.id, entries=[imported], baselines=[baseline])
    await service.peer.call(service.journal.RecordImport, request)


async def change_policy(service: Client, stack: Stack) -> None:
    policy = policy_pb2.Policy(history=7)
    request = stack_pb2.UpdateStackRequest(stack=StackRef(id=stack.id), policy=policy)
    await service.peer.call(service.stacks.UpdateStack, request)


async def apply_plan(service: Client, stack: Stack) -> None:
    plan = a_plan(1, "operation-of-plan", stack_id=stack.id, stack_name="prod")
    plan_id = (await service.store_plan(plan)).plan_id
    await service.begin_planned(plan_id)


REFUSED: dict[str, Callable[[Client, Stack], Awaitable[object]]] = {
    "an operation by the id": lambda service, stack: service.begin(stack_id=stack.id),
    "an operation by the name": lambda service, stack: service.begin("prod"),
    "a stored plan": apply_plan,
    "a new stack of a reserved name": lambda service, stack: service.begin("new"),
    "the delete": lambda service, stack: service.delete(stack.id),
    "a new name": lambda service, stack: service.update(stack.id, name="other"),
    "no name": lambda service, stack: service.update(stack.id, name=""),
    "a new policy": change_policy,
    "the forgetting of a resource": forget,
    "the name of a resource": rename_resource,
    "an import": import_resource,
    "a stack of a reserved name": lambda service, stack: service.create("new"),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
async def test_a_reserved_stack_refuses_everyone_but_its_action_set(
    service: Client, change: Callable[[Client, Stack], Awaitable[object]]
) -> None:
    stack = await service.apply("prod", [entry("one")])
    run = await create(service, "a", reserved=["prod", "new"], reserve=True)
    with pytest.raises(StackLeased) as raised:
        await change(service, stack)
    metadata = raised.value.metadata
    assert (metadata["operation"], metadata["action_set"], metadata["expires"]) == (run.operation, "a", "")
    assert (await service.get(stack.id)).etag == stack.etag

    child = await begin_child(service, run, named("prod"))
    with pytest.raises(StackLeased) as raised:
        await change(service, stack)
    assert raised.value.metadata["action_set"] == "a"
    await service.abandon(child)
    await finish(service, run)
    if change is not REFUSED["the delete"]:
        await change(service, stack)


async def test_a_name_that_is_reserved_is_no_new_name(service: Client) -> None:
    stack = await service.create("prod")
    run = await create(service, "a", reserved=["new"], reserve=True)
    with pytest.raises(StackLeased):
        await service.update(stack.id, name="new")
    await service.create("new", ELSEWHERE)
    await finish(service, run)
    assert (await service.update(stack.id, name="new")).name == "new"


async def test_description_and_urls_of_a_reserved_stack_may_change(service: Client) -> None:
    stack = await service.create("prod")
    await create(service, "a", reserved=["prod"], reserve=True)
    changed = await service.update(stack.id, name="prod", description="new", urls=[URL])
    assert (changed.description, list(changed.urls)) == ("new", [URL])


async def test_a_child_creates_the_stack_whose_name_is_reserved(service: Client, clock: Clock) -> None:
    run = await create(service, "a", reserved=["new"], reserve=True)
    policy = policy_pb2.Policy(history=7)
    described = journal_pb2.NewStack(description="restored", urls=[URL], policy=policy)
    with pytest.raises(RequestInvalid, match=r"new_stack\.urls"):
        await begin_child(service, run, named("new"), new_stack=journal_pb2.NewStack(urls=["nonsense"]))
    child = await begin_child(service, run, named("new"), new_stack=described)
    assert child.is_pending
    await service.abandon(child)

    # A try that died before it sent anything leaves the stack to the next one.
    await begin_child(service, run, named("new"), new_stack=journal_pb2.NewStack(description="first"))
    clock.forward(31)
    run, _ = await service.claim(run.operation)
    child = await begin_child(service, run, named("new"), new_stack=described)
    await service.start(child)
    stack = await service.record(child)
    assert (stack.description, list(stack.urls), stack.policy.history) == ("restored", [URL], 7)
    assert stack.reservation.action_set == "a"
    with pytest.raises(StackLeased):
        await service.begin(stack_id=stack.id)
    await finish(service, run)
    assert not (await service.get_named("new")).HasField("reservation")
    await service.begin(stack_id=stack.id)


async def test_a_stack_that_an_operation_left_behind_gets_nothing_of_it(service: Client, clock: Clock) -> None:
    run = await create(service, "a")
    await begin_child(service, run, named("new"), new_stack=journal_pb2.NewStack(description="restored"))
    clock.forward(31)
    stack = await service.record(await service.begin("new"))
    assert stack.description == ""


async def test_a_watcher_sees_a_reservation_come_and_go(service: Client) -> None:
    stack = await service.create("prod")
    run = await create(service, "a", reserved=["prod"])
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def watch() -> None:
        request = stack_pb2.WatchStackRequest(stack=named("prod"))
        async for change in service.peer.stream(service.stacks.WatchStack, request):
            await seen.put(change.stack.reservation.action_set)

    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch())
        assert await seen.get() == ""
        await write(service, run, reserve=True)
        assert await seen.get() == "a"
        await finish(service, run)
        assert await seen.get() == ""
        watcher.cancel()
    assert not (await service.get(stack.id)).HasField("reservation")
