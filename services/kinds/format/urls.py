"""The form of a URL (docs/reference/package-format.md, "Notification endpoints"), relative references included."""

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_ESCAPED = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*", re.DOTALL)
_USER = re.compile(r"(?:[A-Za-z0-9._:~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})*")
# In a host, escapes stand for characters beyond ASCII and for the percent sign only (RFC 6874, RFC 3986 3.2.2).
_HOST = re.compile(r"""(?:[A-Za-z0-9._~!$&'()*+,;=:<>"\[\]-]|[^\x00-\x7f]|%25|%[89A-Fa-f][0-9A-Fa-f])*""")
_PORT = re.compile(r"(?::[0-9]*)?")
_ZONE = re.compile(r"(?:[^%]|%[0-9A-Fa-f]{2})*")


def is_url(text: str) -> bool:
    """Whether *text* is a URL or a relative reference; the empty text is none."""
    before, _, fragment = text.partition("#")
    if not text or _CONTROL.search(before) or not _ESCAPED.fullmatch(fragment) or before.startswith(":"):
        return False
    match = _SCHEME.fullmatch(before)
    rest = (match[2] if match else before).partition("?")[0]
    if not rest.startswith("/"):
        # After a scheme, a rest without a leading slash is opaque: `mailto:x`.
        return bool(match) or (":" not in rest.partition("/")[0] and bool(_ESCAPED.fullmatch(rest)))
    if rest.startswith("//") and (match or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        return _is_authority(authority) and bool(_ESCAPED.fullmatch(slash + path))
    return bool(_ESCAPED.fullmatch(rest))


def _is_authority(authority: str) -> bool:
    user, _, host = authority.rpartition("@")
    return bool(_USER.fullmatch(user)) and _is_host(host)


def _is_host(host: str) -> bool:
    if host.startswith("["):
        address, bracket, port = host.rpartition("]")
        address, zoned, zone = address.partition("%25")
        return bool(bracket and _PORT.fullmatch(port) and _HOST.fullmatch(address) and _ZONE.fullmatch(zoned + zone))
    name, colon, port = host.rpartition(":")
    return bool(_PORT.fullmatch(colon + port) and _HOST.fullmatch(name)) if colon else bool(_HOST.fullmatch(host))
