"""The differences of two texts, line by line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 3
"""Number of equal lines shown around a difference."""

_COMPARED = 4000
"""Up to so many lines are compared one by one; longer texts differ as a whole, as comparing takes quadratic time."""

KEPT, REMOVED, ADDED, LEFT_OUT = " ", "-", "+", "@"


@dataclass(frozen=True, slots=True)
class Line:
    """
    A line of a difference.

    Attributes:
        sign: ``KEPT``, ``REMOVED`` or ``ADDED``; ``LEFT_OUT`` for equal lines that are not shown.
        text: The line without its end; of ``LEFT_OUT``, the number of the next line in the new text.
    """

    sign: str
    text: str


def line_diff(old: str, new: str, context: int = CONTEXT) -> tuple[Line, ...]:
    """
    Compare two texts line by line.

    A text that ends with a line break has an empty last line, so a difference in the last line break is visible.

    Returns:
        The lines that differ, with *context* equal lines around; empty exactly for equal texts.
    """
    before, after = old.split("\n"), new.split("\n")
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    start, end = max(0, start - context), max(0, end - context)
    rest = slice(start, -end or None)
    return tuple(_hunks(before[rest], after[rest], context, start))


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of equal lines at the start of two texts."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _hunks(before: Sequence[str], after: Sequence[str], context: int, skipped: int) -> Iterator[Line]:
    if before == after:
        return
    if len(before) + len(after) > _COMPARED:
        yield Line(LEFT_OUT, str(skipped + 1))
        yield from (Line(REMOVED, line) for line in before)
        yield from (Line(ADDED, line) for line in after)
        return
    end = 0
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(context):
        start = group[0][3]
        if skipped + start > end:
            yield Line(LEFT_OUT, str(skipped + start + 1))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from (Line(KEPT, line) for line in after[new_from:new_to])
                continue
            yield from (Line(REMOVED, line) for line in before[old_from:old_to])
            yield from (Line(ADDED, line) for line in after[new_from:new_to])
        end = skipped + group[-1][4]
