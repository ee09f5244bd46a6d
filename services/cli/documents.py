"""Data on standard output: messages of the contract as documents, and documents as JSON or YAML."""

import base64
from collections.abc import Iterable
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from services.cli.escapes import escaped
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


def text_document(document: Any, output: str, one_line: bool = False) -> str:
    """
    *document* as text.

    Args:
        document: JSON data.
        output: "json" or "yaml".
        one_line: Of JSON: without indentation. YAML then begins with ``---``, as one document of several.
    """
    if output == "yaml":
        return ("---\n" if one_line else "") + _yaml(document)
    # JSON text stays what it is when characters in it are escaped.
    return escaped(orjson.dumps(document, option=0 if one_line else orjson.OPT_INDENT_2).decode())


def _yaml(document: Any) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=100)
    if escaped(text) != text:
        # A scalar cannot hold an escape unless it is quoted, which YAML does for what is not ASCII.
        text = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=False, width=100)
    return text.removesuffix("...\n").rstrip("\n")


def print_document(document: Any, output: str) -> None:
    """Print one document."""
    _print(text_document(document, output))


def print_records(documents: Iterable[Any], output: str) -> None:
    """Print each of *documents* as soon as it is there: JSON one a line, YAML as documents of a stream."""
    for document in documents:
        _print(text_document(document, output, one_line=True))


def _print(text: str) -> None:
    # Not through a terminal's view of it: documents have no colours, and may be large.
    print(text, flush=True)
