"""Values as JSON and back, by the names and types of their fields, so that no field is listed twice."""

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_json(value: Any, with_defaults: bool = False) -> Any:
    """
    A value as JSON: a dataclass as a mapping whose keys are the names of its fields in camel case, a tuple as a list.

    Args:
        value: Dataclasses, mappings from texts, tuples, and what JSON has.
        with_defaults: Whether fields are written that have their defaults.
    """
    if dataclasses.is_dataclass(value):
        return {
            _key(field.name): to_json(item, with_defaults)
            for field in dataclasses.fields(value)
            if (item := getattr(value, field.name)) != _default(field) or with_defaults
        }
    if isinstance(value, Mapping):
        return {key: to_json(item, with_defaults) for key, item in value.items()}
    return [to_json(item, with_defaults) for item in value] if isinstance(value, tuple | list) else value


def from_json(of_type: type[T], json: Any) -> T:
    """
    Read what ``to_json`` made of a dataclass.

    Raises:
        ValueError: *json* is nothing that it makes of a value of this type.
    """
    value: T = _read(of_type, json)
    return value


def _default(field: "dataclasses.Field[Any]") -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _key(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


@cache
def _fields(of_type: type) -> dict[str, tuple[str, Any]]:
    """The name and the type of each field, by its key."""
    return {_key(name): (name, hint) for name, hint in get_type_hints(of_type).items()}


def _read(of_type: Any, json: Any) -> Any:
    if of_type is Any:
        return json
    if get_origin(of_type) is UnionType:
        [present] = [each for each in get_args(of_type) if each is not type(None)]
        return None if json is None else _read(present, json)
    if get_origin(of_type) is Mapping and isinstance(json, dict):
        return {key: _read(get_args(of_type)[1], item) for key, item in json.items()}
    if get_origin(of_type) is tuple and isinstance(json, list):
        return tuple(_read(get_args(of_type)[0], item) for item in json)
    if dataclasses.is_dataclass(of_type) and isinstance(json, dict):
        return _read_dataclass(of_type, json)
    if type(json) is of_type:
        return json
    if isinstance(json, str) and isinstance(of_type, type) and issubclass(of_type, StrEnum):
        return of_type(json)
    raise ValueError(f"a {of_type} cannot be read from a value of the type {type(json).__name__}")


def _read_dataclass(of_type: Any, json: Mapping[str, Any]) -> Any:
    fields = _fields(of_type)
    if not json.keys() <= fields.keys():
        raise ValueError(f"{of_type.__name__} has no field {min(json.keys() - fields.keys())!r}")
    read = {name: _read(hint, json[key]) for key, (name, hint) in fields.items() if key in json}
    try:
        return of_type(**read)
    except TypeError as error:
        raise ValueError(str(error)) from None
