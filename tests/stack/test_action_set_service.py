"""ActionSetService: action sets with their journals, lists of them, and which may be deleted."""

from typing import Any

import pytest
from pkger.journal.v1 import action_set_pb2
from pkger.journal.v1.action_set_pb2_grpc import ActionSetServiceStub
from pkger.model.v1 import action_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.model.v1.operation_pb2 import (
    OPERATION_STATE_BLOCKED,
    OPERATION_STATE_CANCELLED,
    OPERATION_STATE_FAILED,
    OPERATION_STATE_SUCCEEDED,
)

from services.core.errors import (
    ActionSetHasSnapshots,
    ActionSetNotFound,
    ActionSetUnfinished,
    OperationNotFound,
    RequestInvalid,
    SnapshotNotFound,
)
from services.core.model import Target
from services.rpc.convert.objects import target_to_pb
from services.rpc.parts import MAX_PART_BYTES
from tests.stack.action_sets import (
    COMPLETE,
    begin,
    create,
    delete_snapshot,
    finish,
    get_snapshot,
    make_snapshot,
    named,
    new_action_set,
    phase,
    start,
    write,
)
from tests.stack.service import ELSEWHERE, Client, Clock


async def get(service: Client, name: str) -> list[action_set_pb2.GetActionSetResponse]:
    stub = ActionSetServiceStub(service.peer.channel)
    return [
        part async for part in service.peer.stream(stub.GetActionSet, action_set_pb2.GetActionSetRequest(name=name))
    ]


async def page(service: Client, **fields: Any) -> action_set_pb2.ListActionSetsResponse:
    request = action_set_pb2.ListActionSetsRequest(**fields)
    return await service.peer.call(ActionSetServiceStub(service.peer.channel).ListActionSets, request)


async def names(service: Client, **fields: Any) -> str:
    return " ".join(each.name for each in (await page(service, **fields)).action_sets)


async def delete(service: Client, name: str, force: bool = False) -> None:
    request = action_set_pb2.DeleteActionSetRequest(name=name, force=force)
    await service.peer.call(ActionSetServiceStub(service.peer.channel).DeleteActionSet, request)


async def test_an_action_set_is_read_with_its_journal_in_parts(service: Client, clock: Clock) -> None:
    run = await create(service, "nightly")
    large = f'{{"text":"{"x" * (MAX_PART_BYTES // 3)}"}}'
    for index in range(3):
        clock.forward(1)
        await write(service, run, phase(index, COMPLETE, outputs_json=large), done_count=index + 1)
    first, *rest = await get(service, "nightly")
    assert first.action_set == new_action_set("nightly")
    assert first.operation == await service.operation(run.operation)
    assert not first.records
    records = [each for part in rest for each in part.records]
    assert [each.phases[0].index for each in records] == [0, 1, 2]
    assert records[-1].write_time.ToMicroseconds() == clock.now
    assert len(rest) > 1
    assert max(part.ByteSize() for part in rest) < MAX_PART_BYTES
    with pytest.raises(ActionSetNotFound):
        await get(service, "other")


async def test_an_action_set_names_the_snapshots_that_are_gone(service: Client, clock: Clock) -> None:
    maker = await create(service, "maker")
    kept, gone, unknown = [await make_snapshot(service, maker, name, "text") for name in ("kept", "gone", "unknown")]
    await finish(service, maker)
    user = await create(service, "user", snapshots=[kept, gone, unknown])
    own = await make_snapshot(service, user, "own", "text")
    await finish(service, user)
    clock.forward(5)
    for each in (gone, own):
        await delete_snapshot(service, each, "nightly")
    [first, *_] = await get(service, "user")
    assert sorted(first.deleted_snapshots) == sorted([gone, own])
    deleted = first.deleted_snapshots[gone]
    assert (deleted.deleted_by, deleted.delete_time.ToMicroseconds()) == ("nightly", clock.now)

    await delete(service, "maker", force=True)

    [first, *_] = await get(service, "user")
    assert sorted(first.deleted_snapshots) == sorted([kept, gone, own, unknown])
    assert not first.deleted_snapshots[kept].HasField("delete_time")


STATES = {
    "pending": (action_pb2.ACTION_SET_STATE_PENDING, 0),
    "running": (action_pb2.ACTION_SET_STATE_RUNNING, 33),
    "stopping": (action_pb2.ACTION_SET_STATE_STOPPING, 33),
    "complete": (action_pb2.ACTION_SET_STATE_COMPLETE, 100),
    "failed": (action_pb2.ACTION_SET_STATE_FAILED, 99),
    "cancelled": (action_pb2.ACTION_SET_STATE_CANCELLED, 0),
    "blocked": (action_pb2.ACTION_SET_STATE_BLOCKED, 0),
}


async def test_states_and_progress_in_lists(service: Client) -> None:
    runs = {name: await create(service, name) for name in STATES}
    for name in ("running", "stopping"):
        await write(service, runs[name], phase(0, COMPLETE), phase(1), done_count=1)
    await write(service, runs["stopping"], stop=action_set_pb2.STOP_REASON_TIMEOUT, cause="late", done_count=1)
    await write(service, runs["failed"], phase(0, COMPLETE), done_count=3)
    await finish(service, runs["complete"])
    await finish(service, runs["failed"], OPERATION_STATE_FAILED, "it failed")
    await finish(service, runs["cancelled"], OPERATION_STATE_CANCELLED)
    await finish(service, runs["blocked"], OPERATION_STATE_BLOCKED)

    listed = {each.name: each for each in (await page(service)).action_sets}

    assert {name: (each.state, each.progress) for name, each in listed.items()} == STATES
    assert (listed["stopping"].cause, listed["failed"].cause) == ("late", "it failed")
    ended = {name for name, each in listed.items() if each.HasField("end_time")}
    assert ended == {"complete", "failed", "cancelled"}
    for name, (state, _) in STATES.items():
        assert await names(service, states=[state]) == name
    pair = [action_pb2.ACTION_SET_STATE_RUNNING, action_pb2.ACTION_SET_STATE_PENDING]
    assert sorted((await names(service, states=pair)).split()) == ["pending", "running"]


async def test_action_sets_are_listed_as_they_were_created(service: Client, clock: Clock) -> None:
    target = target_to_pb(ELSEWHERE)
    objects = [action_pb2.ActionObject(kind="Stack", name="prod", target=target)]
    made = new_action_set("one", labels={"why": "test"}, blueprints=["backup"], objects=objects, predecessor="zero")
    made.ttl.seconds = 5
    run = await begin(service)
    await start(service, run, made)
    clock.forward(1)
    await create(service, "two", objects=[action_pb2.ActionObject(kind="Stack", name="prod")])
    first = (await page(service)).action_sets[-1]
    assert (first.name, first.operation_id, first.predecessor, first.labels["why"]) == (
        "one",
        run.operation,
        "zero",
        "test",
    )
    assert (list(first.blueprints), list(first.objects), first.ttl.seconds) == (["backup"], objects, 5)
    assert first.create_time.ToMicroseconds() == clock.now - 1_000_000
    assert not first.actions

    assert await names(service) == "two one"
    assert await names(service, stack=named("prod")) == "two"
    assert await names(service, stack=named("prod", ELSEWHERE)) == "one"
    assert await names(service, stack=named("prod", Target(platform="lab"))) == ""
    assert await names(service, blueprint="backup", predecessor="zero", labels={"why": "test"}) == "one"
    assert await names(service, labels={"why": "other"}) == ""
    newest = await page(service, page_size=1)
    assert await names(service, page_token=newest.next_page_token) == "one"
    assert not (await page(service, page_token=newest.next_page_token)).next_page_token


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"page_size": 501}, "page_size"),
        ({"page_token": "nonsense"}, "page_token"),
        ({"stack": StackRef(id="0123456789abcdef")}, "stack"),
        ({"states": [0]}, "states"),
        ({"states": [99]}, "states"),
    ],
)
async def test_a_list_that_cannot_be_read_is_refused(service: Client, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        await page(service, **fields)
    assert raised.value.metadata["field"] == field


async def test_an_unfinished_action_set_is_not_deleted(service: Client) -> None:
    stack = await service.create("prod")
    run = await create(service, "a", reserved=["prod"], reserve=True)
    for force in (False, True):
        with pytest.raises(ActionSetUnfinished):
            await delete(service, "a", force)
    await finish(service, run, OPERATION_STATE_BLOCKED)
    with pytest.raises(ActionSetUnfinished, match="BLOCKED"):
        await delete(service, "a")
    await delete(service, "a", force=True)
    assert not (await service.get(stack.id)).HasField("reservation")
    for call in (service.operation(run.operation), service.claim(run.operation), write(service, run, phase(0))):
        with pytest.raises(OperationNotFound):
            await call
    with pytest.raises(ActionSetNotFound):
        await delete(service, "a", force=True)


async def test_an_action_set_is_deleted_with_its_snapshots_only_by_force(service: Client) -> None:
    run = await create(service, "a")
    snapshot = await make_snapshot(service, run, "prod", "text")
    await finish(service, run)
    with pytest.raises(ActionSetHasSnapshots) as raised:
        await delete(service, "a")
    assert raised.value.metadata["snapshots"] == snapshot
    await delete(service, "a", force=True)
    with pytest.raises(SnapshotNotFound):
        await get_snapshot(service, snapshot)
    other = await create(service, "a")
    await finish(service, other, OPERATION_STATE_SUCCEEDED)
    await delete(service, "a")
    assert await names(service) == ""
