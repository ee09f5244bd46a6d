"""Bounds the answers of drivers: a faulty driver must not take the memory of the service that reads them."""

from collections.abc import Callable, Iterable, Sequence
from sys import getsizeof
from typing import Any

from google.protobuf.descriptor import Descriptor
from grpc import ChannelConnectivity
from pkger.driver.v1 import driver_pb2

from services.core.model import Resource, Spec
from services.rpc.channel import Channel
from services.rpc.wire_fields import has_more_fields

Serialize = Callable[[Any], bytes]
Deserialize = Callable[[bytes], Any]

MOST_RESOURCES = 1_000_000
"""Largest number of resources, or of other items, that a driver may return for one question."""

MOST_MEMORY = 512 * 1024 * 1024
"""
Most memory, in bytes, that they may take as values.

It is counted in memory, and not in bytes on the wire: one character beyond U+FFFF makes a text take four times its
length. A plan reads two listings, the next message is decoded beside them, and planners should get by with 1.5 GB.
"""

SMALL_MESSAGE = 4 * 1024 * 1024
"""A message up to this size is decoded as it is: its items take a quarter of a gigabyte at most."""

MOST_FIELDS = 1_000_000
"""Most fields, with those of nested messages, of a larger message. A field of two bytes takes 100 bytes in memory."""

_ITEM_BYTES = 300
"""Memory of an item beside its texts: its tuple, its spec, and its place in the indexes that a plan makes."""

_REFERENCE_BYTES = 80
"""Memory of a reference beside its texts."""

_ANSWERS: dict[str, Descriptor] = {
    f"/{service.full_name}/{method.name}": method.output_type
    for service in driver_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


class TooMuch(Exception):
    """A driver returned more than it may; the message says of what, and the bound."""


class AnswerSize:
    """
    Counts what a driver returns for one question, in one message or many.

    Each ``add`` method raises ``TooMuch`` beyond the bound.
    """

    def __init__(self) -> None:
        self._most, self._memory = MOST_RESOURCES, MOST_MEMORY
        self._count = self._bytes = 0

    def add(self, resources: Sequence[Resource]) -> Sequence[Resource]:
        """Count resources, and return them."""
        for resource in resources:
            texts = [resource.kind, resource.id, *resource.label_ids, *resource.unexpressed]
            for reference in resource.references:
                texts += (reference.pointer, reference.kind, reference.id)
            self._bytes += _REFERENCE_BYTES * len(resource.references) + sum(map(getsizeof, texts))
            self._add(resource.spec)
        return resources

    def add_specs(self, specs: Iterable[Spec]) -> None:
        """Count specs."""
        for spec in specs:
            self._add(spec)

    def _add(self, spec: Spec) -> None:
        self._count += 1
        self._bytes += _ITEM_BYTES + getsizeof(spec.text) + getsizeof(spec.display_name)
        if self._count > self._most:
            raise TooMuch(f"it returned more than {self._most:,} resources")
        if self._bytes > self._memory:
            raise TooMuch(f"it returned resources that take more than {self._memory // 2**20:,} MiB of memory")


class Oversized:
    """In place of a message that has too many fields to be decoded."""

    problem = f"it returned a message with more than {MOST_FIELDS:,} fields"


OVERSIZED = Oversized()


class BoundedChannel:
    """
    A channel to a driver, which does not decode a message with too many fields.

    gRPC bounds the bytes of a message. Those of 64 MiB of empty items take 3.7 GB once they are decoded.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def unary_unary(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """As ``Channel.unary_unary``; the response may be ``OVERSIZED``."""
        return self._channel.unary_unary(
            method, request_serializer, _bounded(method, response_deserializer), _registered_method
        )

    def unary_stream(
        self,
        method: str,
        request_serializer: Serialize | None = None,
        response_deserializer: Deserialize | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """As ``Channel.unary_stream``; a response may be ``OVERSIZED``."""
        return self._channel.unary_stream(
            method, request_serializer, _bounded(method, response_deserializer), _registered_method
        )

    async def channel_ready(self) -> None:
        """As ``Channel.channel_ready``."""
        await self._channel.channel_ready()

    async def wait_for_state_change(self, last_observed_state: ChannelConnectivity) -> None:
        """As ``Channel.wait_for_state_change``."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def close(self) -> None:
        """As ``Channel.close``."""
        await self._channel.close()


def _bounded(method: str, deserialize: Deserialize | None) -> Deserialize | None:
    """*deserialize*, which returns ``OVERSIZED`` for a message with too many fields."""
    descriptor = _ANSWERS.get(method)
    if deserialize is None or descriptor is None:
        return deserialize

    def read(encoded: bytes) -> Any:
        if len(encoded) > SMALL_MESSAGE and has_more_fields(encoded, descriptor, MOST_FIELDS):
            return OVERSIZED
        return deserialize(encoded)

    return read
