"""Decodes path, query and body of a request into the message of its RPC; errors name the field."""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Mapping
from typing import Any, cast

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from services.core.errors import RequestInvalid
from services.gateway.transcoding.bindings import Binding

_INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}

_DIFFER = "the path and the rest of the request differ: leave it out of the rest"

_BASE64 = str.maketrans("+/", "-_")
_BASE64_TEXT = re.compile("[A-Za-z0-9_-]*")


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
            if field is None or field.message_type is None or field.is_repeated or _is_time(field):
                raise _unknown_parameter(name)
            path += f"{field.name}."
            if path in wholes:
                raise RequestInvalid(name[:200], f"{field.name} is also set as a whole: send only one of them")
            inner, descriptor = inner.setdefault(field.name, {}), field.message_type
        field = field_of(descriptor, last)
        if field is None or is_map(field):
            raise _unknown_parameter(name)
        value: Any = _json_of(name, text) if field.message_type and not _is_time(field) else text
        if field.is_repeated:
            inner.setdefault(field.name, []).extend(value if isinstance(value, list) else [value])
        elif field.name in inner:
            raise RequestInvalid(name, "is set twice: send it once")
        else:
            inner[field.name] = value
            if value != {}:
                wholes.add(f"{path}{field.name}.")
    return document


def _json_of(name: str, text: str) -> Any:
    """The value of a parameter for a message, decoded from JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RequestInvalid(name, "is no JSON; the parameter is a message, so write it as JSON") from None


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
            _fill_map(getattr(message, field.name), field, value, place)
        elif field.is_repeated:
            if not isinstance(value, list):
                raise RequestInvalid(place, "is no list")
            _fill_list(getattr(message, field.name), field, value, place, is_text)
        elif field.message_type:
            _fill_message(getattr(message, field.name), value, place, is_text)
        else:
            setattr(message, field.name, _scalar(field, value, place, is_text))


def _fill_list(items: Any, field: FieldDescriptor, values: list[Any], place: str, is_text: bool) -> None:
    for index, value in enumerate(values):
        # A repeated parameter has no index.
        at = place if is_text else f"{place}[{index}]"
        if field.message_type:
            _fill_message(items.add(), value, at, is_text)
        else:
            items.append(_scalar(field, value, at, is_text))


def _fill_map(entries: Any, field: FieldDescriptor, value: Any, place: str) -> None:
    if not isinstance(value, dict):
        raise RequestInvalid(place, "is no object")
    kind: FieldDescriptor = field.message_type.fields_by_name["value"]  # type: ignore[union-attr] # of a map
    for key, each in value.items():
        at = f"{place}.{key[:200]}"
        if kind.message_type:
            _fill_message(entries[key], each, at)
        else:
            entries[key] = _scalar(kind, each, at)


def _fill_message(message: Message, value: Any, place: str, is_text: bool = False) -> None:
    # An empty message differs from an absent one.
    message.SetInParent()
    if isinstance(message, Timestamp):
        _fill_time(message, value, place)
    elif isinstance(value, dict):
        _fill(message, value, f"{place}.", is_text)
    else:
        raise RequestInvalid(place, "is no object")


def _fill_time(message: Timestamp, value: Any, place: str) -> None:
    try:
        message.FromJsonString(value)
    except (ValueError, TypeError, AttributeError):
        raise RequestInvalid(place, "is no time such as 2026-01-31T12:00:00Z") from None


def _fill_from_path(message: Message, path: str, text: str) -> None:
    """Set the field of a segment of the path; the rest of the request may set it to the same value, and to no other."""
    *outer, last = path.split(".")
    inner: Any = message
    for step in outer:
        _refuse_other_member(inner, step, path)
        inner = getattr(inner, step)
    _refuse_other_member(inner, last, path)
    field = inner.DESCRIPTOR.fields_by_name[last]
    value = _scalar(field, text, path, True)
    if getattr(inner, last) not in (field.default_value, value):
        raise RequestInvalid(path, _DIFFER)
    setattr(inner, last, value)


def _refuse_other_member(message: Any, name: str, path: str) -> None:
    """Refuse a request that sets another member of the oneof of the field *name*, which a segment of the path fills."""
    oneof = message.DESCRIPTOR.fields_by_name[name].containing_oneof
    if oneof and message.WhichOneof(oneof.name) not in (None, name):
        raise RequestInvalid(path, _DIFFER)


def _scalar(field: FieldDescriptor, value: Any, place: str, is_text: bool = False) -> Any:
    """The value of a field that is not a message; errors leave it out, as it may be a secret."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_BOOL:
            if is_text and value in ("true", "false"):
                return value == "true"
            if not isinstance(value, bool):
                raise RequestInvalid(place, "is neither true nor false")
            return value
        case FieldDescriptor.CPPTYPE_ENUM:
            return _enum(field, value, place)
        case FieldDescriptor.CPPTYPE_STRING:
            if not isinstance(value, str):
                raise RequestInvalid(place, "is no text")
            return _bytes(value, place) if field.type == FieldDescriptor.TYPE_BYTES else value
        case FieldDescriptor.CPPTYPE_FLOAT | FieldDescriptor.CPPTYPE_DOUBLE:
            return _float(value, place)
        case _:
            return _integer(field, value, place)


def _integer(field: FieldDescriptor, value: Any, place: str) -> int:
    least, most = _INTEGERS[field.cpp_type]
    number: int | None = None
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,20}", value):
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if number is None or not least <= number <= most:
        raise RequestInvalid(place, f"is no whole number from {least} to {most}")
    return number


def _float(value: Any, place: str) -> float:
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise RequestInvalid(place, "is no number")


def _enum(field: FieldDescriptor, value: Any, place: str) -> int:
    assert field.enum_type is not None  # noqa: S101 - the caller checked it
    values = field.enum_type.values_by_name
    if isinstance(value, str) and value in values:
        return int(values[value].number)
    if isinstance(value, int) and not isinstance(value, bool) and value in field.enum_type.values_by_number:
        return value
    names = [name for name, each in values.items() if each.number != 0]
    raise RequestInvalid(place, f"is none of {', '.join(names)}")


def _bytes(value: str, place: str) -> bytes:
    text = value.translate(_BASE64).rstrip("=")
    if not _BASE64_TEXT.fullmatch(text) or len(text) % 4 == 1:
        raise RequestInvalid(place, "is no Base64")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _is_time(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == Timestamp.DESCRIPTOR.full_name
