"""Addresses of packages, as far as their text goes; what may be fetched is for the parser to say."""

import re

from services.gateway.answers import Code
from services.gateway.errors import Problem

_ESCAPE = re.compile("%(?![0-9a-fA-F]{2})")


def refuse_bad_escapes(url: str, where: str) -> None:
    """
    Refuse an address that cannot be percent-decoded.

    Raises:
        Problem: It cannot be.
    """
    if _ESCAPE.search(url):
        raise Problem(Code.INVALID, f"{where}: {url[:200]!r} has a % that escapes nothing; write %25")
