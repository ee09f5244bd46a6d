"""Reading the fields of an untyped tree (packages.md 2): a value of the wrong type counts as absent."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from services.kinds.durations import parse_duration


@dataclass(frozen=True, slots=True)
class Fault:
    """
    A rule that one object breaks.

    Attributes:
        path: The field within the object, as packages.md 8 writes it.
        reason: One sentence: what is wrong, and what to write instead.
        pointer: The keys and positions that lead to the field in the source, whether it is there or missing.
        first: For a name that is taken: position in the package of the object that has it.
    """

    path: str
    reason: str
    pointer: tuple[str | int, ...]
    first: int | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one mapping, which know where they are."""

    value: Mapping[str, Any]
    path: str
    pointer: tuple[str | int, ...]

    def text(self, key: str, absent: str = "") -> str:
        """The text of a field, not trimmed; numbers count as text."""
        found = text_of(self.value.get(key))
        return absent if found is None else found

    def integer(self, key: str) -> int:
        """An integer of 64 bits, floats truncated toward zero; 0 when absent. Texts are not converted."""
        value = self.value.get(key)
        if isinstance(value, float) and math.isfinite(value):
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and _fits(value):
            return value
        return 0

    def duration(self, key: str) -> int:
        """Nanoseconds; 0 when absent or no duration."""
        return parse_duration(self.text(key)) or 0

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

    def mappings(self, key: str) -> list["Fields"]:
        """The mappings of a list; other items are dropped before positions are counted (packages.md, P3)."""
        if not (items := self.items(key)):
            return []
        found = [(place, item) for place, item in enumerate(items) if isinstance(item, dict)]
        return [
            Fields(item, f"{self.path}.{key}[{position}]", (*self.pointer, key, place))
            for position, (place, item) in enumerate(found)
        ]

    def fault(self, key: str, reason: str) -> Fault:
        """The field *key* breaks a rule."""
        return Fault(f"{self.path}.{key}", reason, (*self.pointer, key))


def text_of(value: Any) -> str | None:
    """The text that a value has; None for a value that has none."""
    match value:
        case str():
            return value
        case bool():
            return None
        case int():
            return str(value) if _fits(value) else None
        case float():
            return _float_text(value)
        case _:
            return None


def found_text(fields: Fields, key: str) -> str:
    """What stands in a field, for a reason."""
    if key not in fields.value:
        return "it is missing"
    text = text_of(fields.value[key])
    return "it has no text" if text is None else f"found {text[:60]!r}"


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**63


def _float_text(value: float) -> str:
    """Shortest decimal that reads back as *value*, without exponent and without a trailing ``.0``."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return format(Decimal(repr(value)), "f").removesuffix(".0")
