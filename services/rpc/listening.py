"""Checks whether a server can listen at an address, without the lines that gRPC prints if it cannot."""

import contextlib
import socket

_HIGHEST_PORT = 65535


def can_listen(address: str) -> bool:
    """
    Whether ``host:port`` is free and of this machine; Unix sockets are left to gRPC.

    As in gRPC, one free address of a host name is enough.
    """
    host, _, port = address.rpartition(":")
    if address.startswith("unix:"):
        return True
    if port.isdecimal() and int(port) > _HIGHEST_PORT:
        # The resolver would cut off the higher bits.
        return False
    try:
        addresses = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return any(_is_free(family, place) for family, _, _, _, place in addresses)


def _is_free(family: int, place: tuple[str | int, ...] | tuple[int, bytes]) -> bool:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        # With this option a port that was closed a moment ago is free, as it is for gRPC.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)
        return True
    return False
