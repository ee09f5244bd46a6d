"""Whether a platform that lists nothing has nothing, or does not let its credential read."""

from collections.abc import Iterable
from typing import NamedTuple

from services.core.check import CheckAspect, CheckVerdict, Finding


class Doubts(NamedTuple):
    """
    Why there may be resources that a platform does not list.

    Attributes:
        text: The findings about rights to read, as part of a sentence; empty: the credential may read all.
        is_certain: Whether the credential certainly lacks a right to read.
    """

    text: str
    is_certain: bool


def doubts_of(findings: Iterable[Finding]) -> Doubts:
    """The doubts that the *findings* of a check leave; subjects with one message are listed together."""
    reads = [each for each in findings if each.aspect is CheckAspect.READ]
    wrong = [each for each in reads if each.verdict is CheckVerdict.WRONG]
    subjects: dict[str, list[str]] = {}
    for each in [*wrong, *(each for each in reads if each.verdict is CheckVerdict.UNKNOWN)]:
        subjects.setdefault(each.message, []).append(each.subject)
    texts = [f"{message} ({', '.join(names)})" for message, names in subjects.items()]
    return Doubts("; ".join(texts), bool(wrong))
