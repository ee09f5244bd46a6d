"""Watches operations to their ends: when an applier dies, another one resumes its operations."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2

from services.core.errors import ServiceUnavailable
from services.gateway.answers import Code
from services.gateway.errors import Problem, retry_after
from services.rpc.call import loop_time
from services.rpc.client import Peer
from services.views.ids import add_ids

Events = AsyncIterator[operation_pb2.OperationEvent]

Begin = Callable[[], Events]
"""Begins an operation. Each call sends the same request id, so a repeated call finds the same operation."""

_OF_OTHERS = (operation_pb2.REJECTION_REASON_RESOURCE_OWNED, operation_pb2.REJECTION_REASON_NAME_TAKEN)
"""The reasons of steps that failed because of another operation."""


@dataclass(slots=True)
class Run:
    """
    The events of an operation, folded.

    Attributes:
        operation: Its id; empty: there was nothing to do, and no operation.
        plan: Id of its plan.
        finished: Its last event.
        outcomes: The outcomes of its steps, and of their undos.
        ids: Ids of the resources of the steps that are in effect, by number of the step.
    """

    operation: str = ""
    plan: str = ""
    finished: operation_pb2.Finished = field(default_factory=operation_pb2.Finished)
    outcomes: list[operation_pb2.StepOutcome] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)

    @property
    def is_done(self) -> bool:
        """Whether the operation succeeded; false if it did not begin."""
        return self.finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED

    @property
    def is_contended(self) -> bool:
        """Whether it was rolled back only because of resources of other operations or stacks."""
        failed = [outcome.failed for outcome in self.outcomes if outcome.HasField("failed")]
        return (
            self.finished.state == operation_pb2.OPERATION_STATE_ROLLED_BACK
            and bool(failed)
            and all(each.reason in _OF_OTHERS for each in failed)
        )

    def add(self, event: operation_pb2.OperationEvent) -> None:
        """Add an event."""
        self.operation = event.operation_id
        add_ids(self.ids, event)
        match event.WhichOneof("event"):
            case "accepted":
                self.plan = event.accepted.plan_id
            case "steps_ended":
                self.outcomes += event.steps_ended.outcomes
            case "steps_undone":
                self.outcomes += event.steps_undone.outcomes
            case "finished":
                self.finished = event.finished


async def run_to_end(applier: Peer, begin: Begin) -> Run:
    """
    Begin an operation and read its events to the last one.

    Raises:
        PkgerError: It did not begin.
        Problem: It may have begun, and no applier sends its events for ``Times.unreachable``.
    """
    run, events, seq, until = Run(), begin(), 0, math.inf
    while True:
        problem = "the applier ended the stream"
        try:
            async for event in events:
                # An event without a number: the operation has no plan yet. If the stream breaks then, the request is
                # repeated.
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
        until = min(until, loop_time() + applier.times.unreachable)
        if loop_time() >= until:
            raise _unfinished(run, problem)
        await asyncio.sleep(applier.times.pause)
        events = _watched(applier, run.operation, seq) if run.operation else begin()


def _watched(applier: Peer, operation: str, seq: int) -> Events:
    request = applier_pb2.WatchOperationRequest(operation_id=operation, after_seq=seq)
    return applier.stream(ApplierServiceStub(applier.channel).WatchOperation, request, seconds=math.inf)


def _may_have_begun(error: ServiceUnavailable) -> bool:
    """Whether the applier may have received the request: an error of another service ends it before it begins."""
    return error.metadata.get("service") == "applier" and error.metadata.get("problem") != "no connection"


def _unfinished(run: Run, problem: str) -> Problem:
    if not run.operation:
        return Problem(Code.UNAVAILABLE, problem, headers=retry_after(1))
    message = (
        f"{problem}; operation {run.operation} is unfinished: an applier will complete it or roll it back; "
        f"see `pkger operations show {run.operation}`"
    )
    return Problem(Code.UNAVAILABLE, message, headers=retry_after(5), metadata={"operation": run.operation})
