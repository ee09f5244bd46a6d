"""Shapes of field values: each defines how a value is read, its faults, the remarks on it and its JSON Schema."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache
from typing import Any, ClassVar, Protocol

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import plain
from services.kinds.format.durations import canonical_duration, parse_duration, schedule_duration
from services.kinds.format.fields import Note, described, integer_of, number_of, text_of

Schema = dict[str, Any]

_LONGEST_WORD = 120

_TEXT_TYPES = ["string", "number", "null"]
_DURATION_PATTERN = r"^(-?([0-9]+(y|mo|w|d|h|ms|m|s|us|µs|ns))*)$"


class Shape(Protocol):
    """
    The values that one field takes.

    Attributes:
        absent: The normalised value of a field that is missing, null, or of a type that it cannot use.
    """

    @property
    def absent(self) -> Any: ...

    def read(self, value: Any) -> Any:
        """The normalised value; callers must not change it."""

    def problem(self, value: Any) -> str:
        """The end of the sentence "it must be ..." when the normalised *value* breaks the rule; else empty."""

    def remark(self, value: Any) -> Note | None:
        """The remark on a value that is not null and is used differently than expected; None: there is none."""

    def schema(self) -> Schema:
        """JSON Schema of the values that the field can use."""


class Fold(Enum):
    """How a text is normalised before it is compared and stored (docs/reference/package-format.md, "Field values")."""

    KEEP = "keep"
    TRIM = "trim"
    LOWER = "lower"
    UPPER = "upper"

    def __call__(self, text: str) -> str:
        """The folded text."""
        match self:
            case Fold.KEEP:
                return text
            case Fold.TRIM:
                return text.strip()
            case Fold.LOWER:
                return text.lower().strip()
            case Fold.UPPER:
                return text.upper().strip()


@dataclass(frozen=True, slots=True)
class Text:
    """
    A text; numbers count as text.

    Attributes:
        absent: The value for an absent or empty text.
        words: The texts that are allowed; empty for any.
        fold: How it is normalised.
        required: Whether it must not be empty.
        what: The description of a required text without words: "a query".
        vocabulary: The texts with a meaning, in any case; others are allowed, and get a remark. Empty: all texts have a
            meaning.
    """

    absent: str = ""
    words: tuple[str, ...] = ()
    fold: Fold = Fold.KEEP
    required: bool = False
    what: str = ""
    vocabulary: tuple[str, ...] = ()

    def read(self, value: Any) -> str:
        # Most values of most packages are read here, so the common case is first.
        text = value if type(value) is str else text_of(value)
        if not text:
            return self.absent
        return text if self.fold is Fold.KEEP else self.fold(text) or self.absent

    def problem(self, value: str) -> str:
        if self.required and not value:
            return self.what or (_one_of(self.words) if self.words else "a text that is not empty")
        return _one_of(self.words) if self.words and value not in self.words else ""

    def remark(self, value: Any) -> Note | None:
        text = text_of(value)
        if text is None:
            return _ignored(value, "a text")
        if not self.vocabulary or text.lower() in self.vocabulary:
            return None
        meant = nearest(text, self.vocabulary)
        return Note(Code.UNKNOWN_WORD, f"{text[:40]!r} means nothing here; write {_one_of(self.vocabulary)}", meant)

    def schema(self) -> Schema:
        if self.words:
            return _words_schema((*self.words, "") if self.absent else self.words, self.fold)
        return {"type": _TEXT_TYPES[:2], "minLength": 1} if self.required else {"type": _TEXT_TYPES}


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of 64 bits; floats are truncated toward zero."""

    minimum: int | None = None
    maximum: int | None = None
    what: str = "a whole number"
    absent: ClassVar[int] = 0

    def read(self, value: Any) -> int:
        return integer_of(value)

    def problem(self, value: int) -> str:
        too_small = self.minimum is not None and value < self.minimum
        too_large = self.maximum is not None and value > self.maximum
        return self.what if too_small or too_large else ""

    def remark(self, value: Any) -> Note | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return _ignored(value, "a whole number, without quotes")
        number = integer_of(value)
        if number == value:
            return None
        return Note(Code.NUMBER_TRUNCATED, f"{value!r} will be cut to the whole number {number}")

    def schema(self) -> Schema:
        if self.minimum is None:
            return {"type": ["number", "null"]}
        top = {} if self.maximum is None else {"maximum": self.maximum}
        return {"type": "number", "minimum": self.minimum, **top}


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or a float; an integral float is the integer."""

    absent: ClassVar[int] = 0

    def read(self, value: Any) -> int | float:
        return number_of(value)

    def problem(self, value: float) -> str:
        return ""

    def remark(self, value: Any) -> Note | None:
        usable = isinstance(value, int | float) and not isinstance(value, bool) and number_of(value) == value
        return None if usable else _ignored(value, "a number, without quotes")

    def schema(self) -> Schema:
        return {"type": ["number", "null"]}


@dataclass(frozen=True, slots=True)
class Boolean:
    """A boolean."""

    absent: ClassVar[bool] = False

    def read(self, value: Any) -> bool:
        return value is True

    def problem(self, value: bool) -> str:
        return ""

    def remark(self, value: Any) -> Note | None:
        return None if isinstance(value, bool) else _ignored(value, "true or false, without quotes")

    def schema(self) -> Schema:
        return {"type": ["boolean", "null"]}


@dataclass(frozen=True, slots=True)
class Duration:
    """
    A duration such as ``1h30m`` (docs/reference/package-format.md, "Durations"), normalised to its canonical text;
    empty for zero. One that ``keeps_calendar`` is kept with its units if it has months or years.
    """

    required: bool = False
    keeps_calendar: bool = False
    absent: ClassVar[str] = ""

    def read(self, value: Any) -> str:
        text = text_of(value)
        if not text:
            return ""
        return schedule_duration(text) if self.keeps_calendar else canonical_duration(parse_duration(text) or 0)

    def problem(self, value: str) -> str:
        return "a duration such as 1h30m" if self.required and not value else ""

    def remark(self, value: Any) -> Note | None:
        text = text_of(value)
        if text is None or parse_duration(text) is None:
            return _ignored(value, "a duration such as 1h30m")
        return None

    def schema(self) -> Schema:
        nullable = {} if self.required else {"type": ["string", "null"]}
        return {"type": "string", "pattern": _DURATION_PATTERN, **nullable}


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of texts; items that have no text are dropped."""

    absent: ClassVar[Sequence[str]] = ()

    def read(self, value: Any) -> list[str]:
        return [text for item in value if (text := text_of(item)) is not None] if isinstance(value, list) else []

    def problem(self, value: Sequence[str]) -> str:
        return ""

    def remark(self, value: Any) -> Note | None:
        if not isinstance(value, list):
            return _ignored(value, "a list of texts")
        dropped = sum(text_of(item) is None for item in value)
        return items_ignored(dropped, "a text") if dropped else None

    def schema(self) -> Schema:
        return {"type": ["array", "null"], "items": {"type": _TEXT_TYPES[:2]}}


@dataclass(frozen=True, slots=True)
class Free:
    """
    A value that its kind reads by itself.

    Attributes:
        says: Its JSON Schema.
        absent: Its normalised value when the field is absent.
    """

    says: Schema
    absent: Any = field(default="")

    def read(self, value: Any) -> Any:
        return plain(value)

    def problem(self, value: Any) -> str:
        return ""

    def remark(self, value: Any) -> Note | None:
        return None

    def schema(self) -> Schema:
        return self.says


def _ignored(value: Any, expected: str) -> Note:
    return Note(Code.VALUE_IGNORED, f"found {described(value)}, which will be ignored; write {expected}")


def items_ignored(count: int, expected: str) -> Note:
    """The note about *count* items of a list that are of a wrong type."""
    return Note(Code.ITEMS_IGNORED, f"{count} of its items will be ignored; each must be {expected}")


def nearest(word: str, words: Iterable[str]) -> str:
    """The word of *words* that *word* was probably meant to be; empty when none is near."""
    # All known words are less than half as long, so none is near.
    return "" if len(word) > _LONGEST_WORD else _nearest(word.lower().replace("_", ""), tuple(words))


@lru_cache(maxsize=1024)
def _nearest(folded: str, words: tuple[str, ...]) -> str:
    # Cached, as packages repeat the same mistakes and the search is slow.
    by_folded = {candidate.lower().replace("_", ""): candidate for candidate in words}
    [best, *_] = get_close_matches(folded, by_folded, n=1, cutoff=0.75) or [""]
    return by_folded.get(best, "")


def _one_of(words: Sequence[str]) -> str:
    named = [word for word in words if word]
    listed = ", ".join(named[:-1]) + " or " + named[-1] if named[1:] else named[0]
    return f"{listed}, or empty" if "" in words else listed


def _words_schema(words: Sequence[str], fold: Fold) -> Schema:
    schemas: list[Schema] = [{"enum": [*words, None] if "" in words else list(words)}]
    if fold is not Fold.KEEP:
        spelled = "|".join(map(_any_case, words))
        schemas.append({"type": "string", "pattern": rf"^\s*({spelled})\s*$"})
    return {"anyOf": schemas} if schemas[1:] else schemas[0]


def _any_case(word: str) -> str:
    # JSON Schema's regular expressions know no flags.
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else re.escape(letter) for letter in word)


def deprecated(reason: str) -> Schema:
    """JSON Schema of a valid value without effect: editors strike it through and show the *reason*."""
    return {"deprecated": True, "deprecationMessage": reason, "description": reason}


UNKNOWN_FIELD: Schema = deprecated("There is no such field here, so it is ignored.")
"""The schema of unknown fields: valid, and flagged by editors."""


def object_schema(properties: Mapping[str, Schema], required: Sequence[str] = (), **more: Any) -> Schema:
    """
    JSON Schema of a mapping; unknown keys are allowed, as docs/reference/package-format.md, "Field values" ignores
    them.
    """
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **needed, **more}
