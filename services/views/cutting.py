"""Cuts long texts to the width of a line."""

from collections.abc import Sequence


def cut(texts: Sequence[str], width: int) -> list[str]:
    """Different *texts*; if one is longer than *width*, all are cut to that width around the first difference."""
    if all(len(text) <= width for text in texts):
        return [*texts]
    letters = zip(*texts, strict=False)
    same = next((at for at, each in enumerate(letters) if len({*each}) > 1), min(map(len, texts)))
    # The first difference has to stand between the two ellipses.
    start = max(0, same - min(width // 3, width - 3))
    return [window(text, start, width) for text in texts]


def window(text: str, start: int, width: int) -> str:
    """At most *width* characters of *text* from *start* on, with an ellipsis where it is cut."""
    before = "…" if start else ""
    rest, room = text[start:], width - len(before)
    return before + (rest if len(rest) <= room else f"{rest[: room - 1]}…")
