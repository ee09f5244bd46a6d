"""The events of one operation, kept by the service so that a slow caller does not delay the operation."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import object_pb2, operation_pb2

from services.system import Clock

Event = (
    operation_pb2.Begun
    | object_pb2.Violations
    | operation_pb2.Accepted
    | operation_pb2.StageStarted
    | operation_pb2.StepsSent
    | operation_pb2.StepsWaiting
    | operation_pb2.StepsEnded
    | operation_pb2.RollbackStarted
    | operation_pb2.StepsUndone
    | operation_pb2.LateEffects
    | operation_pb2.Finished
    | operation_pb2.ActionStarted
    | operation_pb2.PhaseStarted
    | operation_pb2.PhaseEnded
    | operation_pb2.PhaseRetrying
    | operation_pb2.PhaseProgress
    | operation_pb2.Waiting
    | operation_pb2.ArtifactsRendered
    | operation_pb2.Stopping
)
_FIELDS = {
    field.message_type: field.name for field in operation_pb2.OperationEvent.DESCRIPTOR.oneofs_by_name["event"].fields
}


def dated(operation: str, event: Event, clock: Clock, seq: int = 0) -> operation_pb2.OperationEvent:
    """*event* of an operation, which occurs now; *seq* is 0 if it is not stored."""
    message = operation_pb2.OperationEvent(operation_id=operation, seq=seq, time=_timestamp(clock()))
    getattr(message, _FIELDS[event.DESCRIPTOR]).CopyFrom(event)
    return message


class Feed:
    """
    An append-only list of events that any number of callers follow, each at its own pace.

    Attributes:
        operation: Id of the operation.
    """

    def __init__(self, operation: str, clock: Clock, last_seq: int = 0) -> None:
        """*clock* dates the events; the events of a resumed operation continue after *last_seq*."""
        self.operation = operation
        self._clock = clock
        self._last_seq = last_seq
        self._events: list[operation_pb2.OperationEvent] = []
        self._error: BaseException | None = None
        self._closed = False
        self._grown = asyncio.Condition()

    def stamp(self, *events: Event) -> list[operation_pb2.OperationEvent]:
        """Number and date *events* as the next ones of the operation; nothing is published."""
        return [
            dated(self.operation, event, self._clock, self._last_seq + number) for number, event in enumerate(events, 1)
        ]

    async def publish(self, *events: operation_pb2.OperationEvent) -> None:
        """Append *events*, which are stored."""
        async with self._grown:
            for event in events:
                self._last_seq = event.seq
            self._events.extend(events)
            self._grown.notify_all()

    async def announce(self, *events: Event) -> None:
        """Append *events* that are not stored, and so have no number."""
        async with self._grown:
            self._events.extend(dated(self.operation, event, self._clock) for event in events)
            self._grown.notify_all()

    async def close(self, error: BaseException | None = None) -> None:
        """End the feed; followers get *error* after the last event."""
        async with self._grown:
            self._closed, self._error = True, error
            self._grown.notify_all()

    async def follow(self) -> AsyncIterator[operation_pb2.OperationEvent]:
        """All events from the first to the last; waits for events that have not occurred yet."""
        position = 0
        while position < len(self._events) or not self._closed:
            if position == len(self._events):
                async with self._grown:
                    await self._grown.wait_for(partial(self._is_past, position))
                continue
            yield self._events[position]
            position += 1
        if self._error:
            raise self._error

    async def ends(self) -> None:
        """Wait until the feed is closed, with or without an error."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._closed)

    async def result(self) -> None:
        """Wait until the feed is closed; raises the error with which it was."""
        await self.ends()
        if self._error:
            raise self._error

    async def grows(self) -> None:
        """Wait for the next event, or for the end."""
        position = len(self._events)
        async with self._grown:
            await self._grown.wait_for(partial(self._is_past, position))

    def _is_past(self, position: int) -> bool:
        return len(self._events) > position or self._closed


def _timestamp(microseconds: int) -> Timestamp:
    moment = Timestamp()
    moment.FromMicroseconds(microseconds)
    return moment
