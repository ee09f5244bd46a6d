"""Sockets and ports of servers: nobody else answers there while a server runs, and a server answers at all of them."""

import contextlib
import fcntl
import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from services.access.listeners import Listener
from services.private_files import open_private, own_folder

_CONNECT_SECONDS = 1.0

_ATTEMPTS = 100
"""To find a port that is free at both loopback addresses."""

WAY_OUT = "stop the program that has it, or choose another address (PKGER_<SERVICE>_ADDRESS, PKGER_LISTEN)"
"""What to do about an address that is in use, for messages."""


@contextmanager
def locked_socket(path: str, data: Path) -> Iterator[None]:
    """
    Lock a socket, by ``NAME.lock`` beside it, for the time of the block; a socket that was left is removed.

    gRPC would take a live socket from another server without a word. The lock has the folder of the databases of the
    server, *data*, for ``data_of``.

    Raises:
        PathRefused: Others may enter its folder.
        OSError: Another process listens there, or its folder cannot be used.
    """
    place = Path(path)
    try:
        own_folder(place.parent)
        lock = open_private(place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
    except (FileNotFoundError, NotADirectoryError):
        raise OSError(f"cannot listen on unix:{path}: there is no folder {place.parent}") from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _in_use(path) from None
        _remove_left(place)
        os.ftruncate(lock, 0)
        os.write(lock, bytes(data.absolute()))
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                place.unlink()
    finally:
        os.close(lock)


def data_of(path: Path) -> Path | None:
    """The folder of the databases of the server at a socket; None: there is no such server."""
    try:
        return Path(os.fsdecode(path.with_suffix(".lock").read_bytes()))
    except OSError:
        return None


def answers(path: Path) -> bool:
    """Whether a server answers at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, contextlib.suppress(OSError):
        # A server that hangs lets others wait once many have connected.
        probe.settimeout(_CONNECT_SECONDS)
        probe.connect(str(path))
        return True
    return False


def free_addresses(listener: Listener) -> list[str]:
    """
    The addresses that a server of a port has to bind, ``host:port`` each: a loopback one means both of this machine.

    Returns:
        The addresses; with port 0, one of them has that port, for the kernel to pick one, or all have one free port.

    Raises:
        OSError: One is in use, or not an address of this machine.
    """
    host, port = listener.host_and_port
    hosts = [each for each in listener.hosts if each == host or _is_of_machine(each)]
    if len(hosts) > 1 and port == 0:
        return _free_pair(hosts)
    addresses = [_written(each, port) for each in hosts]
    if problem := next((each for each in addresses if not _can_listen(each)), ""):
        if problem == listener.address:
            raise OSError(f"cannot listen on {problem}: it is in use or not an address of this machine; {WAY_OUT}")
        raise OSError(
            f"cannot listen on {listener.address}: {problem} is in use, and whoever connects to localhost may get that;"
            f" {WAY_OUT}"
        )
    return addresses


def _free_pair(hosts: Sequence[str]) -> list[str]:
    """The addresses of *hosts* with one port that is free at all of them."""
    for _ in range(_ATTEMPTS):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((hosts[0], 0))
            port = probe.getsockname()[1]
        addresses = [_written(each, port) for each in hosts]
        if all(map(_can_listen, addresses)):
            return addresses
    raise OSError(f"cannot listen: no port is free at all of {', '.join(hosts)}")


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_of_machine(host: str) -> bool:
    """Whether this machine has an address: without IPv6, it has no ``::1``."""
    return _can_listen(_written(host, 0))


def _can_listen(address: str) -> bool:
    """Whether ``host:port`` is free and of this machine; as in gRPC, one free address of a host name is enough."""
    host, _, port = address.rpartition(":")
    try:
        places = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return any(_is_free(family, place) for family, _, _, _, place in places)


def _is_free(family: int, place: tuple[str | int, ...] | tuple[int, bytes]) -> bool:
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
        # With this option a port that was closed a moment ago is free, as it is for gRPC.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)
        return True
    return False


def _in_use(path: str) -> OSError:
    return OSError(f"cannot listen on unix:{path}: another process does; stop it, or choose another folder (PKGER_RUN)")


def _remove_left(place: Path) -> None:
    """
    Remove the socket of a server that has died.

    Raises:
        OSError: A process answers there that does not hold the lock, or it is no socket.
    """
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise OSError(f"cannot listen on unix:{place}: {place} is no socket; remove it")
    if answers(place):
        raise _in_use(str(place))
    place.unlink()
