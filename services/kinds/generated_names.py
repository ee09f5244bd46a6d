"""Generates object names for resources without one: words of the display name and a suffix (docs/export.md)."""

import base64
import hashlib
import re
import unicodedata

from services.core.model import Resource
from services.kinds.format.names import LONGEST_META_NAME
from services.kinds.registry import KINDS

_SUFFIX = 8
"""Characters of a suffix: 40 bits, so that ten thousand resources of one name practically never collide."""

_LONG_SUFFIX = 26
"""Characters of the suffix of a name that would collide: 128 bits."""

_WORD = re.compile("[a-z0-9]+")


def generated_name(resource: Resource, is_long: bool = False) -> str:
    """A metadata.name computed from display name, kind and id only, with a short or a long suffix."""
    suffix = _LONG_SUFFIX if is_long else _SUFFIX
    digest = hashlib.sha256(f"{resource.kind}\n{resource.id}".encode()).digest()
    tail = base64.b32encode(digest).decode().lower()[:suffix]
    return f"{_words(resource, LONGEST_META_NAME - suffix - 1)}-{tail}"


def _words(resource: Resource, longest: int) -> str:
    """Words of the display name up to *longest* characters; the family where it has no words."""
    plain = unicodedata.normalize("NFKD", resource.spec.display_name.casefold())
    words = _WORD.findall("".join(letter for letter in plain if not unicodedata.combining(letter)))
    name = "-".join(words or [KINDS[resource.kind].family])
    if len(name) <= longest:
        return name
    cut = name[:longest]
    return (cut if name[longest] == "-" else cut.rpartition("-")[0] or cut).rstrip("-")
