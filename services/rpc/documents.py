"""Messages of the contract as JSON data: what the command line prints and the HTTP API answers."""

import base64
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from services.kinds.format.canonical import plain


def document_of(message: Message) -> dict[str, Any]:
    """
    A message with the names of its fields as in the contract, also of those that have no value.

    Times are texts (RFC 3339), enums the names of their values, numbers numbers. A member of a oneof, and a message,
    is there only if it is set.
    """
    document: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            document[field.name] = dict(value)
        elif field.is_repeated:
            document[field.name] = [_value(field, item) for item in value]
        else:
            document[field.name] = _value(field, value)
    return document


def data_of(struct: Struct) -> Any:
    """JSON data of a message that holds any, sorted by key; it knows one type of number, so integers are told apart."""
    return orjson.loads(orjson.dumps(plain(json_format.MessageToDict(struct)), option=orjson.OPT_SORT_KEYS))


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.ToJsonString()
    if isinstance(value, Struct):
        return data_of(value)
    if isinstance(value, Message):
        return document_of(value)
    if field.enum_type:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
