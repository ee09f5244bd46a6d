"""The three sides of a field that differs, as people compare them: equal sides once, long ones around what differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from pkger.model.v1 import drift_pb2

from services.views.lines import Line, line_diff

ABSENT = "absent"
"""Of a side that does not have the field."""


def counts_text(counts: drift_pb2.DriftCounts) -> str:
    """How many resources are how, worst first, in words; empty where there are none."""
    numbers = {field.name: getattr(counts, field.name) for field in counts.DESCRIPTOR.fields}
    return ", ".join(f"{count:,} {status.replace('_', ' ')}" for status, count in numbers.items() if count)


@dataclass(frozen=True, slots=True)
class SideGroup:
    """
    Sides that are equal.

    Attributes:
        names: Which: of package, applied and live.
        text: What they say, as JSON text; ``ABSENT`` where they do not have the field.
    """

    names: tuple[str, ...]
    text: str


def side_groups(field: drift_pb2.DriftField) -> list[SideGroup]:
    """The sides of *field* in the order package, applied, live; equal ones are one group, at the place of the first."""
    sides = {"package": field.package_json, "applied": field.applied_json, "live": field.live_json}
    groups: dict[str, list[str]] = {}
    for name, text in sides.items():
        groups.setdefault(text, []).append(name)
    return [SideGroup(tuple(names), text or ABSENT) for text, names in groups.items()]


def lines_of(groups: Sequence[SideGroup]) -> tuple[Line, ...]:
    """How two groups differ line by line; empty where they are no two texts, or none has several lines."""
    texts = [_text(group.text) for group in groups]
    if len(texts) != 2 or texts[0] is None or texts[1] is None or "\n" not in texts[0] + texts[1]:
        return ()
    return line_diff(texts[0], texts[1])


def cut(texts: Sequence[str], width: int) -> list[str]:
    """Different *texts*, all of them cut to *width* characters around the first difference, if one is longer."""
    if all(len(text) <= width for text in texts):
        return [*texts]
    letters = zip(*texts, strict=False)
    same = next((at for at, each in enumerate(letters) if len({*each}) > 1), min(map(len, texts)))
    start = max(0, same - width // 3)
    return [_window(text, start, width) for text in texts]


def _window(text: str, start: int, width: int) -> str:
    before = "…" if start else ""
    rest, room = text[start:], width - len(before)
    return before + (rest if len(rest) <= room else f"{rest[: room - 1]}…")


def _text(side: str) -> str | None:
    """The text that a side is; None when it is something else."""
    value = None if side == ABSENT else orjson.loads(side)
    return value if isinstance(value, str) else None
