"""Reads the members of JSON objects; errors name the member."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from services.gateway.answers import Code
from services.gateway.errors import Problem

_NAMES = {str: "a text", bool: "true or false", list: "a list", dict: "an object", int: "a number", float: "a number"}


def decoded(body: bytes) -> "Members":
    """
    Read a body as a JSON object.

    Raises:
        Problem: The body is not a JSON object.
    """
    if not body.strip():
        raise Problem(Code.INVALID, "the body is empty; send a JSON object")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(Code.INVALID, f"the body is no JSON: {error}") from None
    return Members.of(value, "the body")


class Members:
    """The members of one object."""

    def __init__(self, value: Mapping[str, Any], where: str = "") -> None:
        """
        Args:
            value: The object.
            where: Prefix for the names of members in messages, such as ``actions[0].``.
        """
        self._value, self._where = value, where

    @classmethod
    def of(cls, value: Any, where: str) -> "Members":
        """
        The members of *value* at *where*; for ``the body``, messages have the names of members without a prefix.

        Raises:
            Problem: *value* is not an object.
        """
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        return cls(value, "" if where == "the body" else f"{where}.")

    def place(self, name: str) -> str:
        """The path of a member, for messages."""
        return f"{self._where}{name}"

    def has(self, name: str) -> bool:
        """Whether a member is present and not null."""
        return self._value.get(name) is not None

    def any(self, name: str) -> Any:
        """The value of a member, of any type; None when it is absent."""
        return self._value.get(name)

    def text(self, name: str) -> str:
        """A text; empty when the member is null or absent."""
        value: str = self._read(name, str, "")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false when the member is null or absent."""
        value: bool = self._read(name, bool, False)
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; empty when the member is null or absent."""
        found = self._read(name, list, [])
        for place, each in enumerate(found):
            if not isinstance(each, str):
                raise _wrong(f"{self.place(name)}[{place}]", "a text", each)
        return list(found)

    def objects(self, name: str) -> "Iterator[Members]":
        """The objects of a list; none when the member is null or absent."""
        for place, each in enumerate(self._read(name, list, [])):
            yield Members.of(each, f"{self.place(name)}[{place}]")

    def object(self, name: str) -> "Members | None":
        """An object; None when the member is null or absent."""
        return Members.of(self._value[name], self.place(name)) if self.has(name) else None

    def mapping(self, name: str) -> dict[str, Any]:
        """An object by its keys; empty when the member is null or absent."""
        return dict(self._read(name, dict, {}))

    def text_mapping(self, name: str) -> dict[str, str]:
        """An object whose values are texts; empty when the member is null or absent."""
        found = self.mapping(name)
        for key, value in found.items():
            if not isinstance(value, str):
                # The message leaves out the value, which may be a secret.
                raise Problem(Code.INVALID, f"{self.place(name)}.{key[:60]}: write a text")
        return found

    def _read(self, name: str, kind: type, absent: Any) -> Any:
        value = self._value.get(name)
        if value is None:
            return absent
        if not isinstance(value, kind):
            raise _wrong(self.place(name), _NAMES[kind], value)
        return value


def _wrong(where: str, wanted: str, value: Any) -> Problem:
    found = "null" if value is None else _NAMES.get(type(value), "something else")
    return Problem(Code.INVALID, f"{where}: write {wanted}, not {found}")
