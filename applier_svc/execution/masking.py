"""
Takes secret values out of texts, however a platform, or something in front of it, spells them
(docs/reference/engine.md, "Secrets").
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
"""Characters of a part of a spelling that is masked, too; a shorter one may be anything."""

SHORTEST_CODE = 4
"""Characters of an encoded value that are masked: fewer may be part of any word."""

_LIKE_SCRIPTS = "!'()*"
"""What encodeURIComponent leaves as it is (ECMA-262)."""


class Masking:
    """The spellings of some values."""

    def __init__(self, values: Collection[str]) -> None:
        self._values = values
        self._spellings: list[str] | None = None

    def masked(self, text: str) -> str:
        """*text* without the values, and without parts of them of twelve characters or more."""
        spans = sorted(self._spans(text)) if self._values else []
        kept, end = [], 0
        for start, stop in spans:
            if start >= end:
                kept += [text[end:start], MASK]
            end = max(end, stop)
        return "".join([*kept, text[end:]])

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        if self._spellings is None:
            # Few operations hear anything that has to be masked.
            self._spellings = sorted({spelling for value in self._values for spelling in spellings(value)})
        for spelling in self._spellings:
            if len(spelling) < SHORTEST_PART:
                yield from (found.span() for found in re.finditer(re.escape(spelling), text))
            else:
                yield from _parts(text, spelling)


def spellings(value: str) -> set[str]:
    """
    How *value* may be repeated: as it is, cut at its ends, quoted as in Python, JSON, HTML or an address, encoded.

    Base64 is that of a longer text, of which the value is the beginning, the middle or the end.
    """
    texts = {value, value.strip()} - {""}
    quoted = {form for text in texts for form in _quoted(text)}
    codes = {form for text in texts for form in _encoded(text.encode("utf-8", "surrogatepass"))}
    return texts | quoted | {code for code in codes if len(code) >= SHORTEST_CODE}


def _quoted(text: str) -> Iterator[str]:
    yield repr(text)[1:-1]
    for is_ascii in (True, False):
        in_json = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        for form in (in_json, re.sub(r"\\u([0-9a-f]{4})", lambda found: f"\\u{found[1].upper()}", in_json)):
            yield form
            yield form.replace("/", "\\/")
    octets = text.encode("utf-8", "surrogatepass")
    for form in (quote(octets, ""), quote(octets, "/"), quote(octets, _LIKE_SCRIPTS), quote_plus(octets)):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), form)
    for form in (html.escape(text), html.escape(text, quote=False)):
        yield form
        yield form.replace("&#x27;", "&#39;")
        yield form.replace("&#x27;", "&apos;").replace("&quot;", "&#34;")


def _encoded(octets: bytes) -> Iterator[str]:
    yield octets.hex()
    yield octets.hex().upper()
    for before in range(3):
        # Characters that hold bits of what stands before or behind say nothing for certain.
        first = -(-before * 8 // 6)
        last = (before + len(octets)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            code = encode(b"\0" * before + octets).decode()[first:]
            yield from (code[: last - first], code.rstrip("="), code)


def _parts(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    """Where *text* has a part of *spelling*, each as long as it goes."""
    # Mostly two characters tell already that no part begins here.
    pairs = set(map("".join, pairwise(spelling)))
    start = 0
    while start + SHORTEST_PART <= len(text):
        if text[start : start + 2] not in pairs or text[start : start + SHORTEST_PART] not in spelling:
            start += 1
            continue
        # The part that fits is the longest of all that begin here: none that is longer than one that does not.
        stop, beyond = start + SHORTEST_PART, min(start + len(spelling), len(text)) + 1
        while stop + 1 < beyond:
            middle = (stop + beyond) // 2
            if text[start:middle] in spelling:
                stop = middle
            else:
                beyond = middle
        yield start, stop
        start = stop - SHORTEST_PART + 1
