"""The last drift detection of a stack: when it is stored, and which responses have it."""

from typing import Any

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import drift_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.stack.v1 import stack_pb2

from services.core.errors import RequestInvalid, StackNotFound
from tests.stack.service import Client, Clock, entry


async def check(service: Client, stack: str, generation: int, **counts: Any) -> bool:
    """Send the counts of a drift detection; return whether they were stored."""
    request = journal_pb2.RecordDriftCheckRequest(
        stack_id=stack, generation=generation, counts=drift_pb2.DriftCounts(**counts)
    )
    return (await service.peer.call(JournalServiceStub(service.peer.channel).RecordDriftCheck, request)).is_stored


async def test_a_drift_detection_is_returned_with_its_time_and_generation(service: Client, clock: Clock) -> None:
    stack = await service.apply("prod", [entry("one")])
    assert await check(service, stack.id, stack.generation, drifted=1, missing=2)

    found = (await service.get(stack.id)).last_drift_check

    assert (found.generation, found.time.ToMicroseconds()) == (stack.generation, clock.now)
    assert found.counts == drift_pb2.DriftCounts(drifted=1, missing=2)
    assert await check(service, stack.id, stack.generation, in_sync=1)
    assert (await service.get(stack.id)).last_drift_check.counts == drift_pb2.DriftCounts(in_sync=1)
    # The etag of the record does not change.
    assert (await service.get(stack.id)).etag == stack.etag


async def test_a_drift_detection_of_an_older_generation_is_not_stored(service: Client) -> None:
    stack = await service.apply("prod", [entry("one")])
    assert await check(service, stack.id, stack.generation, in_sync=1)
    moved = await service.apply("prod", [entry("two")])

    assert not await check(service, stack.id, stack.generation, missing=1)

    found = (await service.get(stack.id)).last_drift_check
    # It is returned with its own, older generation.
    assert (found.generation, moved.generation) == (stack.generation, stack.generation + 1)


async def test_a_drift_detection_during_an_operation_is_not_stored(service: Client) -> None:
    stack = await service.apply("prod", [entry("one")])
    begun = await service.begin("prod")
    assert not await check(service, stack.id, stack.generation, missing=1)
    await service.abandon(begun)
    assert await check(service, stack.id, stack.generation, missing=1)


async def test_a_drift_detection_needs_a_stack_and_valid_counts(service: Client) -> None:
    with pytest.raises(StackNotFound):
        await check(service, "0000000000000000", 1)
    stack = await service.create("prod")
    with pytest.raises(RequestInvalid, match=r"counts\.missing: must not be negative"):
        await check(service, stack.id, 0, missing=-1)
    assert not (await service.get(stack.id)).HasField("last_drift_check")


async def test_a_drift_detection_is_removed_with_its_stack(service: Client) -> None:
    stack = await service.create("prod")
    assert await check(service, stack.id, 0)
    await service.delete(stack.id)
    assert not (await service.get((await service.create("prod")).id)).HasField("last_drift_check")


async def test_watchers_of_a_stack_receive_its_drift_detection(service: Client) -> None:
    stack = await service.create("prod")
    request = stack_pb2.WatchStackRequest(stack=StackRef(id=stack.id))
    messages = service.peer.stream(service.stacks.WatchStack, request)
    assert not (await anext(messages)).stack.HasField("last_drift_check")

    await check(service, stack.id, 0, drifted=1)

    assert (await anext(messages)).stack.last_drift_check.counts.drifted == 1
    await messages.aclose()
