"""
Claims of operations: an item is claimed by one operation, from the intent to the end (docs/reference/engine.md,
"Claims").
"""

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import OPERATION_STATE_BLOCKED, OPERATION_STATE_ROLLED_BACK

from services.core.errors import ResourceOwned
from services.core.model import Key
from services.engine.claims import Claim, Claimed, ClaimedAssociation, ClaimedName, ClaimedResource, ClaimedSecret
from services.rpc.convert.claims import claim_to_pb
from tests.stack.service import ELSEWHERE, HERE, Begun, Client, entry, start_request, write_request

BUCKET = ClaimedResource("Bucket", "1")
EVERYTHING: tuple[Claimed, ...] = (
    BUCKET,
    ClaimedName("Bucket", "b"),
    ClaimedAssociation("Bucket", "1", "l"),
    ClaimedSecret("key"),
)
SENT = operation_pb2.StepsSent(direction=operation_pb2.DIRECTION_DO, steps=[0])


def claims(*claimed: Claimed, step: int = 0, name: str = "b") -> list[journal_pb2.Claim]:
    return [claim_to_pb(Claim(step, Key("Bucket", name), each)) for each in claimed]


async def claim(
    service: Client, begun: Begun, *claimed: Claimed, released: tuple[Claimed, ...] = ()
) -> list[journal_pb2.RefusedClaim]:
    """Make claims with an intent; return the conflicting stacks."""
    request = write_request(
        begun,
        position=begun.position + 1,
        events=[begun.next_event(steps_sent=SENT)],
        claims=claims(*claimed),
        released=claims(*released),
    )
    answer = await service.peer.call(service.journal.AdvanceOperation, request)
    if not answer.refused:
        begun.position, begun.last_seq = begun.position + 1, begun.last_seq + 1
    return list(answer.refused)


async def is_free(service: Client, *claimed: Claimed) -> bool:
    """Whether a third stack gets all of the claims; it releases them."""
    begun = await service.begin("third")
    refused = await claim(service, begun, *claimed)
    await service.abandon(begun)
    return not refused


@pytest.mark.parametrize("what", EVERYTHING, ids=lambda what: type(what).__name__)
async def test_an_item_is_claimed_by_one_operation_at_a_time(service: Client, what: Claimed) -> None:
    first, second = await service.begin("first"), await service.begin("second")
    assert await claim(service, first, what) == []

    [refused] = await claim(service, second, ClaimedName("Bucket", "free"), what)

    assert refused.claim == claims(what)[0]
    assert (refused.stack_id, refused.stack_name) == (first.stack.id, "first")
    assert refused.operation_id == first.operation
    assert refused.since.ToMicroseconds() > 0
    elsewhere = await service.begin("elsewhere", target=ELSEWHERE)
    assert await claim(service, elsewhere, what) == []
    await service.abandon(first)
    assert await claim(service, second, what) == []


async def test_a_write_with_a_refused_claim_changes_nothing(service: Client) -> None:
    first, second = await service.begin("first"), await service.begin("second")
    await claim(service, first, BUCKET)
    free = ClaimedName("Bucket", "free")

    assert await claim(service, second, free, BUCKET)

    assert await is_free(service, free)
    request = journal_pb2.ListEventsRequest(operation_id=second.operation)
    events = (await service.peer.call(service.journal.ListEvents, request)).events
    assert [event.WhichOneof("event") for event in events] == ["accepted"]
    assert await claim(service, second, free) == []


async def test_a_repeated_write_repeats_its_claims(service: Client) -> None:
    first = await service.begin("first")
    await claim(service, first, BUCKET)
    first.position, first.last_seq = first.position - 1, first.last_seq - 1
    assert await claim(service, first, BUCKET) == []
    assert await claim(service, first, BUCKET) == []


async def test_a_stack_may_claim_its_own_resource_and_keeps_it(service: Client) -> None:
    stack = await service.apply("first", [entry("b", "1")])
    begun = await service.begin("first")
    assert await claim(service, begun, BUCKET) == []
    await service.abandon(begun)
    assert [owner[2] for owner in await service.owners([("Bucket", "1")])] == [stack.id]


async def test_no_stack_claims_a_resource_of_another(service: Client) -> None:
    stack = await service.apply("first", [entry("b", "1")])
    [refused] = await claim(service, await service.begin("second"), BUCKET)
    assert (refused.stack_id, refused.operation_id) == (stack.id, "")


async def test_recorded_claims_stay_and_other_claims_are_released(service: Client) -> None:
    first = await service.begin("first")
    await claim(service, first, *EVERYTHING, ClaimedResource("Bucket", "2"))

    stack = await service.record(first, [entry("b", "1")])

    assert [owner[1:3] for owner in await service.owners([("Bucket", "1"), ("Bucket", "2")])] == [("1", stack.id)]
    assert await is_free(service, *EVERYTHING[1:], ClaimedResource("Bucket", "2"))


async def test_a_claimed_resource_is_not_recorded_by_another_stack(service: Client) -> None:
    first, second = await service.begin("first"), await service.begin("second")
    await claim(service, first, BUCKET)
    with pytest.raises(ResourceOwned, match=f"{first.operation} of stack 'first'"):
        await service.record(second, [entry("theirs", "1")])
    await service.record(first, [entry("b", "1")])


async def test_a_blocked_operation_keeps_its_claims(service: Client) -> None:
    first, second = await service.begin("first"), await service.begin("second")
    await claim(service, first, BUCKET)
    await service.abandon(first, state=OPERATION_STATE_BLOCKED)

    assert await claim(service, second, BUCKET)

    heir, _ = await service.claim(first.operation)
    await service.advance(heir, rollback=True, cause="recovered")
    assert await claim(service, second, BUCKET)
    await service.abandon(heir, state=OPERATION_STATE_ROLLED_BACK)
    assert await claim(service, second, BUCKET) == []


async def test_a_released_claim_is_free(service: Client) -> None:
    first = await service.begin("first")
    name = ClaimedName("Dashboard", "board")
    await claim(service, first, name, BUCKET)
    await claim(service, first, released=(name,))
    assert await is_free(service, name)
    assert not await is_free(service, BUCKET)


async def test_a_stackless_operation_claims_until_its_end(service: Client) -> None:
    first, second = await service.begin(none=HERE), await service.begin("second")
    await claim(service, first, BUCKET)
    [refused] = await claim(service, second, BUCKET)
    assert (refused.stack_name, refused.operation_id) == ("", first.operation)
    await service.abandon(first)
    assert await claim(service, second, BUCKET) == []


async def test_adopted_resources_are_claimed_when_a_plan_starts(service: Client) -> None:
    first, second = await service.begin("first", steps=None), await service.begin("second", steps=None)
    taken: list[Claimed] = [ClaimedResource("Bucket", "1"), ClaimedName("Bucket", "b"), ClaimedResource("Bucket", "2")]
    for begun in (first, second):
        await service.plan_for(begun, 3)
    request = start_request(first)
    request.start.claims.extend(claims(*taken))
    await service.peer.call(service.journal.AdvanceOperation, request)
    await service.peer.call(service.journal.AdvanceOperation, request)

    late = start_request(second)
    late.start.claims.extend(claims(*taken, name="mine"))
    with pytest.raises(ResourceOwned) as caught:
        await service.peer.call(service.journal.AdvanceOperation, late)

    assert caught.value.metadata["count"] == "3"
    assert caught.value.metadata["operation"] == first.operation
    for what in ("resource 1", "the name 'b'", "resource 2"):
        assert f"Bucket 'mine' needs {what}, which operation {first.operation} of stack 'first'" in str(caught.value)
    await service.abandon(second)


async def test_owners_include_claims_of_running_operations(service: Client) -> None:
    first = await service.begin("first")
    await claim(service, first, BUCKET)
    assert await service.owners([("Bucket", "1")]) == [("Bucket", "1", first.stack.id, "first", "b")]
