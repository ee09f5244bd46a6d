"""Messages about a word that is no kind."""

from services.kinds.format.shapes import nearest
from services.kinds.registry import ACCEPTED


def unknown_kind(word: str) -> str:
    """One sentence about *word*, which is no kind, with the kind that it was probably meant to be."""
    if not word:
        return "name a kind"
    alike = nearest(word, sorted(ACCEPTED))
    meant = f"did you mean {alike}?" if alike else f"write one of {', '.join(sorted(ACCEPTED))}"
    return f"{word[:60]!r} is no kind; {meant}"


def meant_kind(word: str) -> str:
    """The end of a sentence that asks for the kind that *word* was probably meant to be; else empty."""
    alike = "" if word in ACCEPTED else nearest(word, sorted(ACCEPTED))
    return f"; did you mean {alike}?" if alike else ""
