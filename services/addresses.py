"""
Addresses of packages: which addresses may be read, which text a GitHub address stands for, and which machines are
private.
"""

import posixpath
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import unquote, urlsplit, urlunsplit

from yarl import URL

from services.core.errors import SourceUnreadable

_RAW_ENDINGS = (".yaml", ".yml", ".json", ".jsonnet")

_USER = re.compile(r"(?<=//)[^/?#]*@")

_UNICAST = IPv6Network("2000::/3")
"""The IPv6 addresses that are assigned to machines on the Internet."""

_NAT64 = IPv6Network("64:ff9b::/96")
"""Each address in this network stands for an IPv4 machine behind a translator."""

_NOT_PUBLIC_V4 = (
    # The metadata service of Azure, reachable only from its virtual machines.
    IPv4Network("168.63.129.16/32"),
    # Assignments of the IETF, and relays of 6to4. Python counts some of their addresses as global, and other ones in
    # other versions.
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
)
"""Networks that are refused, whatever ``ipaddress`` says about them."""

_NOT_PUBLIC_V6 = (
    # For documentation (RFC 9637); newer than the tables of most versions of Python.
    IPv6Network("3fff::/20"),
)
"""As ``_NOT_PUBLIC_V4``."""


def raw_address(address: str) -> str:
    """
    The address of the text of a file on GitHub (docs/reference/package-format.md, "GitHub addresses"); any other
    address is returned unchanged.
    """
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    segments = parts.path.split("/")
    is_file = posixpath.splitext(unquote(parts.path))[1] in _RAW_ENDINGS
    if parts.netloc != "github.com" or not is_file or len(segments) < 4:
        return address
    path = "/".join(segments[:3] + segments[4:])
    return urlunsplit(parts._replace(netloc="raw.githubusercontent.com", path=path))


def is_of_jsonnet(address: str) -> bool:
    """
    Whether *address*, which may also be the name of a source, ends like a Jsonnet program, even if the ending is
    escaped.
    """
    return unquote(address).lower().endswith(".jsonnet")


def vetted(address: str) -> URL:
    """
    The parsed address, if packages may be fetched from it.

    Raises:
        SourceUnreadable: It is no http or https address, or has a user name or password in it.
    """
    shown = without_user(address)
    url = _parsed(address)
    if url is None:
        raise SourceUnreadable(shown, "this is no address; write one such as https://example.com/package.yml")
    if url.scheme not in ("http", "https") or not url.host:
        raise SourceUnreadable(shown, "packages are fetched from http and https addresses only")
    if url.user is not None or url.password is not None:
        # Names of sources are shown and recorded.
        raise SourceUnreadable(shown, "an address must hold no user name or password; nothing was fetched")
    return url


def _parsed(address: str) -> URL | None:
    # A backslash is part of the host for some programs, and ends it for others.
    if "\\" in address or not address.isprintable():
        return None
    try:
        url = URL(address)
        if url.host and ":" in url.host:
            ip_address(url.host)
    # The parser raises these for brackets in wrong places.
    except (ValueError, IndexError):
        return None
    return url


def without_user(address: str) -> str:
    """The address for messages: without user name and password, and with printable characters only."""
    return "".join(character if character.isprintable() else "\ufffd" for character in _USER.sub("", address))


def is_public(address: str) -> bool:
    """
    Whether an IP address belongs to a machine on the Internet, and not to this machine or another one in this network.
    """
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        inner = _inner(ip)
        return _is_public_v6(ip) if inner is None else _is_public_v4(inner)
    return _is_public_v4(ip)


def _is_public_v4(ip: IPv4Address) -> bool:
    is_listed = any(ip in network for network in _NOT_PUBLIC_V4)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved and not is_listed


def _is_public_v6(ip: IPv6Address) -> bool:
    return ip in _UNICAST and ip.is_global and not any(ip in network for network in _NOT_PUBLIC_V6)


def _inner(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address to which packets for *ip* are delivered; None: there is none."""
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour
