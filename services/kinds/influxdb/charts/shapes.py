"""Shapes of values that only fields of charts take."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from services.kinds.format.fields import Note, fits, integer_of, number_of, text_of
from services.kinds.format.floats import FLOAT_PATTERN, parse_float
from services.kinds.format.shapes import Integer, Schema, Text, Texts


@dataclass(frozen=True, slots=True)
class OptionalInteger:
    """An integer, or None where there is no integer."""

    absent: ClassVar[int | None] = None

    def read(self, value: Any) -> int | None:
        """The integer, floats truncated toward zero; None for a value that is no number."""
        usable = isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and fits(value))
        return integer_of(value) if usable else None

    def problem(self, value: int | None) -> str:
        """Empty: any integer is valid."""
        return ""

    def remark(self, value: Any) -> Note | None:
        """The remark on a number that is truncated, or on a value that is no number."""
        return Integer().remark(value)

    def schema(self) -> Schema:
        """A number or null."""
        return Integer().schema()


@dataclass(frozen=True, slots=True)
class AnyCase:
    """
    A text that must be one of some words in any case, and is stored unchanged.

    Attributes:
        words: The words, lower-case; the empty one among them makes the text optional.
    """

    words: tuple[str, ...]
    absent: ClassVar[str] = ""

    def read(self, value: Any) -> str:
        """The text, unchanged."""
        return text_of(value) or ""

    def problem(self, value: str) -> str:
        """The words, when the text is none of them."""
        return Text(words=self.words).problem(value.lower())

    def remark(self, value: Any) -> Note | None:
        """The remark on a value that is no text."""
        return Text().remark(value)

    def schema(self) -> Schema:
        """The words in any case; as suggestions for editors, in lower case."""
        any_case = "|".join("".join(f"[{letter}{letter.upper()}]" for letter in word) for word in self.words)
        return {"anyOf": [{"enum": [*self.words, None]}, {"type": "string", "pattern": f"^({any_case})$"}]}


@dataclass(frozen=True, slots=True)
class Domain:
    """
    The range of an axis: numbers, or texts of numbers.

    Normalised to numbers. JSON has no infinities and no NaN, so these become the texts ``+Inf``, ``-Inf`` and ``NaN``.
    """

    absent: ClassVar[Sequence[float | str]] = ()

    def read(self, value: Any) -> list[int | float | str]:
        """The numbers; unreadable items are dropped, and so is their chart."""
        return [_jsonable(number) for _, _, number in _numbers(value) if number is not None]

    def problem(self, value: Sequence[float | str]) -> str:
        """Empty: unreadable items were dropped; see ``unreadable``."""
        return ""

    def unreadable(self, value: Any) -> list[tuple[int, str]]:
        """The items that are texts and no numbers, with their positions in the list."""
        return [(place, text) for place, text, number in _numbers(value) if number is None]

    def remark(self, value: Any) -> Note | None:
        """The remark on a value that is no list, or a list with items that are neither text nor number."""
        return Texts().remark(value)

    def schema(self) -> Schema:
        """A list of numbers."""
        item: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": FLOAT_PATTERN}]}
        return {"type": ["array", "null"], "items": item}


def _numbers(value: Any) -> Iterator[tuple[int, str, float | None]]:
    for place, item in enumerate(value if isinstance(value, list) else ()):
        if (text := text_of(item)) is not None:
            yield place, text, parse_float(text)


def _jsonable(number: float) -> int | float | str:
    return number_of(number) if math.isfinite(number) else text_of(number) or ""
