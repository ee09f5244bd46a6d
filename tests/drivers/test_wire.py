"""How mutations ended, as values and as messages."""

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
def test_a_platform_that_asks_for_patience_is_told_apart_from_one_that_does_not(
    result: Result, end: str, reason: int | None, retry_after: float | None
) -> None:
    [message] = results_to_pb([driver_pb2.Mutation()], [result]).results
    assert message.WhichOneof("result") == end
    told = getattr(message, end)
    assert told.message
    assert getattr(told, "reason", None) == reason
    asked = told.retry_after.ToMicroseconds() / 1e6 if told.HasField("retry_after") else None
    assert asked == retry_after
