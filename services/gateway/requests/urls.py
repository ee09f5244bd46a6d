"""Checks the text of addresses of packages; the parser decides which addresses may be fetched."""

import re

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")


def refuse_bad_escapes(url: str, where: str) -> None:
    """
    Refuse an address with an invalid percent escape.

    Raises:
        Problem: The address has one.
    """
    if _ESCAPE.search(url):
        raise Problem(Code.INVALID, f"{where}: {url[:200]!r} has a % that escapes nothing; write %25")
