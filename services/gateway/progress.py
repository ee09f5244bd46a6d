"""Follows operations to their ends: an applier that dies leaves them to another one."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2

from services.core.errors import ServiceUnavailable
from services.gateway.answers import Code
from services.gateway.errors import Problem, retry_after
from services.rpc.call import loop_time
from services.rpc.client import Peer

PATIENCE_SECONDS = 60.0
"""How long an operation that began may be without an applier before the client is told to look for itself."""

PAUSE_SECONDS = 0.5


class Answered(Protocol):
    """A message of a stream of events."""

    @property
    def event(self) -> operation_pb2.OperationEvent:
        """What happened."""


Begin = Callable[[], AsyncIterator[Answered]]
"""Begins an operation. With its request id, it begins the same one when it is called again."""


@dataclass(slots=True)
class Run:
    """
    An operation that is over.

    Attributes:
        operation: Its name; empty: there was nothing to do, and no operation.
        plan: Name of its plan.
        finished: Its last event.
        outcomes: How its steps ended, and the inverses of those that were taken back.
    """

    operation: str = ""
    plan: str = ""
    finished: operation_pb2.Finished = field(default_factory=operation_pb2.Finished)
    outcomes: list[operation_pb2.StepOutcome] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        """Whether it did what it was to do; false for one that did not begin."""
        return self.finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED

    @property
    def is_contended(self) -> bool:
        """Whether it was taken back for nothing but what other operations had, or stacks that came in between."""
        failed = [outcome.failed for outcome in self.outcomes if outcome.HasField("failed")]
        return (
            self.finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
            and bool(failed)
            and all(each.reason == operation_pb2.REJECTION_REASON_RESOURCE_OWNED for each in failed)
        )

    def add(self, event: operation_pb2.OperationEvent) -> None:
        """Add what happened."""
        self.operation = event.operation
        match event.WhichOneof("event"):
            case "accepted":
                self.plan = event.accepted.plan
            case "steps_ended":
                self.outcomes += event.steps_ended.outcomes
            case "steps_undone":
                self.outcomes += event.steps_undone.outcomes
            case "finished":
                self.finished = event.finished


async def to_its_end(applier: Peer, begin: Begin) -> Run:
    """
    Begin an operation and read its events to the last one.

    Raises:
        PkgerError: It did not begin.
        Problem: It began, and no applier tells how it goes on.
    """
    run, answers, seq, until = Run(), begin(), 0, math.inf
    while True:
        problem = "the applier ended the stream"
        try:
            async for answer in answers:
                event = answer.event
                if event.seq <= seq:
                    continue
                seq, until = event.seq, math.inf
                run.add(event)
                if event.HasField("finished"):
                    return run
            if not run.operation:
                return run
        except ServiceUnavailable as error:
            if not run.operation and not _may_have_begun(error):
                raise
            problem = str(error)
        until = min(until, loop_time() + PATIENCE_SECONDS)
        if loop_time() >= until:
            raise _unfinished(run, problem)
        await asyncio.sleep(PAUSE_SECONDS)
        answers = _watched(applier, run.operation, seq) if run.operation else begin()


def _watched(applier: Peer, operation: str, seq: int) -> AsyncIterator[applier_pb2.WatchOperationResponse]:
    request = applier_pb2.WatchOperationRequest(operation=operation, after_seq=seq)
    return applier.stream(ApplierServiceStub(applier.channel).WatchOperation, request, seconds=None)


def _may_have_begun(error: ServiceUnavailable) -> bool:
    """Whether the applier may have got the request: nobody else refuses it before it begins."""
    return error.metadata.get("service") == "applier" and error.metadata.get("problem") != "no connection"


def _unfinished(run: Run, problem: str) -> Problem:
    if not run.operation:
        return Problem(Code.UNAVAILABLE, problem, headers=retry_after(1))
    told = f"{problem}; {run.operation} is not over: an applier will finish or undo it, `pkger operations show` tells"
    return Problem(Code.UNAVAILABLE, told, headers=retry_after(5), metadata={"operation": run.operation})
