"""JSON Schemas (2020-12) of the messages in requests and answers, with an example of each."""

from collections.abc import Iterable, Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.core.model import LABEL
from services.gateway.transcoding.decoding import is_map, is_time

REF = "#/components/schemas/"

EXAMPLES: Mapping[str, Any] = {
    "pkger.model.v1.StackRef": {"target": {"platform": "embedded", "org": "default"}, "name": "fleet"},
    "pkger.planner.v1.ExportFilter.labels": ["fleet"],
    "author": "alice",
    "action_set": "backup-fleet",
    "blueprint": "stack-backup",
    "function": "ExportStack",
    "base_generation": 3,
    "description": "Buckets and labels of the fleet",
    "digest": "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
    "env_key": "retention",
    "generation": 3,
    "holder": "applier-1:4711",
    "id": "0a1b2c3d4e5f6071",
    "kind": LABEL,
    "kinds": [LABEL],
    "label_id": "1a2b3c4d5e6f7081",
    "message": "the platform refuses the name",
    "name_glob": "fleet-*",
    "new_name": "fleet-2",
    "number": 1,
    "old": 1,
    "new": 2,
    "operation_id": "0123456789abcdef",
    "org": "default",
    "package_digest": "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
    "page_size": 50,
    "page_token": "",
    "next_page_token": "",
    "path": "/color",
    "plan_id": "0123456789abcdef",
    "platform": "embedded",
    "pointer": "/color",
    "position": "",
    "reason": "the color is new",
    "request_id": "fleet-2026-11-22",
    "resource_id": "0a1b2c3d4e5f6071",
    "revision": 2,
    "schema_json": '{"type": "object"}',
    "seq": 1,
    "source": "fleet.yml",
    "sources": ["fleet.yml"],
    "stages": ["primary"],
    "spec_json": '{"color": "#326bba", "name": "fleet"}',
    "stack_id": "0a1b2c3d4e5f6071",
    "text": "apiVersion: influxdata.com/v2alpha1\nkind: Label\nmetadata: {name: fleet}\nspec: {name: fleet}\n",
    "title": "Write color",
    "url": "https://example.com/fleet.yml",
    "urls": ["https://example.com/fleet.yml"],
}
"""Example values of fields, by full name or by name; other fields have an example for their type."""

_SCALARS: Mapping[int, tuple[dict[str, Any], Any]] = {
    FieldDescriptor.TYPE_STRING: ({"type": "string"}, "fleet"),
    FieldDescriptor.TYPE_BOOL: ({"type": "boolean"}, False),
    FieldDescriptor.TYPE_INT32: ({"type": "integer", "format": "int32"}, 0),
    FieldDescriptor.TYPE_INT64: ({"type": "integer", "format": "int64"}, 0),
}
"""Schema and example by type of a field: all types that the contracts use."""

_TEXTS: Mapping[str, tuple[dict[str, Any], Any]] = {
    Timestamp.DESCRIPTOR.full_name: ({"type": "string", "format": "date-time"}, "2026-11-22T12:00:00Z"),
    Duration.DESCRIPTOR.full_name: ({"type": "string", "pattern": r"^-?\d+(\.\d{1,9})?s$"}, "90s"),
}
"""Schema and example of the messages that are texts in JSON."""

_DEEPEST_EXAMPLE = 4
"""Most levels of nested messages in an example; deeper messages are left out."""


class Schemas:
    """Makes the schemas of messages."""

    def __init__(self, comments: Mapping[str, str], requests: Iterable[Descriptor]) -> None:
        """
        Args:
            comments: Comments of the contracts, by full name.
            requests: Messages of requests, whose fields may be absent; other messages have all fields.
        """
        self._comments = comments
        self._lenient = {message.full_name for request in requests for message in _reachable(request)}

    def components(self, messages: Iterable[Descriptor]) -> dict[str, Any]:
        """The schemas of *messages*, and of the messages and enums that they use, by full name, sorted."""
        schemas: dict[str, Any] = {}
        for root in messages:
            for message in _reachable(root):
                schemas[message.full_name] = self._message(message)
                for field in message.fields:
                    if field.enum_type:
                        schemas[field.enum_type.full_name] = self._enum(field.enum_type)
        return dict(sorted(schemas.items()))

    def field(self, field: FieldDescriptor) -> dict[str, Any]:
        """The schema of a field, with its comment."""
        schema = self._value_of(field)
        comment = self._comments.get(field.full_name, "")
        return {**schema, **({"description": comment} if comment else {})}

    def _value_of(self, field: FieldDescriptor) -> dict[str, Any]:
        if is_map(field):
            value: FieldDescriptor = field.message_type.fields_by_name["value"]  # type: ignore[union-attr] # of a map
            schema: dict[str, Any] = {"type": "object", "additionalProperties": _value(value)}
        else:
            schema = {"type": "array", "items": _value(field)} if field.is_repeated else _value(field)
        return {**schema, **({"writeOnly": True} if field.GetOptions().debug_redact else {})}

    def _message(self, message: Descriptor) -> dict[str, Any]:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {field.name: self.field(field) for field in message.fields},
            "additionalProperties": False,
        }
        if comment := self._comments.get(message.full_name):
            schema["description"] = comment
        if message.full_name not in self._lenient:
            schema["required"] = [field.name for field in message.fields if not field.has_presence]
        if alternatives := _alternatives(message):
            schema["allOf"] = alternatives
        schema["examples"] = [example_of(message)]
        return schema

    def _enum(self, enum: EnumDescriptor) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string", "enum": [value.name for value in enum.values]}
        if comment := self._comments.get(enum.full_name):
            schema["description"] = comment
        return schema


def _alternatives(message: Descriptor) -> list[dict[str, Any]]:
    """For each oneof of a message, the rule that at most one of its members is present."""
    rules = []
    for one in message.oneofs:
        if len(one.fields) > 1:
            members = [{"required": [field.name]} for field in one.fields]
            rules.append({"oneOf": [*members, {"not": {"anyOf": members}}]})
    return rules


def example_of(message: Descriptor, depth: int = 0) -> dict[str, Any]:
    """An example of a message, with the first member of each oneof, and one item in each list."""
    if message.full_name in EXAMPLES:
        return dict(EXAMPLES[message.full_name])
    example: dict[str, Any] = {}
    chosen: set[str] = set()
    for field in message.fields:
        if (one := field.containing_oneof) is not None:
            if one.name in chosen:
                continue
            chosen.add(one.name)
        if field.message_type and not is_time(field.message_type) and depth >= _DEEPEST_EXAMPLE:
            # Repeated fields are required, so they are present and empty.
            if field.is_repeated:
                example[field.name] = {} if is_map(field) else []
            continue
        example[field.name] = example_of_field(field, depth)
    return example


def example_of_field(field: FieldDescriptor, depth: int = 0) -> Any:
    """An example of a field; *depth* is the nesting level of its message."""
    value = _example_of_value(field, depth)
    if is_map(field):
        return {"key": value}
    return [value] if field.is_repeated and not isinstance(value, list) else value


def _example_of_value(field: FieldDescriptor, depth: int) -> Any:
    if is_map(field):
        field = field.message_type.fields_by_name["value"]  # type: ignore[union-attr] # of a map
    if field.message_type:
        if is_time(field.message_type):
            return _TEXTS[field.message_type.full_name][1]
        return example_of(field.message_type, depth + 1)
    if field.enum_type:
        return field.enum_type.values[min(1, len(field.enum_type.values) - 1)].name
    for name in (field.full_name, field.name):
        if name in EXAMPLES:
            return EXAMPLES[name]
    return "" if field.name.endswith("_json") else _SCALARS[field.type][1]


def _value(field: FieldDescriptor) -> dict[str, Any]:
    """The schema of one value of a field."""
    if field.message_type:
        if is_time(field.message_type):
            return dict(_TEXTS[field.message_type.full_name][0])
        return {"$ref": f"{REF}{field.message_type.full_name}"}
    if field.enum_type:
        return {"$ref": f"{REF}{field.enum_type.full_name}"}
    return dict(_SCALARS[field.type][0])


def _reachable(message: Descriptor) -> list[Descriptor]:
    """A message and all messages in its fields, except entries of maps and messages with a JSON form of their own."""
    messages: dict[str, Descriptor] = {}
    waiting = [message]
    while waiting:
        each = waiting.pop()
        if each.full_name in messages:
            continue
        if not each.GetOptions().map_entry:
            messages[each.full_name] = each
        waiting += [
            field.message_type for field in each.fields if field.message_type and not is_time(field.message_type)
        ]
    return list(messages.values())
