"""Reads the comments of the contracts, which the build stores beside the generated code."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6
"""Field numbers of FileDescriptorProto, from which the paths of locations are made."""

_FIELDS, _NESTED, _METHODS, _VALUES = 2, 3, 2, 2
"""Field numbers of DescriptorProto (fields, nested messages), ServiceDescriptorProto and EnumDescriptorProto."""


def read_comments() -> dict[str, str]:
    """The comments of messages, fields, enums and their values, services and RPCs, by full name."""
    return {name: text for file in read_contracts().file for name, text in _comments_of(file)}


def read_contracts() -> FileDescriptorSet:
    """All protos of pkger, with their comments."""
    return FileDescriptorSet.FromString(files("pkger").joinpath("contracts.binpb").read_bytes())


def _comments_of(file: FileDescriptorProto) -> Iterable[tuple[str, str]]:
    texts = {
        tuple(each.path): each.leading_comments for each in file.source_code_info.location if each.leading_comments
    }
    named: Any
    for number, named, inner in ((_MESSAGES, file.message_type, "field"), (_SERVICES, file.service, "method")):
        for index, each in enumerate(named):
            yield from _within(texts, (number, index), f"{file.package}.{each.name}", each, inner)
    for index, enum in enumerate(file.enum_type):
        yield from _at(texts, (_ENUMS, index), f"{file.package}.{enum.name}")
        for place, value in enumerate(enum.value):
            yield from _at(texts, (_ENUMS, index, _VALUES, place), f"{file.package}.{enum.name}.{value.name}")


def _within(
    texts: Mapping[tuple[int, ...], str], path: tuple[int, ...], name: str, parent: Any, inner: str
) -> Iterable[tuple[str, str]]:
    """The comments of a message or a service, and of its fields, nested messages or methods."""
    yield from _at(texts, path, name)
    for index, each in enumerate(getattr(parent, inner)):
        yield from _at(texts, (*path, _FIELDS if inner == "field" else _METHODS, index), f"{name}.{each.name}")
    for index, each in enumerate(getattr(parent, "nested_type", ())):
        yield from _within(texts, (*path, _NESTED, index), f"{name}.{each.name}", each, inner)


def _at(texts: Mapping[tuple[int, ...], str], path: tuple[int, ...], name: str) -> Iterable[tuple[str, str]]:
    if text := texts.get(path):
        yield name, " ".join(line.strip() for line in text.strip().splitlines()).replace("  ", "\n\n")
