"""
Masks secret values in texts, in every spelling that a platform or a proxy may use (docs/reference/engine.md,
"Secrets").
"""

import base64
import html
import json
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from urllib.parse import quote, quote_plus

MASK = "[secret]"

SHORTEST_PART = 12
"""Shortest part of a spelling, in characters, that is masked: a shorter one may be unrelated text."""

SHORTEST_CODE = 4
"""Shortest encoded value, in characters, that is masked: a shorter one may be part of any word."""

_LIKE_SCRIPTS = "!'()*"
"""Characters that encodeURIComponent does not escape (ECMA-262)."""


class Masking:
    """The spellings of some values."""

    def __init__(self, values: Collection[str]) -> None:
        self._values = values
        self._spellings: list[str] | None = None

    def masked(self, text: str) -> str:
        """*text* without the values, and without parts of values that have twelve characters or more."""
        spans = sorted(self._spans(text)) if self._values else []
        kept, end = [], 0
        for start, stop in spans:
            if start >= end:
                kept += [text[end:start], MASK]
            end = max(end, stop)
        return "".join([*kept, text[end:]])

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._spellings is None:
            # Computed on first use: few operations receive a text that has to be masked.
            self._spellings = sorted({spelling for value in self._values for spelling in spellings(value)})
        for spelling in self._spellings:
            if len(spelling) < SHORTEST_PART:
                yield from (match.span() for match in re.finditer(re.escape(spelling), text))
            else:
                yield from _parts(text, spelling)


def spellings(value: str) -> set[str]:
    """
    The spellings of *value*: as it is, stripped, quoted as in Python, JSON, HTML or a URL, and encoded.

    A Base64 spelling may encode a longer text, with the value at its beginning, in its middle or at its end.
    """
    texts = {value, value.strip()} - {""}
    quoted = {form for text in texts for form in _quoted(text)}
    codes = {form for text in texts for form in _encoded(text.encode("utf-8", "surrogatepass"))}
    return texts | quoted | {code for code in codes if len(code) >= SHORTEST_CODE}


def _quoted(text: str) -> Iterator[str]:
    yield repr(text)[1:-1]
    for is_ascii in (True, False):
        in_json = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        for form in (in_json, re.sub(r"\\u([0-9a-f]{4})", lambda match: f"\\u{match[1].upper()}", in_json)):
            yield form
            yield form.replace("/", "\\/")
    octets = text.encode("utf-8", "surrogatepass")
    for form in (quote(octets, ""), quote(octets, "/"), quote(octets, _LIKE_SCRIPTS), quote_plus(octets)):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)
    for form in (html.escape(text), html.escape(text, quote=False)):
        yield form
        yield form.replace("&#x27;", "&#39;")
        yield form.replace("&#x27;", "&apos;").replace("&quot;", "&#34;")


def _encoded(octets: bytes) -> Iterator[str]:
    yield octets.hex()
    yield octets.hex().upper()
    for before in range(3):
        # Characters that also hold bits of the surrounding text cannot be predicted.
        first = -(-before * 8 // 6)
        last = (before + len(octets)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            code = encode(b"\0" * before + octets).decode()[first:]
            yield from (code[: last - first], code.rstrip("="), code)


def _parts(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    """Spans of *text* that are a part of *spelling*, each as long as possible."""
    # Two characters mostly suffice to rule out that a part begins here.
    pairs = set(map("".join, pairwise(spelling)))
    start = 0
    while start + SHORTEST_PART <= len(text):
        if text[start : start + 2] not in pairs or text[start : start + SHORTEST_PART] not in spelling:
            start += 1
            continue
        # Binary search for the longest part that begins here: if a part does not match, no longer one does.
        stop, beyond = start + SHORTEST_PART, min(start + len(spelling), len(text)) + 1
        while stop + 1 < beyond:
            middle = (stop + beyond) // 2
            if text[start:middle] in spelling:
                stop = middle
            else:
                beyond = middle
        yield start, stop
        start = stop - SHORTEST_PART + 1
