"""
What a listener is, and what it demands of callers: a socket nothing, an address of this machine the token of its home,
and any other address the token of the operator.
"""

import socket
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import ip_address
from itertools import combinations

from services.core.addresses import SOCKET_PREFIX, address_problem

ANY_HOST = frozenset({"0.0.0.0", "::", ""})  # noqa: S104
"""Hosts that stand for every address of a machine."""


class ListenerKind(Enum):
    """From where a listener can be reached."""

    SOCKET = "socket"
    """From this user's processes: its folder is closed for others."""
    LOOPBACK = "loopback"
    """From this machine."""
    NETWORK = "network"
    """From other machines."""


class ListenerInvalid(Exception):
    """A server cannot listen there; the message is a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Listener:
    """
    Where a server listens.

    Attributes:
        address: ``host:port`` or ``unix:/path``.
        kind: What it is.
    """

    address: str
    kind: ListenerKind

    @property
    def path(self) -> str:
        """The path of a socket; empty for a port."""
        return self.address.removeprefix(SOCKET_PREFIX) if self.kind is ListenerKind.SOCKET else ""

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The host, without brackets, and the port."""
        host, _, port = self.address.rpartition(":")
        return host.strip("[]"), int(port)

    @property
    def hosts(self) -> tuple[str, ...]:
        """
        The hosts that have to be bound. One of the two loopback addresses alone would leave the other one to other
        users of the machine, who would be called by whoever connects to ``localhost``.
        """
        host, _ = self.host_and_port
        is_pair = self.kind is ListenerKind.LOOPBACK and host in ("127.0.0.1", "::1", "localhost")
        return ("127.0.0.1", "::1") if is_pair else (host,)


Resolve = Callable[[str], Collection[str]]
"""Returns the addresses of a host name; raises ``OSError`` if there are none."""


def resolve_host(name: str) -> Collection[str]:
    """The addresses of a host name, as the machine resolves it."""
    return {str(place[0]) for _, _, _, _, place in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)}


def listeners_of(addresses: Iterable[str], resolve: Resolve = resolve_host) -> list[Listener]:
    """
    The listeners at *addresses*, in their order.

    Raises:
        ListenerInvalid: An address has another form, or two of them overlap.
    """
    listeners = [_listener(address, resolve) for address in addresses]
    for one, other in combinations(listeners, 2):
        if problem := _overlap_problem(one, other):
            raise ListenerInvalid(f"{problem} (PKGER_LISTEN)")
    return listeners


def _overlap_problem(one: Listener, other: Listener) -> str:
    """Why a server cannot listen at both; empty if it can. With port 0, each gets a port of its own."""
    if one.path or other.path:
        is_same = one.path == other.path
    else:
        (_, port), (_, other_port) = one.host_and_port, other.host_and_port
        hosts, other_hosts = set(one.hosts), set(other.hosts)
        is_same = port == other_port != 0 and bool(hosts & other_hosts or (hosts | other_hosts) & ANY_HOST)
    if not is_same:
        return ""
    if one.address == other.address:
        return f"{one.address} is listed twice; list it once"
    return (
        f"{one.address} and {other.address} overlap; remove one, as a loopback address stands for 127.0.0.1 and ::1,"
        " and 0.0.0.0 or [::] for every address"
    )


def _listener(address: str, resolve: Resolve) -> Listener:
    """
    The listener at *address*.

    Raises:
        ListenerInvalid: The address has another form.
    """
    if problem := address_problem(address):
        raise ListenerInvalid(f"{address}: {problem} (PKGER_LISTEN, PKGER_<SERVICE>_ADDRESS, PKGER_RUN)")
    if address.startswith(SOCKET_PREFIX):
        return Listener(address, ListenerKind.SOCKET)
    host, _, _ = address.rpartition(":")
    return Listener(address, _kind_of_host(host.strip("[]"), resolve))


def _kind_of_host(host: str, resolve: Resolve) -> ListenerKind:
    """What a listener at *host* is: loopback only if all of its addresses are; an empty host means all interfaces."""
    if host == "localhost":
        return ListenerKind.LOOPBACK
    try:
        addresses = [host] if not host or _is_address(host) else resolve(host)
    except (OSError, UnicodeError):
        # The server cannot bind it either; until then, it may be anywhere.
        return ListenerKind.NETWORK
    is_loopback = bool(addresses) and all(each and ip_address(each).is_loopback for each in addresses)
    return ListenerKind.LOOPBACK if is_loopback else ListenerKind.NETWORK


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
