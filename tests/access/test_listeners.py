"""What a listener is, by its address."""

import re
from collections.abc import Collection

import pytest

from services.access.listeners import ListenerInvalid, ListenerKind, listeners_of

HOSTS = {"near": {"127.0.0.1", "::1"}, "far": {"10.0.0.1"}, "both": {"127.0.0.1", "10.0.0.1"}}


def resolve(name: str) -> Collection[str]:
    if name not in HOSTS:
        raise OSError("no such host")
    return HOSTS[name]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("unix:/run/parser.sock", ListenerKind.SOCKET),
        ("127.0.0.1:50051", ListenerKind.LOOPBACK),
        ("127.9.9.9:50051", ListenerKind.LOOPBACK),
        ("localhost:0", ListenerKind.LOOPBACK),
        ("[::1]:50051", ListenerKind.LOOPBACK),
        ("near:1", ListenerKind.LOOPBACK),
        ("far:1", ListenerKind.NETWORK),
        ("both:1", ListenerKind.NETWORK),
        ("unknown:1", ListenerKind.NETWORK),
        ("0.0.0.0:50051", ListenerKind.NETWORK),
        ("[::]:50051", ListenerKind.NETWORK),
        (":50051", ListenerKind.NETWORK),
        ("10.0.0.1:50051", ListenerKind.NETWORK),
        ("[::ffff:127.0.0.1]:1", ListenerKind.NETWORK),
        ("128.0.0.1:1", ListenerKind.NETWORK),
    ],
)
def test_what_a_listener_is_follows_from_its_address(address: str, kind: ListenerKind) -> None:
    (listener,) = listeners_of([address], resolve)
    assert (listener.address, listener.kind) == (address, kind)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_both_loopback_addresses_are_bound(host: str) -> None:
    (listener,) = listeners_of([f"{host}:7"])
    assert listener.hosts == ("127.0.0.1", "::1")
    assert listeners_of(["127.0.0.2:7"])[0].hosts == ("127.0.0.2",)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("", "write host:port or unix:/path"),
        ("127.0.0.1", "write host:port or unix:/path"),
        ("127.0.0.1:x", "write host:port or unix:/path"),
        ("127.0.0.1:-1", "write host:port or unix:/path"),
        ("127.0.0.1:99999", "write host:port or unix:/path"),
        ("127.0.0.1:\u0661", "write host:port or unix:/path"),
        ("::1:50051", "brackets"),
        ("unix:", "the full path of a socket"),
        ("unix:run/parser.sock", "the full path of a socket"),
        ("unix:/" + "x" * 107, "has 108 bytes, and that of a socket at most 107"),
    ],
)
def test_another_address_is_refused_with_what_to_write(address: str, problem: str) -> None:
    with pytest.raises(ListenerInvalid, match=problem):
        listeners_of([address], resolve)


def test_a_path_may_have_107_bytes() -> None:
    assert listeners_of(["unix:/" + "x" * 106])


@pytest.mark.parametrize("other", ["localhost:7", "[::1]:7", "0.0.0.0:7", "[::]:7", ":7"])
def test_addresses_that_overlap_are_refused(other: str) -> None:
    for addresses in (["127.0.0.1:7", other], [other, "127.0.0.1:7"]):
        with pytest.raises(ListenerInvalid, match="overlap; remove one"):
            listeners_of(addresses)


@pytest.mark.parametrize("address", ["127.0.0.1:7", "0.0.0.0:7", "unix:/run/s"])
def test_the_same_address_twice_is_refused(address: str) -> None:
    with pytest.raises(ListenerInvalid, match=f"^{re.escape(address)} is listed twice; list it once"):
        listeners_of(["127.0.0.1:8", address, address])


def test_a_server_may_have_several_ports_and_sockets() -> None:
    addresses = ["127.0.0.1:7", "127.0.0.1:8", "127.0.0.2:7", "127.0.0.1:0", "127.0.0.1:0", "unix:/a", "unix:/b"]
    assert [each.address for each in listeners_of(addresses)] == addresses
