"""
Results of a batch are believed only where each says which mutation it is about (docs/reference/engine.md, "Driver
answers").
"""

from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2

from applier_svc.execution.secrets import Secrets
from applier_svc.execution.sender import Sender
from applier_svc.execution.timeouts import Timeouts
from services.core.model import Key, Step, Verb
from services.drivers.embedded.kinds import EMBEDDED
from services.engine.effects import effect_of
from services.engine.effects.effect import Sending
from services.engine.outcome import Done, Outcome, Unknown


class Answering:
    """Replaces a ``Peer``: a driver that answers each batch with these positions."""

    def __init__(self, positions: list[int]) -> None:
        self.channel: Any = Unused()
        self._positions = positions

    async def call(
        self, method: object, request: driver_pb2.MutateRequest, seconds: float
    ) -> driver_pb2.MutateResponse:
        done = [driver_pb2.MutationResult(done=driver_pb2.Done(id=f"id-{at}"), position=at) for at in self._positions]
        return driver_pb2.MutateResponse(results=done)


class Unused:
    """A channel on which nothing is sent."""

    def unary_unary(self, *arguments: object, **named: object) -> None:
        return None

    unary_stream = unary_unary


class Held:
    """A right to write that is never lost."""

    token = 1
    is_shown = False

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        return driver_pb2.Fence(scope="stack", token=self.token)

    async def raise_token(self) -> None:
        self.token += 1


async def outcomes(positions: list[int]) -> list[Outcome]:
    """The outcomes of two creations, by step."""
    steps = [Step(number, 0, Verb.DELETE, Key("Label", f"l{number}"), resource_id=f"r{number}") for number in range(2)]
    effects = [effect_of(step) for step in steps]
    driver: Any = Answering(positions)
    sender = Sender(driver, EMBEDDED, "org", Held(), Timeouts(), Secrets())
    sent = await sender.send(effects, {number: Sending(f"r{number}", "", (), ()) for number in range(2)}, "{}")
    return [sent[number] for number in range(2)]


@pytest.mark.parametrize("positions", [[1, 0], [0, 0], [0], [0, 1, 2], [0, 5], []])
async def test_results_out_of_order_make_all_outcomes_unknown(positions: list[int]) -> None:
    assert all(isinstance(outcome, Unknown) for outcome in await outcomes(positions))


async def test_results_in_order_are_believed() -> None:
    assert await outcomes([0, 1]) == [Done("r0"), Done("r1")]
