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

from services.kinds.diagnostics import Code

LARGEST_EXACT = 2.0**53
"""Up to here a float is exactly the integer that it shows."""


THE_KEY = -1
"""As the last step of a pointer: the key of the value that the pointer leads to, instead of the value."""

Pointer = tuple[str | int, ...]
"""The keys and positions that lead to a value within an object of a source; ``THE_KEY`` may end it."""


class Rewrite(NamedTuple):
    """
    What to write in place of the key or scalar that a fault or remark marks.

    Attributes:
        text: The word to write; None: what stands there, in quotes.
    """

    text: str | None


class Elsewhere(NamedTuple):
    """Another place that a fault is about: position of the object in the package, place in it, one sentence."""

    position: int
    pointer: Pointer
    text: str


class Note(NamedTuple):
    """
    What a person should know of a value, wherever it stands.

    Attributes:
        code: The code.
        text: One sentence: what happens, and what to write instead.
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
        code: Which rule.
        path: The field within the object, as docs/reference/package-format.md, "Violations" writes it.
        reason: One sentence: what is wrong, and what to write instead.
        pointer: Leads to what is marked in the source, whether it is there or missing.
        first: For a name that is taken: position in the package of the object that has it.
        rewrite: What corrects it; None: nothing that is known.
        related: Other places that it is about.
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
        code: What it looks like.
        path: The field within the object, as docs/reference/package-format.md, "Violations" writes it.
        text: One sentence: what happens, and what to write instead.
        pointer: Leads to what is marked in the source.
        unless_written: Does not apply when the source has exactly this text there; None: applies always.
        rewrite: What corrects it; None: nothing that is known.
    """

    code: Code
    path: str
    text: str
    pointer: Pointer
    unless_written: str | None = None
    rewrite: Rewrite | None = None


class Numbering(Enum):
    """Where paths carry the position of an element of a list."""

    ELEMENT = "charts[0].kind"
    LEAF = "statusRules.currentLevel[0]"
    LEAF_ONLY = "level[0]"


class Fields(NamedTuple):
    """
    The fields of one mapping, which know where they are.

    There is one for each mapping of a package: a tuple is made several times as fast as a frozen dataclass.

    Attributes:
        value: The mapping.
        path: Its path.
        pointer: The keys and positions that lead to it in the source.
        suffix: What ends the path of each of its fields (docs/reference/package-format.md, "Oddities", P10).
    """

    value: Mapping[str, Any]
    path: str
    pointer: tuple[str | int, ...]
    suffix: str = ""

    def text(self, key: str, absent: str = "") -> str:
        """The text of a field, not trimmed; numbers count as text."""
        found = text_of(self.value.get(key))
        return absent if found is None else found

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
        found = enumerate((place, item) for place, item in enumerate(items) if isinstance(item, dict))
        path, pointer = f"{self.path}.{key}", (*self.pointer, key)
        if numbering is Numbering.ELEMENT:
            return [Fields(item, f"{path}[{position}]", (*pointer, place)) for position, (place, item) in found]
        if numbering is Numbering.LEAF_ONLY:
            path = self.path
        return [Fields(item, path, (*pointer, place), f"[{position}]") for position, (place, item) in found]

    def mapping(self, key: str) -> "Fields":
        """The mapping under *key*; an empty one when it is absent."""
        value = self.value.get(key)
        return Fields(value if isinstance(value, dict) else {}, f"{self.path}.{key}", (*self.pointer, key))

    def fault(self, code: Code, key: str, reason: str, rewrite: Rewrite | None = None) -> Fault:
        """The field *key* breaks a rule."""
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
        """There is something to say about the value of the field *key*, or about the key itself."""
        pointer = (*self.pointer, key, THE_KEY) if of_key else (*self.pointer, key)
        return Remark(code, f"{self.path}.{key}{self.suffix}", text, pointer, unless_written, rewrite)

    def own_remark(self, code: Code, text: str) -> Remark:
        """There is something to say about the mapping itself."""
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
    # Beyond this, JSON sources cannot tell integers apart, so YAML ones may not either
    # (docs/reference/package-format.md, "Equal sources").
    number = float(value)
    return int(number) if number.is_integer() and abs(number) <= LARGEST_EXACT else number


def found_text(fields: Fields, key: str) -> str:
    """What stands in a field, for a reason."""
    if key not in fields.value:
        return "it is missing"
    text = text_of(fields.value[key])
    return "it has no text" if text is None else f"found {text[:60]!r}"


def described(value: Any) -> str:
    """What a value of a source or of the environment is, for a reason: ``the text 'x'``, ``a list``."""
    match value:
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
            return f"the number {value!r}"
        case str():
            return f"the text {value[:40]!r}"
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
