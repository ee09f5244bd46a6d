"""Messages of the contract as JSON data, as the command line prints and the HTTP API returns them."""

import base64
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp


def document_of(message: Message) -> dict[str, Any]:
    """
    A message as a mapping from all its field names, including fields without a value.

    Times are texts (RFC 3339), and so are durations ("1.5s"); enums are the names of their values, and all numbers stay
    numbers. Members of a oneof and submessages are present only if they are set.
    """
    document: dict[str, Any] = {}
    for name, has_presence, write in _writers(message.DESCRIPTOR):
        if not has_presence or message.HasField(name):
            value = getattr(message, name)
            document[name] = value if write is None else write(value)
    return document


TIMES = frozenset({Timestamp.DESCRIPTOR.full_name, Duration.DESCRIPTOR.full_name})
"""Full names of the messages that are texts in JSON."""

Write = Callable[[Any], Any]
"""Converts the value of a field to JSON data."""


@cache
def _writers(descriptor: Any) -> tuple[tuple[str, bool, Write | None], ...]:
    """For each field of a type: name, whether it can be absent, and its conversion; None: it needs none."""
    return tuple((field.name, field.has_presence, _writer(field)) for field in descriptor.fields)


def _writer(field: Any) -> Write | None:
    if field.message_type and field.message_type.GetOptions().map_entry:
        return _sorted
    one = _writer_of_one(field)
    if field.is_repeated:
        return list if one is None else lambda values: [one(value) for value in values]
    return one


def _sorted(entries: Any) -> dict[Any, Any]:
    """The entries of a map by key: the order of protobuf differs from process to process."""
    return dict(sorted(entries.items()))


def _writer_of_one(field: Any) -> Write | None:
    if field.message_type:
        if field.message_type.full_name in TIMES:
            return lambda time: time.ToJsonString()
        return document_of
    if field.enum_type:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, number)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode()
    return None
