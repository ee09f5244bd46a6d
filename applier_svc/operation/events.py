"""The messages of one operation, kept by the service so that a slow caller does not delay the operation."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import object_pb2, operation_pb2

from services.machine import Clock

Event = (
    operation_pb2.Accepted
    | operation_pb2.StageStarted
    | operation_pb2.StepsSent
    | operation_pb2.StepsWaiting
    | operation_pb2.StepsEnded
    | operation_pb2.RollbackStarted
    | operation_pb2.StepsUndone
    | operation_pb2.LateEffects
    | operation_pb2.Finished
)
_FIELDS = {
    field.message_type: field.name for field in operation_pb2.OperationEvent.DESCRIPTOR.oneofs_by_name["event"].fields
}


@dataclass(frozen=True, slots=True)
class Begun:
    """The operation *operation* has the lease of its stack."""

    operation: str


Message = Begun | operation_pb2.OperationEvent | object_pb2.Violations


class Feed:
    """
    An append-only list of messages that any number of callers follow, each at its own pace.

    Attributes:
        operation: Name of the operation.
    """

    def __init__(self, operation: str, clock: Clock, last_seq: int = 0) -> None:
        """*clock* dates the events; the events of a resumed operation continue after *last_seq*."""
        self.operation = operation
        self._clock = clock
        self._last_seq = last_seq
        self._messages: list[Message] = []
        self._error: BaseException | None = None
        self._closed = False
        self._grown = asyncio.Condition()

    def stamp(self, *events: Event) -> list[operation_pb2.OperationEvent]:
        """Number and date *events* as the next ones of the operation; nothing is published."""
        stamped = [
            operation_pb2.OperationEvent(
                operation=self.operation, seq=self._last_seq + number, time=_timestamp(self._clock())
            )
            for number in range(1, len(events) + 1)
        ]
        for message, event in zip(stamped, events, strict=True):
            getattr(message, _FIELDS[event.DESCRIPTOR]).CopyFrom(event)
        return stamped

    async def publish(self, *messages: Message) -> None:
        """Append messages: the name of the operation, stored events, or violations of a package."""
        async with self._grown:
            for message in messages:
                if isinstance(message, operation_pb2.OperationEvent):
                    self._last_seq = message.seq
            self._messages.extend(messages)
            self._grown.notify_all()

    async def close(self, error: BaseException | None = None) -> None:
        """End the feed; followers get *error* after the last message."""
        async with self._grown:
            self._closed, self._error = True, error
            self._grown.notify_all()

    async def follow(self) -> AsyncIterator[Message]:
        """All messages from the first to the last, waiting for those to come."""
        position = 0
        while position < len(self._messages) or not self._closed:
            if position == len(self._messages):
                async with self._grown:
                    await self._grown.wait_for(partial(self._is_past, position))
                continue
            yield self._messages[position]
            position += 1
        if self._error:
            raise self._error

    async def ends(self) -> None:
        """Wait until the feed is closed, with or without an error."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._closed)

    async def grows(self) -> None:
        """Wait for the next message, or for the end."""
        position = len(self._messages)
        async with self._grown:
            await self._grown.wait_for(partial(self._is_past, position))

    def _is_past(self, position: int) -> bool:
        return len(self._messages) > position or self._closed


def _timestamp(microseconds: int) -> Timestamp:
    moment = Timestamp()
    moment.FromMicroseconds(microseconds)
    return moment
