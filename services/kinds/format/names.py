"""The form of a metadata.name (docs/reference/package-format.md, "Metadata names")."""

import re

from services.core.errors import RequestInvalid

LONGEST_META_NAME = 63
"""Characters of the longest name."""

_META_NAME = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?")


def is_meta_name(text: str) -> bool:
    """Whether *text* can be the name of an object."""
    return len(text) <= LONGEST_META_NAME and bool(_META_NAME.fullmatch(text))


def check_meta_name(text: str, field: str) -> None:
    """
    Check that *text* can be the name of an object.

    Raises:
        RequestInvalid: It cannot; names *field*.
    """
    if not is_meta_name(text):
        raise RequestInvalid(field, f"{text[:80]!r} is no metadata.name (docs/packages.md)")
