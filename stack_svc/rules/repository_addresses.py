"""
Addresses of repositories: which ones are accepted, and which ones are warned of (docs/dependencies.md, "Several
repositories"). Nothing is read from them.
"""

import re
from urllib.parse import unquote

from services.addresses import vetted
from services.core.errors import RequestInvalid, SourceUnreadable

FORMS = "https://HOST/PATH, http://HOST/PATH, or file:///PATH for a folder"

_HOST_AND_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|\w[\w.-]*)(:[0-9]{1,5})?")
"""A name, in any language, or an IP address. An escaped character in it could hide a user name."""


def checked_address(address: str) -> str:
    """
    Accept the address of a repository, unchanged.

    Raises:
        RequestInvalid: It is none, or has a user, a query or a fragment. The error does not quote it: what is wrong in
            it may be a credential.
    """
    if problem := _problem(address):
        raise RequestInvalid("address", problem)
    return address


def address_warnings(address: str) -> list[str]:
    """The warnings about an address that is accepted."""
    if _scheme(address) != "http":
        return []
    return ["the address is http, so others on the way can change what is read from it; use https if you can"]


def _scheme(address: str) -> str:
    scheme, separator, _ = address.partition("://")
    return scheme.lower() if separator else ""


def _problem(address: str) -> str:
    """The first fault of an address; empty: it has none."""
    if not address:
        return f"must not be empty; write {FORMS}"
    if "\\" in address or not address.isprintable() or any(map(str.isspace, address)):
        return "must have no space, backslash or control character; write %20 for a space"
    scheme = _scheme(address)
    if scheme not in ("https", "http", "file"):
        return f"is no address of a repository; write {FORMS}"
    authority, _, path = address.partition("://")[2].partition("/")
    if "@" in authority:
        return "must have no user name or password; write the host alone"
    for mark, part in (("?", "query"), ("#", "fragment")):
        if mark in address:
            return f"must have no {part}: files are read below its path; end it before the {mark!r}"
    return _folder_problem(authority, path) if scheme == "file" else _server_problem(authority, address)


def _folder_problem(authority: str, path: str) -> str:
    if authority:
        return "a folder is on the machine of the planner; write file:///PATH, with three slashes"
    try:
        names = unquote(path, errors="strict").removesuffix("/").split("/")
    except UnicodeDecodeError:
        return "the path is no UTF-8 text; write the bytes of each character as %XX"
    if names == [""]:
        return "names no folder; write file:///PATH"
    if any(name in ("", ".", "..") or "\\" in name or not name.isprintable() for name in names):
        return "the path must have no empty name, '.', '..', backslash or control character; write it without them"
    return ""


def _server_problem(authority: str, address: str) -> str:
    try:
        vetted(address)
        is_server = _HOST_AND_PORT.fullmatch(authority) is not None
    except SourceUnreadable:
        is_server = False
    return "" if is_server else "has no valid host and port; write https://HOST/PATH or https://HOST:PORT/PATH"
