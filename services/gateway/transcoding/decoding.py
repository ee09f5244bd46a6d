"""Decodes path, query and body of a request into the message of its RPC; errors name the field."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.core.errors import RequestInvalid
from services.gateway.transcoding.bindings import Binding
from services.rpc.message_json import TIMES

_WHOLE_NUMBER = re.compile("-?[0-9]{1,20}")
"""A whole number as text."""

_WHOLE_NUMBERS = (FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64)
"""The types of whole numbers in the contracts."""

_DIFFER = "the path and the rest of the request differ: leave it out of the rest"


def decode(
    binding: Binding, path: Mapping[str, str], query: Iterable[tuple[str, str]] = (), body: bytes = b""
) -> Message:
    """
    Decode a request.

    Args:
        binding: The RPC, and its route.
        path: The parameters of the path by name, percent-decoded.
        query: The parameters of the query, decoded, in their order.
        body: The body; an empty one is read as an empty object.

    Raises:
        RequestInvalid: The request contradicts the contract, or sets a field twice.
    """
    message: Message = GetMessageClass(binding.rpc.input_type)()
    pairs = list(query)
    if binding.has_body:
        if pairs:
            raise RequestInvalid(pairs[0][0], "is not a parameter of the query: send all fields in the body")
        _fill(message, _read_body(body), "")
    elif body:
        raise RequestInvalid("body", f"is not allowed for {binding.method}: send all fields in the query")
    else:
        _fill(message, _read_query(binding.rpc.input_type, pairs), "", is_text=True)
    for parameter in binding.parameters:
        _fill_from_path(message, parameter.field, path[parameter.name])
    return message


def field_of(message: Descriptor, name: str) -> FieldDescriptor | None:
    """The field for a member or parameter of that name; None when there is none."""
    for field in message.fields:
        if name in (field.name, field.json_name):
            return field
    return None


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_time(message: Descriptor | None) -> bool:
    """Whether a message is a time or a duration, which is a text in JSON."""
    return message is not None and message.full_name in TIMES


def _read_body(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestInvalid("body", f"is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise RequestInvalid("body", "is no JSON object")
    return document


def _read_query(message: Descriptor, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The query as a document: dots lead into messages, and repeated parameters become a list."""
    document: dict[str, Any] = {}
    wholes: set[str] = set()
    for name, text in pairs:
        *outer, last = name.split(".")
        inner, descriptor, path = document, message, ""
        for step in outer:
            field = field_of(descriptor, step)
            if field is None or field.message_type is None or field.is_repeated or is_time(field.message_type):
                raise _unknown_parameter(name)
            path += f"{field.name}."
            if path in wholes:
                raise RequestInvalid(name[:200], f"{field.name} is also set as a whole: send only one of them")
            inner, descriptor = inner.setdefault(field.name, {}), field.message_type
        field = field_of(descriptor, last)
        if field is None:
            raise _unknown_parameter(name)
        value: Any = _json_of(name, text) if field.message_type and not is_time(field.message_type) else text
        if field.is_repeated and not is_map(field):
            inner.setdefault(field.name, []).extend(value if isinstance(value, list) else [value])
        elif field.name in inner:
            raise RequestInvalid(name, "is set twice: send it once")
        else:
            inner[field.name] = value
            if value != {}:
                wholes.add(f"{path}{field.name}.")
    return document


def _json_of(name: str, text: str) -> Any:
    """The value of a parameter for a message or a map, decoded from JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RequestInvalid(name, "is no JSON; the parameter is a message or a map, so write it as JSON") from None


def _unknown_parameter(name: str) -> RequestInvalid:
    return RequestInvalid(name[:200], "there is no such parameter of this query")


def _fill(message: Message, document: Mapping[str, Any], where: str, is_text: bool = False) -> None:
    """
    Fill a message from JSON data; null is the same as absent.

    Args:
        message: An empty message.
        document: The data.
        where: Path of the message in the request; empty, or with a dot at its end.
        is_text: Whether scalars are texts of a query.
    """
    filled: dict[str, str] = {}
    for name, value in document.items():
        field = field_of(cast("Descriptor", message.DESCRIPTOR), name)
        place = f"{where}{name[:200]}"
        if field is None:
            raise RequestInvalid(place, "there is no such field")
        if value is None:
            continue
        one = field.containing_oneof.full_name if field.containing_oneof else field.full_name
        if one in filled:
            raise RequestInvalid(place, f"conflicts with {where}{filled[one]}: send only one of them")
        filled[one] = name
        if is_map(field):
            if not isinstance(value, dict):
                raise RequestInvalid(place, "is no object")
            for key, each in value.items():
                message.MergeFrom(_with_only(message, field, {key: each}, f"{place}.{key[:200]}", is_text))
        elif field.is_repeated:
            if not isinstance(value, list):
                raise RequestInvalid(place, "is no list")
            _fill_list(message, field, value, place, is_text)
        elif field.message_type and not is_time(field.message_type):
            _fill_message(getattr(message, field.name), value, place, is_text)
        elif isinstance(value, str) and field.type == FieldDescriptor.TYPE_STRING:
            # Most values of large requests are texts, which need no conversion.
            setattr(message, field.name, value)
        else:
            message.MergeFrom(_with_only(message, field, value, place, is_text))


def _fill_list(message: Message, field: FieldDescriptor, values: list[Any], place: str, is_text: bool) -> None:
    for index, value in enumerate(values):
        # A repeated parameter has no index.
        at = place if is_text else f"{place}[{index}]"
        if field.message_type:
            _fill_message(getattr(message, field.name).add(), value, at, is_text)
        else:
            message.MergeFrom(_with_only(message, field, [value], at, is_text))


def _fill_message(message: Message, value: Any, place: str, is_text: bool) -> None:
    # An empty message differs from an absent one.
    message.SetInParent()
    if not isinstance(value, dict):
        raise RequestInvalid(place, "is no object")
    _fill(message, value, f"{place}.", is_text)


def _fill_from_path(message: Message, path: str, text: str) -> None:
    """Set the field of a segment of the path; the rest of the request may set it to the same value, and to no other."""
    *outer, last = path.split(".")
    inner: Any = message
    for step in outer:
        _refuse_other_member(inner, step, path)
        inner = getattr(inner, step)
    _refuse_other_member(inner, last, path)
    field = inner.DESCRIPTOR.fields_by_name[last]
    value = getattr(_with_only(inner, field, text, path, is_text=True), last)
    if getattr(inner, last) not in (field.default_value, value):
        raise RequestInvalid(path, _DIFFER)
    setattr(inner, last, value)


def _refuse_other_member(message: Any, name: str, path: str) -> None:
    """Refuse a request that sets another member of the oneof of the field *name*, which a segment of the path fills."""
    oneof = message.DESCRIPTOR.fields_by_name[name].containing_oneof
    if oneof and message.WhichOneof(oneof.name) not in (None, name):
        raise RequestInvalid(path, _DIFFER)


def _with_only(message: Message, field: FieldDescriptor, value: Any, place: str, is_text: bool) -> Message:
    """
    A message of the type of *message* with only one field, from its JSON.

    Raises:
        RequestInvalid: The JSON is invalid. The error of protobuf is not used: it may quote the value, which may be a
            secret, and it does not always name the field.
    """
    [single] = value.values() if is_map(field) else value if field.is_repeated else [value]
    kind = cast("Descriptor", field.message_type).fields_by_name["value"] if is_map(field) else field
    if is_text and kind.type == FieldDescriptor.TYPE_BOOL and single in ("true", "false"):
        value = single == "true"
    try:
        if kind.enum_type:
            _check_value(kind.enum_type, single)
        elif kind.type in _WHOLE_NUMBERS:
            _check_whole_number(single)
        return ParseDict({field.name: value}, type(message)())
    except (ParseError, TypeError):
        raise RequestInvalid(place, f"is {_expected(kind)}") from None


def _check_whole_number(value: Any) -> None:
    """
    Refuse a text that protobuf reads as a float, which rounds large numbers, or as Python reads numbers.

    Raises:
        ParseError: The value is such a text.
    """
    if isinstance(value, str) and not _WHOLE_NUMBER.fullmatch(value):
        raise ParseError


def _check_value(enum: EnumDescriptor, value: Any) -> None:
    """
    Refuse a number that an enum does not have, which protobuf accepts.

    Raises:
        ParseError: The enum has no such value.
        TypeError: The value is neither a name nor a number.
    """
    names = enum.values_by_name if isinstance(value, str) else enum.values_by_number
    if isinstance(value, bool) or value not in names:
        raise ParseError


def _expected(field: FieldDescriptor) -> str:
    """What an invalid value of a field is not, for messages."""
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return "no text"
        case FieldDescriptor.TYPE_BOOL:
            return "neither true nor false"
        case FieldDescriptor.TYPE_INT32 | FieldDescriptor.TYPE_INT64:
            bits = 31 if field.type == FieldDescriptor.TYPE_INT32 else 63
            return f"no whole number from {-(2**bits)} to {2**bits - 1}"
        case FieldDescriptor.TYPE_ENUM if field.enum_type:
            return f"none of {', '.join(value.name for value in field.enum_type.values if value.number)}"
        case FieldDescriptor.TYPE_MESSAGE:
            return "no time such as 2026-01-31T12:00:00Z"
        case _:
            return "no value of its type"
