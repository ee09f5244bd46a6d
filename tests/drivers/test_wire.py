"""Outcomes of mutations and lists of resources, as values and as messages."""

import pytest
from pkger.driver.v1 import driver_pb2

from services.core.model import Reference
from services.drivers.mutation import Ambiguous, Rejected, ResourceId, Result, StoredResource
from services.drivers.wire import chunks_to_pb, results_to_pb
from services.engine.outcome import RejectionReason
from services.rpc.parts import MAX_PART_BYTES


@pytest.mark.parametrize(
    ("result", "end", "reason", "retry_after"),
    [
        (Rejected(RejectionReason.NAME_TAKEN, "no"), "rejected", 1, None),
        (Rejected(None, "later", 0.0), "rejected", 0, 0.0),
        (Rejected(None, "later", 1.5), "rejected", 0, 1.5),
        (Ambiguous("who knows"), "ambiguous", None, None),
        (Ambiguous("later", 30.0), "ambiguous", None, 30.0),
    ],
)
def test_the_wait_of_a_throttling_platform_is_part_of_the_message(
    result: Result, end: str, reason: int | None, retry_after: float | None
) -> None:
    [message] = results_to_pb([driver_pb2.Mutation()], [result]).results
    assert message.WhichOneof("result") == end
    outcome = getattr(message, end)
    assert outcome.message
    assert getattr(outcome, "reason", None) == reason
    asked = outcome.retry_after.ToMicroseconds() / 1e6 if outcome.HasField("retry_after") else None
    assert asked == retry_after


def test_labels_and_references_add_to_the_size_of_a_chunk() -> None:
    labels = tuple(f"{n:016x}" for n in range(500))
    references = tuple(Reference(f"/{n:0100}", "Task", f"{n:016x}") for n in range(100))
    for resource in (
        StoredResource(ResourceId("Task", "1"), "{}", "", label_ids=labels),
        StoredResource(ResourceId("Task", "1"), "{}", "", references=references),
    ):
        chunks = list(chunks_to_pb([resource] * 1000))
        assert sum(len(chunk.resources) for chunk in chunks) == 1000
        assert len(chunks) > 1
        assert max(chunk.ByteSize() for chunk in chunks) <= MAX_PART_BYTES
