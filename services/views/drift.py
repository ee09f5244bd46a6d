"""The three sides of a field that differs, for users: equal sides once."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from pkger.model.v1 import drift_pb2

from services.views.lines import Line, line_diff

ABSENT = "absent"
"""The text of a side without the field."""


def counts_text(counts: drift_pb2.DriftCounts) -> str:
    """The counts of resources by drift status, worst first, as text; empty without resources."""
    numbers = {field.name: getattr(counts, field.name) for field in counts.DESCRIPTOR.fields}
    return ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in numbers.items() if count)


@dataclass(frozen=True, slots=True)
class SideGroup:
    """
    Sides that are equal.

    Attributes:
        names: Some of package, applied and live.
        text: Their value as JSON text; ``ABSENT`` if they do not have the field.
    """

    names: tuple[str, ...]
    text: str


def side_groups(field: drift_pb2.DriftField) -> list[SideGroup]:
    """The sides of *field* in the order package, applied, live; equal sides are one group."""
    sides = {"package": field.package_json, "applied": field.applied_json, "live": field.live_json}
    groups: dict[str, list[str]] = {}
    for name, text in sides.items():
        groups.setdefault(text, []).append(name)
    return [SideGroup(tuple(names), text or ABSENT) for text, names in groups.items()]


def lines_of(groups: Sequence[SideGroup]) -> tuple[Line, ...]:
    """The line diff of two groups; empty unless both are texts and one has several lines."""
    texts = [_text(group.text) for group in groups]
    if len(texts) != 2 or texts[0] is None or texts[1] is None or "\n" not in texts[0] + texts[1]:
        return ()
    return line_diff(texts[0], texts[1])


def _text(side: str) -> str | None:
    """The value of a side if it is a text, else None."""
    value = None if side == ABSENT else orjson.loads(side)
    return value if isinstance(value, str) else None
