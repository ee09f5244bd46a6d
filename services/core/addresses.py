"""Addresses of services: ``host:port``, with an IPv6 address in brackets, or ``unix:/path``."""

import re

SOCKET_PREFIX = "unix:"

MOST_SOCKET_BYTES = 107
"""Longest path of a socket: ``sun_path`` has 108 bytes on Linux, the last a NUL (unix(7)); gRPC refuses longer ones."""

_HIGHEST_PORT = 65_535

_HOST = re.compile(r"\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]+")
_PORT = re.compile("[0-9]{1,5}")
_IPV6_WITHOUT_BRACKETS = re.compile("[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


def is_host(text: str) -> bool:
    """Whether *text* can be the host of an address."""
    return bool(_HOST.fullmatch(text))


def address_problem(address: str, is_remote: bool = False) -> str:
    """
    What to write instead of *address*; empty if it is one.

    Args:
        address: The text.
        is_remote: Whether clients only connect to it. A server may also listen at an empty host, which means all
            interfaces, and at port 0, which means any free one.
    """
    if address.startswith(SOCKET_PREFIX):
        return _path_problem(address.removeprefix(SOCKET_PREFIX))
    host, colon, port = address.rpartition(":")
    is_port = _PORT.fullmatch(port) and (1 if is_remote else 0) <= int(port) <= _HIGHEST_PORT
    if is_port and _IPV6_WITHOUT_BRACKETS.fullmatch(host):
        return f"write an address of IPv6 in brackets, such as [::1]:{port}"
    has_host = is_host(host) or (colon and not host and not is_remote)
    return "" if is_port and has_host else "write host:port or unix:/path"


def _path_problem(path: str) -> str:
    if not path.startswith("/"):
        return "write unix: and the full path of a socket, such as unix:/run/parser.sock"
    size = len(path.encode("utf-8", "surrogatepass"))
    if size > MOST_SOCKET_BYTES:
        return f"write a shorter path, as this one has {size} bytes, and that of a socket at most {MOST_SOCKET_BYTES}"
    return ""
