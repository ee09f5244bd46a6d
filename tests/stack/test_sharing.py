"""Owners and users of shared resources (docs/reference/engine.md, "Shared resources")."""

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.model.v1.object_pb2 import ResourceId, StackRef
from pkger.model.v1.operation_pb2 import OPERATION_STATE_SUCCEEDED
from pkger.model.v1.plan_pb2 import PlanRecord
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2 import Stack

from services.core.errors import PlanStale, RequestInvalid, ResourceOwned
from services.core.model import InventoryEntry, Key, Origin, Use
from services.engine.claims import Claim, Claimed, ClaimedAssociation, ClaimedResource, ClaimMode
from services.rpc.convert.claims import claim_to_pb
from services.rpc.convert.objects import key_to_pb, target_to_pb
from services.rpc.convert.plans import use_to_pb
from tests.stack.service import HERE, Begun, Client, Clock, entry, start_request, write_request
from tests.stack.test_claims import SENT

RAW = ("Bucket", "id-raw")
RESOURCE = ClaimedResource(*RAW)
LABELLED = ClaimedAssociation(*RAW, "id-l")


def shared(name: str = "raw", labels: tuple[str, ...] = ()) -> InventoryEntry:
    return entry(name, "id-raw", origin=Origin.SHARED, labels=labels)


async def holders(service: Client) -> tuple[list[tuple[str, list[str]]], list[tuple[str, list[str]]]]:
    """Owner and users of the bucket, each with the labels that it wants."""
    request = stack_pb2.FindOwnersRequest(target=target_to_pb(HERE), resources=[ResourceId(kind=RAW[0], id=RAW[1])])
    answer = await service.peer.call(service.stacks.FindOwners, request)
    owners, users = (
        [(each.stack_name or each.operation_id, list(each.label_ids)) for each in found]
        for found in (answer.owners, answer.users)
    )
    return owners, users


async def start(service: Client, begun: Begun, *used: Claimed, mode: ClaimMode = ClaimMode.USE) -> None:
    """Start an operation with claims to use, or to take over."""
    await service.plan_for(begun, 1)
    request = start_request(begun)
    request.start.claims.extend(claim_to_pb(Claim(0, Key("Bucket", "raw"), each, mode)) for each in used)
    await service.peer.call(service.journal.AdvanceOperation, request)
    begun.position, begun.last_seq = 1, 1


async def claim_removal(service: Client, begun: Begun, what: Claimed) -> list[str]:
    """Claim to remove an item; return the stacks that use it."""
    request = write_request(
        begun,
        position=begun.position + 1,
        events=[begun.next_event(steps_sent=SENT)],
        claims=[claim_to_pb(Claim(0, Key("Bucket", "raw"), what, ClaimMode.REMOVE))],
    )
    answer = await service.peer.call(service.journal.AdvanceOperation, request)
    if not answer.refused:
        begun.position, begun.last_seq = begun.position + 1, begun.last_seq + 1
    assert all(refused.in_use for refused in answer.refused)
    return [refused.stack_name for refused in answer.refused]


async def release_bucket(
    service: Client, begun: Begun, name: str = "raw", labels: tuple[Use, ...] = ()
) -> journal_pb2.FinishOperationResponse:
    """End an operation that leaves the bucket, with labels, to its users."""
    key = key_to_pb(Key("Bucket", name))
    changes = PlanRecord(removed=[key], staying=[key], staying_labels=map(use_to_pb, labels))
    return await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=journal_pb2.Record(changes=changes))


async def test_owners_and_users_are_listed_separately(service: Client, clock: Clock) -> None:
    labels = [entry("l", kind="Label"), entry("raw", labels=["l"])]
    await service.apply("owner", labels)
    await service.apply("second", [shared("theirs")])
    clock.forward(1)
    await service.apply("third", [shared()])

    assert await holders(service) == ([("owner", ["id-l"])], [("second", []), ("third", [])])
    assert [each.resource_count for each in (await service.page()).stacks] == [2, 1, 1]


async def test_a_recorded_use_of_an_unowned_resource_adopts_it(service: Client) -> None:
    stack = await service.apply("second", [shared()])
    assert await holders(service) == ([("second", [])], [])
    assert [each.origin for each in await service.resources(stack.id)] == [Origin.ADOPTED]


@pytest.mark.parametrize("removes", [False, True], ids=["a record", "an uninstall"])
async def test_the_oldest_user_inherits(service: Client, clock: Clock, removes: bool) -> None:
    await service.apply("owner", [entry("raw", origin=Origin.CREATED)])
    for name in ("second", "third"):
        await service.apply(name, [shared()])
        clock.forward(1)
    # A user that writes its entry again keeps its time.
    await service.apply("second", [entry("l", kind="Label"), shared(labels=("l",))])
    before = await service.get_named("second")

    begun = await service.begin("owner")
    await (service.remove(begun) if removes else release_bucket(service, begun))

    assert await holders(service) == ([("second", ["id-l"])], [("third", [])])
    after = await service.get_named("second")
    assert after.generation == before.generation + 1
    assert after.resource_count == before.resource_count
    assert entry("raw", labels=["l"]) in await service.resources(after.id)


@pytest.mark.parametrize("planned", [Origin.SHARED, Origin.ADOPTED], ids=["before", "after"])
async def test_a_running_operation_of_an_heir_ends_as_planned(service: Client, planned: Origin) -> None:
    """The planner looks for owners before the resource is handed over, or after."""
    await service.apply("owner", [entry("raw")])
    await service.apply("second", [shared()])
    begun = await service.begin("second")
    await service.remove(await service.begin("owner"))

    wanted = entry("raw", origin=planned, labels=["l"])
    stack = await service.record(begun, [wanted, entry("l", kind="Label")])

    assert stack.generation == 3
    assert entry("raw", labels=["l"]) in await service.resources(stack.id)


async def test_a_stack_that_inherits_a_resource_it_releases_has_to_keep_it(service: Client) -> None:
    await service.apply("owner", [entry("raw")])
    await service.apply("second", [shared("theirs")])
    begun = await service.begin("second")
    await service.remove(await service.begin("owner"))

    answer = await release_bucket(service, begun, "theirs")

    assert [(key.kind, key.name) for key in answer.orphaned] == [("Bucket", "theirs")]
    assert await holders(service) == ([("second", [])], [])
    kept = entry("theirs", "id-raw")._replace(is_pending_delete=True)
    await service.record(begun, [kept])
    assert await service.resources(begun.stack.id) == (kept,)


async def test_a_stack_that_inherits_a_resource_it_releases_may_hand_it_over(service: Client) -> None:
    await service.apply("owner", [entry("raw")])
    for name in ("second", "third"):
        await service.apply(name, [shared()])
    begun = await service.begin("second")
    await service.remove(await service.begin("owner"))

    assert not (await release_bucket(service, begun)).orphaned

    assert await holders(service) == ([("third", [])], [])


async def test_a_label_that_no_other_record_wants_has_to_stay(service: Client) -> None:
    label = entry("l", kind="Label")
    await service.apply("owner", [label, entry("raw", labels=["l"])])
    await service.apply("second", [label._replace(origin=Origin.SHARED), shared(labels=("l",))])
    used = Use(Key("Bucket", "raw"), *RAW, "id-l")
    begun, theirs = await service.begin("second"), await service.begin("owner")
    assert not (await release_bucket(service, begun, labels=(used,))).orphaned_labels

    answer = await release_bucket(service, theirs, labels=(used,))

    assert list(answer.orphaned_labels) == [use_to_pb(used)]
    assert list(answer.orphaned) == [key_to_pb(Key("Bucket", "raw"))]


@pytest.mark.parametrize("what", [RESOURCE, LABELLED], ids=["resource", "label"])
async def test_a_used_item_cannot_be_removed(service: Client, what: Claimed) -> None:
    label = entry("l", kind="Label")
    await service.apply("owner", [label, entry("raw", labels=["l"])])
    second, owner = await service.begin("second", steps=None), await service.begin("owner")
    await start(service, second, RESOURCE, LABELLED)
    assert await claim_removal(service, owner, what) == ["second"]

    await service.record(second, [label._replace(origin=Origin.SHARED), shared(labels=("l",))])

    assert await claim_removal(service, owner, what) == ["second"]
    await service.remove(await service.begin("second"))
    assert await claim_removal(service, owner, what) == []


async def test_an_item_that_is_being_removed_cannot_be_used(service: Client) -> None:
    await service.apply("owner", [entry("raw")])
    owner, second = await service.begin("owner"), await service.begin("second", steps=None)
    assert await claim_removal(service, owner, RESOURCE) == []

    with pytest.raises(ResourceOwned, match=f"{owner.operation} of stack 'owner'"):
        await start(service, second, RESOURCE)

    await service.abandon(owner)
    await start(service, second, RESOURCE)


async def test_a_resource_without_a_recorded_owner_cannot_be_used(service: Client) -> None:
    second = await service.begin("second", steps=None)
    with pytest.raises(PlanStale, match="no stack owns any more"):
        await start(service, second, RESOURCE)
    first = await service.begin("first")
    await claim_removal(service, first, RESOURCE)
    with pytest.raises(ResourceOwned, match=first.operation):
        await start(service, second, RESOURCE)


async def test_an_unknown_claim_mode_is_refused(service: Client) -> None:
    begun = await service.begin("s", steps=None)
    await service.plan_for(begun, 1)
    request = start_request(begun)
    request.start.claims.add(key=key_to_pb(Key("Bucket", "raw")), secret="k", mode=99)
    with pytest.raises(RequestInvalid, match="99 is not a claim mode"):
        await service.peer.call(service.journal.AdvanceOperation, request)


async def taken(service: Client, begun: Begun) -> Stack:
    """End an operation that takes the bucket over."""
    record = await service.changes_to(begun.stack.id, [entry("mine", "id-raw", origin=Origin.ADOPTED)])
    record.changes.taken_over.append(key_to_pb(Key("Bucket", "mine")))
    await service.finish(begun, OPERATION_STATE_SUCCEEDED, record=record)
    return await service.get(begun.stack.id)


async def nameless(service: Client, *entries: InventoryEntry) -> str:
    """A stack without a name that has *entries*."""
    made = await service.peer.call(service.stacks.CreateStack, stack_pb2.CreateStackRequest(target=target_to_pb(HERE)))
    await service.record(await service.begin(stack_id=made.stack.id), entries)
    return made.stack.id


async def test_a_stack_without_a_name_is_found_with_its_record(service: Client) -> None:
    stack = await nameless(service, entry("raw"), entry("other"))
    request = journal_pb2.FindNamelessStacksRequest(target=target_to_pb(HERE), keys=[key_to_pb(Key("Bucket", "raw"))])
    [found] = (await service.peer.call(service.journal.FindNamelessStacks, request)).stacks
    listed = stack_pb2.ListResourcesRequest(stack=StackRef(id=stack))
    resources = (await service.peer.call(service.stacks.ListResources, listed)).resources
    assert (found.stack, found.entry_count) == (await service.get(stack), 2)
    # Also whether an entry has a baseline, as a plan depends on that.
    assert list(found.entries) == [each for each in resources if each.key.name == "raw"]
    assert [each.lacks_baseline for each in found.entries] == [True]


async def origins(service: Client, stack: str) -> dict[str, Origin]:
    return {each.key.name: each.origin for each in await service.resources(stack)}


async def test_a_stack_takes_over_what_another_one_keeps_as_a_user(service: Client) -> None:
    before = await nameless(service, entry("raw"), entry("other"))
    generation = (await service.get(before)).generation

    stack = await taken(service, await service.begin(stack_id=await nameless(service)))

    # The resource keeps the origin that it had with its owner.
    assert await origins(service, stack.id) == {"mine": Origin.CREATED}
    assert await origins(service, before) == {"raw": Origin.SHARED, "other": Origin.CREATED}
    assert (await service.get(before)).generation == generation + 1
    await service.remove(await service.begin(stack_id=stack.id))
    assert await origins(service, before) == {"raw": Origin.CREATED, "other": Origin.CREATED}


async def test_an_operation_of_the_owner_that_runs_meanwhile_leaves_the_resource_taken_over(service: Client) -> None:
    owner = await nameless(service, entry("raw"))
    begun = await service.begin(stack_id=owner)
    stack = await taken(service, await service.begin(stack_id=await nameless(service)))

    await service.record(begun, [entry("raw", labels=["l"]), entry("l", kind="Label")])

    assert await origins(service, owner) == {"raw": Origin.SHARED, "l": Origin.CREATED}
    assert await origins(service, stack.id) == {"mine": Origin.CREATED}


async def test_what_is_taken_over_is_not_removed_meanwhile(service: Client) -> None:
    owner = await service.begin(stack_id=await nameless(service, entry("raw")))
    begun = await service.begin("second", steps=None)
    await start(service, begun, RESOURCE, mode=ClaimMode.TAKE_OVER)
    assert await claim_removal(service, owner, RESOURCE) == ["second"]


async def test_a_resource_of_a_stack_with_a_name_cannot_be_taken_over(service: Client) -> None:
    await service.apply("owner", [entry("raw")])
    begun = await service.begin(stack_id=await nameless(service), steps=None)
    with pytest.raises(ResourceOwned, match=r"which stack 'owner' .* owns"):
        await start(service, begun, RESOURCE, mode=ClaimMode.TAKE_OVER)
