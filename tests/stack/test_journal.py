"""JournalService: leases, fencing, and the records that operations leave."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st
from pkger.journal.v1 import journal_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.model.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY

from services.core import model
from services.core.errors import (
    LeaseLost,
    RequestInvalid,
    ResourceOwned,
    StackExists,
    StackLeased,
    StackMoved,
    StackNotFound,
)
from services.rpc.convert.plans import record_changes_to_pb
from tests.stack.service import Client, Clock, a_plan, duration, entry, microseconds, service_in_memory
from tests.strategies import inventories

MADE = 1_700_000_000_000_000


async def test_a_first_apply_makes_a_stack_that_only_its_operation_sees(service: Client) -> None:
    begun = await service.begin("prod")

    assert (begun.stack.generation, begun.stack.resource_count) == (0, 0)
    assert (await service.get(begun.stack.id)).name == "prod"
    assert await service.names() == []
    with pytest.raises(StackNotFound):
        await service.get_named("prod")
    with pytest.raises(StackNotFound):
        await service.begin("prod", create_missing=False)
    with pytest.raises(StackExists):
        await service.create("prod")


async def test_a_first_apply_that_succeeds_makes_its_stack_then(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod")
    clock.forward(5)

    stack = await service.record(
        begun, [entry("two", labels=["l"]), entry("one", origin=model.Origin.ADOPTED)], ["a.yml"]
    )

    assert microseconds(stack) == (clock.now, clock.now)
    assert (stack.generation, list(stack.sources), stack.resource_count) == (1, ["a.yml"], 2)
    assert await service.resources(stack.id) == (
        entry("one", origin=model.Origin.ADOPTED),
        entry("two", labels=["l"]),
    )
    assert await service.get_named("prod") == stack
    assert await service.names() == ["prod"]


async def test_a_first_apply_of_nothing_makes_a_stack_too(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod")
    clock.forward(5)

    stack = await service.record(begun, [], ["empty.yml"])

    assert microseconds(stack) == (clock.now, clock.now)
    assert (stack.generation, list(stack.sources)) == (0, ["empty.yml"])
    assert await service.names() == ["prod"]


async def test_an_apply_that_changes_something_moves_generation_sources_and_update_time(
    service: Client, clock: Clock
) -> None:
    await service.apply("prod", [entry("one"), entry("two")], ["a.yml"])
    clock.forward(5)

    stack = await service.apply("prod", [entry("two"), entry("three")], ["b.yml"])

    assert microseconds(stack) == (MADE, clock.now)
    assert (stack.generation, list(stack.sources)) == (2, ["b.yml"])
    assert await service.resources(stack.id) == (entry("three"), entry("two"))


async def test_an_apply_that_changes_nothing_leaves_the_record_as_it_is(service: Client, clock: Clock) -> None:
    before = await service.apply("prod", [entry("one", labels=["l", "m"]), entry("two")], ["a.yml"])
    clock.forward(5)

    after = await service.apply("prod", [entry("two"), entry("one", labels=["m", "l"])], ["b.yml"])

    assert after.SerializeToString(deterministic=True) == before.SerializeToString(deterministic=True)
    assert await service.get(before.id) == before


@pytest.mark.parametrize(
    "changed",
    [
        entry("one", "id-new"),
        entry("one", labels=["l"]),
        entry("other", "id-one"),
        entry("one")._replace(is_pending_delete=True),
    ],
)
async def test_every_part_of_an_entry_is_content(service: Client, clock: Clock, changed: model.InventoryEntry) -> None:
    await service.apply("prod", [entry("one")])
    clock.forward(5)

    stack = await service.apply("prod", [changed])

    assert await service.resources(stack.id) == (changed,)
    assert (stack.generation, microseconds(stack)[1]) == (2, clock.now)


async def test_an_owned_resource_keeps_its_origin(service: Client) -> None:
    await service.apply("prod", [entry("one", origin=model.Origin.CREATED)])

    stack = await service.apply("prod", [entry("renamed", "id-one", origin=model.Origin.ADOPTED)])

    assert await service.resources(stack.id) == (entry("renamed", "id-one", origin=model.Origin.CREATED),)


async def test_two_objects_may_swap_their_resources(service: Client) -> None:
    await service.apply("prod", [entry("one", "1"), entry("two", "2")])

    stack = await service.apply("prod", [entry("one", "2"), entry("two", "1")])

    assert await service.resources(stack.id) == (entry("one", "2"), entry("two", "1"))


async def test_a_clock_set_back_does_not_update_a_record_before_it_was_made(service: Client, clock: Clock) -> None:
    await service.apply("prod", [])
    clock.forward(-3600)

    stack = await service.apply("prod", [entry("one")])

    assert microseconds(stack) == (MADE, MADE)
    assert stack.generation == 1


async def test_a_first_apply_that_fails_leaves_no_stack(service: Client) -> None:
    begun = await service.begin("prod")

    answer = await service.abandon(begun)

    assert answer.generation == 0
    with pytest.raises(StackNotFound):
        await service.get(begun.stack.id)
    assert (await service.create("prod")).id != begun.stack.id


async def test_a_later_apply_that_fails_leaves_the_record_and_releases_the_lease(service: Client) -> None:
    before = await service.apply("prod", [entry("one")], ["a.yml"])

    answer = await service.abandon(await service.begin("prod"), base_generation=99)

    assert answer.generation == 1
    assert await service.get(before.id) == before
    assert (await service.begin("prod")).token == MADE + 2


async def test_a_removed_stack_is_gone_with_all_it_owned(service: Client) -> None:
    stack = await service.apply("prod", [entry("one")])

    answer = await service.remove(await service.begin("prod", create_missing=False))

    assert answer.generation == 0
    with pytest.raises(StackNotFound):
        await service.get(stack.id)
    assert await service.owners([("Bucket", "id-one")]) == []
    assert (await service.apply("heir", [entry("one")])).resource_count == 1


async def test_a_plan_of_another_generation_is_refused_and_the_lease_kept(service: Client) -> None:
    before = await service.apply("prod", [entry("one")])
    begun = await service.begin("prod")

    for refused in (service.record(begun, [], base_generation=0), service.remove(begun, base_generation=2)):
        with pytest.raises(StackMoved) as raised:
            await refused
        assert (raised.value.metadata["stack"], raised.value.metadata["actual"]) == ("prod", "1")

    assert await service.get(before.id) == before
    await service.renew(begun)


async def test_a_resource_of_another_stack_is_refused_and_nothing_written(service: Client) -> None:
    owner = await service.apply("owner", [entry("theirs", "1")])
    before = await service.apply("prod", [entry("kept")])
    begun = await service.begin("prod")

    with pytest.raises(ResourceOwned) as raised:
        await service.record(begun, [entry("new"), entry("mine", "1")])

    assert raised.value.metadata == {
        "kind": "Bucket",
        "name": "mine",
        "what": "resource 1",
        "resource_id": "1",
        "owner": owner.id,
        "owner_name": "owner",
        "operation": "",
        "count": "1",
    }
    assert await service.get(before.id) == before
    await service.abandon(begun)


@pytest.mark.parametrize(
    "resources",
    [
        [entry("one", "1"), entry("one", "2")],
        [entry("one", "1"), entry("two", "1")],
        [entry("", "1")],
        [entry("one", kind="")],
        [model.InventoryEntry(model.Key("Bucket", "one"), "", model.Origin.CREATED)],
    ],
)
async def test_a_record_that_contradicts_itself_is_refused(
    service: Client, resources: list[model.InventoryEntry]
) -> None:
    begun = await service.begin("prod")

    with pytest.raises(RequestInvalid) as raised:
        await service.record(begun, resources)

    assert raised.value.metadata["field"] == "record.changes"


async def test_an_operation_without_an_outcome_is_refused(service: Client) -> None:
    begun = await service.begin("prod")

    with pytest.raises(RequestInvalid) as raised:
        await service.peer.call(
            service.journal.FinishOperation,
            journal_pb2.FinishOperationRequest(operation_id=begun.operation, token=begun.token),
        )

    assert raised.value.metadata["field"] == "outcome"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"stack": None}, "stack"),
        ({"operation_id": ""}, "operation_id"),
        ({"holder": ""}, "holder"),
        ({"kind": 0}, "kind"),
        ({"ttl": None}, "ttl"),
        ({"ttl": Duration(nanos=999_999_000)}, "ttl"),
        ({"ttl": Duration(seconds=-5)}, "ttl"),
        ({"ttl": Duration(seconds=600, nanos=1000)}, "ttl"),
    ],
)
async def test_an_incomplete_request_gets_no_lease(service: Client, change: dict[str, object], field: str) -> None:
    fields = {
        "stack": StackRef(name="prod"),
        "create_missing": True,
        "operation_id": "op-1",
        "kind": OPERATION_KIND_APPLY,
        "holder": "me",
        "ttl": Duration(seconds=600),
    } | change

    with pytest.raises(RequestInvalid) as raised:
        await service.begin_answer(journal_pb2.BeginOperationRequest(**fields))  # type: ignore[arg-type]

    assert raised.value.metadata["field"] == field
    assert (await service.begin("prod")).token == MADE


async def test_a_missing_stack_is_created_only_on_request(service: Client) -> None:
    with pytest.raises(StackNotFound) as raised:
        await service.begin("prod", create_missing=False)

    assert raised.value.metadata == {"stack": "prod"}


async def test_the_error_for_a_leased_stack_names_holder_and_operation(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", operation="op-1", holder="applier-1", seconds=1.5)

    for again in (service.begin("prod", operation="op-2"), service.begin(stack_id=begun.stack.id, operation="op-2")):
        with pytest.raises(StackLeased) as raised:
            await again
        assert raised.value.metadata == {
            "stack": "prod",
            "holder": "applier-1",
            "operation": "op-1",
            "expires": "2023-11-14T22:13:21.500000Z",
        }
    assert begun.expire_time.ToMicroseconds() == clock.now + 1_500_000


async def test_a_lease_lasts_as_long_as_it_is_renewed(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", seconds=10)
    for _ in range(3):
        clock.forward(10)
        renewed = await service.renew(begun, seconds=10)
        assert renewed.expire_time.ToMicroseconds() == clock.now + 10_000_000
        with pytest.raises(StackLeased):
            await service.begin("prod")

    with pytest.raises(RequestInvalid):
        await service.renew(begun, seconds=0.5)

    assert (await service.record(begun, [entry("one")])).generation == 1


async def test_a_raised_token_replaces_the_one_before(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod")
    raised = replace(begun, token=begun.token + 1)
    clock.forward(10)
    # Sent twice, as the first response may be lost.
    for _ in range(2):
        renewed = await service.renew(begun, raise_to=raised.token)
        assert renewed.expire_time.ToMicroseconds() == clock.now + 30_000_000

    for late in (service.renew(begun), service.advance(begun), service.abandon(begun)):
        with pytest.raises(LeaseLost):
            await late
    await service.advance(raised)
    clock.forward(31)
    _, claimed = await service.claim(begun.operation)
    assert (claimed.last_token, claimed.token) == (raised.token, clock.now)


@pytest.mark.parametrize("too_far", [-1, 0, 2])
async def test_a_token_is_raised_by_one(service: Client, too_far: int) -> None:
    begun = await service.begin("prod")
    with pytest.raises(RequestInvalid, match="raise_to"):
        await service.renew(begun, raise_to=begun.token + too_far)
    await service.renew(begun)


async def test_the_token_of_a_lost_lease_cannot_be_raised(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", seconds=10)
    clock.forward(11)
    with pytest.raises(LeaseLost):
        await service.renew(begun, raise_to=begun.token + 1)
    # As the clock is set back, the next holder gets the same token as by a raise.
    clock.forward(-3600)
    claimed, _ = await service.claim(begun.operation)
    assert claimed.token == begun.token + 1
    with pytest.raises(LeaseLost):
        await service.renew(begun, raise_to=begun.token + 1)


async def test_an_expired_lease_is_lost_even_if_no_other_operation_took_it(service: Client, clock: Clock) -> None:
    begun = await service.begin("prod", seconds=10)
    clock.forward(10.000001)

    for late in (
        service.renew(begun),
        service.record(begun, [entry("one")]),
        service.abandon(begun),
        service.remove(begun),
    ):
        with pytest.raises(LeaseLost) as raised:
            await late
        assert raised.value.metadata == {"stack": begun.stack.id, "token": str(begun.token)}


async def test_an_expired_lease_is_acquired_with_a_higher_token(service: Client, clock: Clock) -> None:
    before = await service.apply("prod", [entry("one")])
    late = await service.begin("prod", seconds=10, steps=None)
    clock.forward(11)

    heir = await service.begin("prod", operation="op-2", holder="applier-2")

    assert heir.token > late.token
    for write in (service.renew(late), service.record(late, []), service.abandon(late), service.remove(late)):
        with pytest.raises(LeaseLost):
            await write
    assert await service.get(before.id) == before
    assert (await service.record(heir, [entry("two")])).generation == 2


async def test_a_first_apply_that_died_before_it_sent_anything_is_taken_over_by_name(
    service: Client, clock: Clock
) -> None:
    dead = await service.begin("prod", seconds=10, steps=None)
    clock.forward(11)

    heir = await service.begin("prod", operation="op-2")

    assert heir.stack.id == dead.stack.id
    assert heir.token > dead.token
    assert (await service.record(heir, [entry("one")])).resource_count == 1


async def test_a_new_stack_takes_the_name_of_a_first_apply_that_died(service: Client, clock: Clock) -> None:
    dead = await service.begin("prod", seconds=10, steps=None)
    clock.forward(11)

    made = await service.create("prod")

    assert made.id != dead.stack.id
    with pytest.raises(LeaseLost):
        await service.record(dead, [entry("one")])


async def test_a_token_is_refused_after_its_operation_ended(service: Client) -> None:
    begun = await service.begin("prod")
    stack = await service.record(begun, [entry("one")])

    begun.position += 1
    for write in (service.renew(begun), service.record(begun, []), service.remove(begun, base_generation=1)):
        with pytest.raises(LeaseLost):
            await write

    assert await service.get(stack.id) == stack


async def test_a_repeated_last_write_returns_the_same_response(service: Client, clock: Clock) -> None:
    """The response to the first may have been lost."""
    begun = await service.begin("prod")
    record = await service.changes_to(begun.stack.id, [entry("one"), entry("two")], ["a.yml"])
    recorded = await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record)
    clock.forward(60)
    assert await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record) == recorded

    begun = await service.begin("prod")
    abandoned = await service.abandon(begun)
    assert await service.abandon(begun) == abandoned

    begun = await service.begin("prod")
    removed = await service.remove(begun)
    assert await service.remove(begun) == removed

    begun = await service.begin("prod")
    abandoned = await service.abandon(begun)
    assert await service.abandon(begun) == abandoned


async def test_another_last_write_at_the_same_position_is_refused(service: Client) -> None:
    begun = await service.begin("prod")
    stack = await service.record(begun, [entry("one")])

    others: list[Awaitable[object]] = [
        service.finish(begun, OPERATION_STATE_SUCCEEDED, record=journal_pb2.Record()),
        service.finish(begun, OPERATION_STATE_SUCCEEDED, abandon=journal_pb2.Abandon()),
        service.remove(begun),
    ]
    for other in others:
        with pytest.raises(LeaseLost):
            await other
    assert await service.get(stack.id) == stack


async def test_texts_that_a_store_cannot_hold_are_replaced_in_a_record(service: Client) -> None:
    """A driver may return any text as an id."""
    await service.apply("prod", [entry("n\0m", "i\0d", labels=["l\0"])])
    cleaned = entry("n\ufffdm", "i\ufffdd", labels=["l\ufffd"])
    stack = await service.get_named("prod")
    assert await service.resources(stack.id) == (cleaned,)
    assert [owner[2] for owner in await service.owners([("Bucket", "i\0d")])] == [stack.id]
    with pytest.raises(ResourceOwned):
        await service.apply("other", [entry("theirs", "i\0d")])

    removed, gone = await service.begin("prod"), model.RecordChanges(removed=(model.Key("Bucket", "n\0m"),))
    record = journal_pb2.Record(changes=record_changes_to_pb(gone))
    await service.finish(removed, OPERATION_STATE_SUCCEEDED, record=record)

    assert (await service.get(stack.id)).resource_count == 0


@pytest.mark.parametrize("name", ["a\0b", "x" * 1025])
async def test_names_that_a_store_cannot_find_are_refused(service: Client, name: str) -> None:
    refusals: dict[str, Awaitable[object]] = {
        "operation_id": service.begin("prod", operation=name),
        "target.org": service.create("prod", model.Target(org=name)),
        "stack.target.platform": service.begin("prod", target=model.Target(platform=name)),
        "plan.header.id": service.store_plan(a_plan(1, name)),
    }
    for field, call in refusals.items():
        with pytest.raises(RequestInvalid) as raised:
            await call
        assert raised.value.metadata["field"] == field


async def test_a_repeated_last_write_returns_the_same_response_after_another_operation(
    service: Client,
) -> None:
    begun = await service.begin("prod")
    record = await service.changes_to(begun.stack.id, [entry("one")])
    answer = await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record)
    after = await service.record(await service.begin("prod"), [entry("two")])

    assert await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record) == answer
    with pytest.raises(LeaseLost):
        await service.abandon(begun)
    assert (answer.generation, after.generation) == (1, 2)
    assert await service.get(after.id) == after


async def test_one_of_many_operations_that_begin_at_once_gets_the_stack(
    service: Client, tmp_path: Path, clock: Clock
) -> None:
    """Twenty appliers at two services over one file."""
    async with service_in_memory(tmp_path / "stack.db", clock) as second:
        answers = await asyncio.gather(
            *(
                (service, second)[number % 2].begin("prod", operation=f"op-{number}", holder=f"applier-{number}")
                for number in range(20)
            ),
            return_exceptions=True,
        )
        winners = [number for number, answer in enumerate(answers) if not isinstance(answer, BaseException)]
        assert len(winners) == 1
        for answer in answers:
            if isinstance(answer, BaseException):
                assert isinstance(answer, StackLeased)
                assert answer.metadata["operation"] == f"op-{winners[0]}"
                assert answer.metadata["holder"] == f"applier-{winners[0]}"


async def test_a_first_apply_and_a_create_at_once_make_one_stack(service: Client) -> None:
    async def applied() -> str:
        return (await service.begin("prod")).stack.id

    async def created() -> str:
        return (await service.create("prod")).id

    answers = await asyncio.gather(*(call() for call in (applied, created) * 5), return_exceptions=True)

    assert len({answer for answer in answers if isinstance(answer, str)}) == 1
    assert {type(answer) for answer in answers if not isinstance(answer, str)} <= {StackLeased, StackExists}


async def test_one_of_two_stacks_that_take_a_resource_at_once_gets_it(service: Client) -> None:
    begun = [await service.begin(name) for name in ("a", "b")]

    answers = await asyncio.gather(*(service.record(each, [entry("one")]) for each in begun), return_exceptions=True)

    assert sorted(type(answer).__name__ for answer in answers) == ["ResourceOwned", "Stack"]


@given(history=st.lists(inventories, min_size=1, max_size=3))
async def test_a_record_reads_back_as_it_was_written(
    service: Client, history: list[tuple[model.InventoryEntry, ...]]
) -> None:
    """The generation counts the changes."""
    generation, recorded = 0, frozenset[model.InventoryEntry]()
    for shared in history:
        # Only a resource that another stack owns can be shared.
        resources = [
            each._replace(origin=model.Origin.ADOPTED) if each.origin is model.Origin.SHARED else each
            for each in shared
        ]
        written = await service.apply("prod", resources)
        stack = await service.get_named("prod")

        # A resource that the stack owns already keeps its origin.
        origins = {(each.key.kind, each.resource_id): each.origin for each in recorded}
        resources = [
            each._replace(origin=origins.get((each.key.kind, each.resource_id), each.origin)) for each in resources
        ]
        generation += frozenset(resources) != recorded
        recorded = frozenset(resources)
        assert stack == written
        assert await service.resources(stack.id) == tuple(sorted(resources, key=lambda entry: entry.key))
        assert (stack.generation, stack.resource_count) == (generation, len(resources))
    await service.remove(await service.begin("prod"))


def test_a_duration_has_seconds_and_nanoseconds() -> None:
    assert duration(1.5) == Duration(seconds=1, nanos=500_000_000)
