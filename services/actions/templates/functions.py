"""The functions and methods that expressions may call."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.actions.templates.texts import (
    formatted_time,
    lower_ascii,
    part_of,
    replaced,
    separated,
    trimmed,
    upper_ascii,
    url_encoded,
)
from services.actions.templates.values import (
    Value,
    decoded_base64,
    double_of,
    integer_of,
    is_integer,
    joined,
    json_text,
    mismatch,
    parsed_json,
    text_of,
    utf8,
)

DEFAULT = "default"
HAS = "has"


@dataclass(frozen=True, slots=True)
class Function:
    """
    A function or method.

    Attributes:
        fewest: The least number of arguments; that of a method does not count the value before the dot.
        most: The largest number.
        apply: Returns the result for the arguments, that of a method with the value before the dot first. None: the
            evaluation does it, as an argument may be missing. It raises OperationError.
    """

    fewest: int
    most: int
    apply: Callable[..., Value] | None


def _on_texts(apply: Callable[..., Value]) -> Callable[..., Value]:
    """*apply* for arguments that have to be texts."""

    def checked(*values: Value) -> Value:
        for value in values:
            if not isinstance(value, str):
                raise mismatch("a text", value)
        return apply(*values)

    return checked


def _size(value: Value) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise mismatch("a text, a list or a map", value)


def _keys(value: Value) -> list[str]:
    if isinstance(value, dict):
        return sorted(value)
    raise mismatch("a map", value)


def _substring(text: Value, *positions: Value) -> str:
    if not isinstance(text, str):
        raise mismatch("a text", text)
    for position in positions:
        if not is_integer(position):
            raise mismatch("an int for a position", position)
    return part_of(text, *positions)  # type: ignore[arg-type]


def _join(texts: Value, separator: Value) -> str:
    if not isinstance(separator, str):
        raise mismatch("a text for a separator", separator)
    if not isinstance(texts, list):
        raise mismatch("a list of texts", texts)
    for text in texts:
        if not isinstance(text, str):
            raise mismatch("a list of texts", text)
    return joined(separator, texts)


def _base64(text: str) -> str:
    return base64.b64encode(utf8(text)).decode()


def _sha256(text: str) -> str:
    return hashlib.sha256(utf8(text)).hexdigest()


FUNCTIONS: Mapping[str, Function] = {
    DEFAULT: Function(2, 2, None),
    HAS: Function(1, 1, None),
    "size": Function(1, 1, _size),
    "string": Function(1, 1, text_of),
    "int": Function(1, 1, integer_of),
    "double": Function(1, 1, double_of),
    "json": Function(1, 1, json_text),
    "parseJson": Function(1, 1, _on_texts(parsed_json)),
    "keys": Function(1, 1, _keys),
    "b64encode": Function(1, 1, _on_texts(_base64)),
    "b64decode": Function(1, 1, _on_texts(decoded_base64)),
    "sha256": Function(1, 1, _on_texts(_sha256)),
    "urlEncode": Function(1, 1, _on_texts(url_encoded)),
    "formatTime": Function(2, 2, _on_texts(formatted_time)),
}

METHODS: Mapping[str, Function] = {
    "contains": Function(1, 1, _on_texts(lambda text, part: part in text)),
    "startsWith": Function(1, 1, _on_texts(str.startswith)),
    "endsWith": Function(1, 1, _on_texts(str.endswith)),
    "lowerAscii": Function(0, 0, _on_texts(lower_ascii)),
    "upperAscii": Function(0, 0, _on_texts(upper_ascii)),
    "trim": Function(0, 0, _on_texts(trimmed)),
    "replace": Function(2, 2, _on_texts(replaced)),
    "split": Function(1, 1, _on_texts(separated)),
    "substring": Function(1, 2, _substring),
    "join": Function(1, 1, _join),
}


def apply(function: Function, values: Sequence[Any]) -> Value:
    """
    Call a function that is not the evaluation's.

    Raises:
        OperationError: It cannot be applied to *values*.
    """
    assert function.apply is not None  # noqa: S101 - the evaluation knows default and has
    return function.apply(*values)
