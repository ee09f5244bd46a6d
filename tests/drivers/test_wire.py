"""Outcomes of mutations as values and as messages."""

import pytest
from pkger.driver.v1 import driver_pb2

from services.drivers.mutation import Ambiguous, Rejected, Result
from services.drivers.wire import results_to_pb
from services.engine.outcome import RejectionReason


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
