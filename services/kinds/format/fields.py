"""
Reading the fields of an untyped tree (docs/reference/package-format.md, "Field values"): a value of the wrong type
counts as absent.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from services.core.masking import masked
from services.kinds.diagnostics import Code

LARGEST_EXACT = 2.0**53
"""The largest float up to which every integer is exact."""


THE_KEY = -1
"""As the last step of a pointer: selects the key of the value instead of the value."""

Pointer = tuple[str | int, ...]
"""The keys and positions that lead to a value within an object of a source; ``THE_KEY`` may end it."""


class Rewrite(NamedTuple):
    """
    The replacement for the key or scalar that a fault or remark marks.

    Attributes:
        text: The word to write; None: the same text, in quotes.
    """

    text: str | None


class Elsewhere(NamedTuple):
    """A related location of a fault: position of the object in the package, pointer in it, one sentence."""

    position: int
    pointer: Pointer
    text: str


class Note(NamedTuple):
    """
    A remark on a value, without its location.

    Attributes:
        code: The code.
        text: One sentence: the effect, and what to write instead.
        word: The word that was probably meant; empty when none is near.
    """

    code: Code
    text: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """
    A rule that one object breaks.

    Attributes:
        code: The code of the rule.
        path: The field within the object, as docs/reference/package-format.md, "Violations" writes it.
        reason: One sentence: what is wrong, and what to write instead.
        pointer: The value to mark in the source; it may be missing there.
        first: For a name that is taken: position in the package of the object that has it.
        rewrite: The correction; None where none is known.
        related: Related locations.
    """

    code: Code
    path: str
    reason: str
    pointer: Pointer
    first: int | None = None
    rewrite: Rewrite | None = None
    related: tuple[Elsewhere, ...] = ()


@dataclass(frozen=True, slots=True)
class Remark:
    """
    Something that looks like a mistake, though it breaks no rule.

    Attributes:
        code: The code of the warning.
        path: The field within the object, as docs/reference/package-format.md, "Violations" writes it.
        text: One sentence: the effect, and what to write instead.
        pointer: The value to mark in the source.
        unless_written: The remark is dropped when the source has exactly this text there; None: never.
        rewrite: The correction; None where none is known.
    """

    code: Code
    path: str
    text: str
    pointer: Pointer
    unless_written: str | None = None
    rewrite: Rewrite | None = None


class Numbering(Enum):
    """Where paths have the position of an element of a list."""

    ELEMENT = "charts[0].kind"
    LEAF = "statusRules.currentLevel[0]"
    LEAF_ONLY = "level[0]"


class Fields(NamedTuple):
    """
    The fields of one mapping, with its location.

    A named tuple, as each mapping of a package has one: it is made several times as fast as a frozen dataclass.

    Attributes:
        value: The mapping.
        path: Its path.
        pointer: The keys and positions that lead to it in the source.
        suffix: The end of the path of each of its fields (docs/reference/package-format.md, "Oddities", P10).
    """

    value: Mapping[str, Any]
    path: str
    pointer: tuple[str | int, ...]
    suffix: str = ""

    def text(self, key: str) -> str:
        """The text of a field, not trimmed; numbers count as text."""
        text = text_of(self.value.get(key))
        return "" if text is None else text

    def items(self, key: str) -> list[Any]:
        """The items of a list as they are; empty when absent."""
        value = self.value.get(key)
        return value if isinstance(value, list) else []

    def texts(self, key: str) -> list[str]:
        """The texts of a list; items without text are dropped."""
        return [text for item in self.items(key) if (text := text_of(item)) is not None]

    def text_map(self, key: str) -> dict[str, str]:
        """The texts of a mapping by key; entries without text are dropped."""
        value = self.value.get(key)
        if not isinstance(value, dict):
            return {}
        return {name: text for name, item in value.items() if (text := text_of(item)) is not None}

    def mappings(self, key: str, numbering: Numbering = Numbering.ELEMENT) -> list["Fields"]:
        """
        The mappings of a list; other items are dropped before positions are counted (docs/reference/package-format.md,
        "Oddities", P3).
        """
        if not (items := self.items(key)):
            return []
        mappings = enumerate((place, item) for place, item in enumerate(items) if isinstance(item, dict))
        path, pointer = f"{self.path}.{key}", (*self.pointer, key)
        if numbering is Numbering.ELEMENT:
            return [Fields(item, f"{path}[{position}]", (*pointer, place)) for position, (place, item) in mappings]
        if numbering is Numbering.LEAF_ONLY:
            path = self.path
        return [Fields(item, path, (*pointer, place), f"[{position}]") for position, (place, item) in mappings]

    def mapping(self, key: str) -> "Fields":
        """The mapping under *key*; an empty one when it is absent."""
        value = self.value.get(key)
        return Fields(value if isinstance(value, dict) else {}, f"{self.path}.{key}", (*self.pointer, key))

    def fault(self, code: Code, key: str, reason: str, rewrite: Rewrite | None = None) -> Fault:
        """A fault of the field *key*."""
        return Fault(code, f"{self.path}.{key}{self.suffix}", reason, (*self.pointer, key), rewrite=rewrite)

    def remark(
        self,
        code: Code,
        key: str,
        text: str,
        of_key: bool = False,
        unless_written: str | None = None,
        rewrite: Rewrite | None = None,
    ) -> Remark:
        """A remark on the value of the field *key*, or on the key itself."""
        pointer = (*self.pointer, key, THE_KEY) if of_key else (*self.pointer, key)
        return Remark(code, f"{self.path}.{key}{self.suffix}", text, pointer, unless_written, rewrite)

    def own_remark(self, code: Code, text: str) -> Remark:
        """A remark on the mapping itself."""
        return Remark(code, self.path, text, self.pointer)


def text_of(value: Any) -> str | None:
    """The text that a value has; None for a value that has none."""
    match value:
        case str():
            return value
        case bool():
            return None
        case int():
            return str(value) if fits(value) else None
        case float():
            return _float_text(value)
        case _:
            return None


def integer_of(value: Any) -> int:
    """The integer of 64 bits that a value has, floats truncated toward zero; 0 for a value that has none."""
    if isinstance(value, float) and math.isfinite(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and fits(value) else 0


def number_of(value: Any) -> int | float:
    """The number that a value has, an integral float as integer; 0 for a value that has none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
        return 0
    # JSON sources cannot distinguish integers beyond this, so neither may YAML sources
    # (docs/reference/package-format.md, "Equal sources").
    number = float(value)
    return int(number) if number.is_integer() and abs(number) <= LARGEST_EXACT else number


def found_text(fields: Fields, key: str) -> str:
    """The content of a field, as the end of a reason."""
    if key not in fields.value:
        return "it is missing"
    text = text_of(fields.value[key])
    return "it has no text" if text is None else f"found {masked(text)[:60]!r}"


def described(value: Any) -> str:
    """A value of a source or of the environment, as part of a reason: ``the text 'x'``, ``a list``."""
    match value:
        case None:
            return "null"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return str(value).lower()
        case float() if math.isnan(value):
            return "NaN, which is no number"
        case int() | float() if not fits(value):
            return "a number beyond 64 bits"
        case int() | float():
            # JSON sources read small integers as floats.
            return f"the number {value if isinstance(value, int) else number_of(value)!r}"
        case str():
            return f"the text {masked(value)[:40]!r}"
        case _:
            return "an unquoted date"


def fits(value: float) -> bool:
    """Whether an integer has 64 bits, or a float is finite."""
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63


def _float_text(value: float) -> str:
    """Shortest decimal that reads back as *value*, without exponent and without a trailing ``.0``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return format(Decimal(repr(value)), "f").removesuffix(".0")
