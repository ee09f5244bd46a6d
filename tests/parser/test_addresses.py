"""Addresses: of files on GitHub, addresses that are refused, and addresses of private machines."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.addresses import is_public, raw_address, vetted, without_user
from services.core.errors import SourceUnreadable

RAW = "https://raw.githubusercontent.com"


@pytest.mark.parametrize(
    ("address", "raw"),
    [
        ("https://github.com/o/r/blob/master/d/f.yml", f"{RAW}/o/r/master/d/f.yml"),
        ("https://github.com/o/r/raw/master/f.yaml?a=b&c", f"{RAW}/o/r/master/f.yaml?a=b&c"),
        ("http://github.com/o/r/blob/v1.0/f.json", "http://raw.githubusercontent.com/o/r/v1.0/f.json"),
        ("https://github.com/o/r/blob/main/f.jsonnet#L1", f"{RAW}/o/r/main/f.jsonnet#L1"),
        ("https://github.com/o/r/blob/main/a%20b%2Eyml", f"{RAW}/o/r/main/a%20b%2Eyml"),
        ("https://github.com/o/r/f.yml", f"{RAW}/o/r"),
    ],
)
def test_the_address_of_a_file_on_github_stands_for_its_raw_text(address: str, raw: str) -> None:
    assert raw_address(address) == raw


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/o/r/blob/master/f.txt",
        "https://github.com/o/r/blob/master/yml",
        "https://github.com/o/r/blob/master/f.YML",
        "https://github.com/o/r/blob/f.yml/d",
        "https://github.com/o/f.yml",
        "https://github.com/f.yml",
        "https://github.com",
        "https://www.github.com/o/r/blob/master/f.yml",
        "https://github.com:443/o/r/blob/master/f.yml",
        "https://github.com.example/o/r/blob/master/f.yml",
        "https://example.com/github.com/o/r/blob/f.yml",
        f"{RAW}/o/r/master/f.yml",
        "https://[github.com/o/r/blob/master/f.yml",
        "",
    ],
)
def test_other_addresses_stay_as_they_are(address: str) -> None:
    assert raw_address(address) == address


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("file:///etc/passwd", "http and https addresses only"),
        ("ftp://example.com/a.yml", "http and https addresses only"),
        ("a.yml", "http and https addresses only"),
        ("http://", "."),
        ("http:///a.yml", "."),
        ("http://[::1", "no address"),
        ("http://example.com:port/", "no address"),
        ("http://[x:y]/", "no address"),
        ("http://]:/#@[", "no address"),
        ("http://secret\\@example.com/", "no address"),
        ("http://example.com/\n", "no address"),
        ("https://user:secret@example.com/a.yml", "no user name or password"),
        ("https://secret@example.com/a.yml", "no user name or password"),
        ("https://:secret@example.com/a.yml", "no user name or password"),
        ("https://secret@user@example.com:port/", "no address"),
    ],
)
def test_an_address_that_cannot_be_fetched_is_refused_without_showing_secrets(address: str, problem: str) -> None:
    with pytest.raises(SourceUnreadable, match=problem) as caught:
        vetted(address)
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.metadata)


def test_an_address_is_shown_in_printable_characters() -> None:
    assert without_user("http://user:x@host/\n\x1b[31m?a=b@c") == "http://host/\ufffd\ufffd[31m?a=b@c"


PRIVATE = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.9",
    "192.0.0.10",
    "192.0.0.255",
    "192.0.2.1",
    "192.88.99.0",
    "192.88.99.255",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "140.82.121.4",
    "168.63.129.17",
    "172.32.0.1",
    "192.0.1.0",
    "192.88.98.255",
    "223.255.255.255",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_machines_are_known_however_they_are_written(address: str) -> None:
    assert not any(map(is_public, _ways_to_write(address)))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_machines_are_known_however_they_are_written(address: str) -> None:
    assert all(map(is_public, _ways_to_write(address)))


def _ways_to_write(address: str) -> list[str]:
    number = int(IPv4Address(address))
    sixtofour = IPv6Address((0x2002 << 112) | (number << 80) | 1)
    return [address, f"::ffff:{address}", f"64:ff9b::{address}", str(sixtofour)]


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "::127.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "3fff::1",
        "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff",
        "4000::1",
    ],
)
def test_private_machines_of_ipv6_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["2606:50c0:8000::154", "2a00:1450:4001::200e", "3ffe:ffff::1", "3fff:1000::1"])
def test_public_machines_of_ipv6_are_known(address: str) -> None:
    assert is_public(address)


@given(st.sampled_from(["10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"]), st.data())
def test_no_machine_of_a_private_network_is_public(network: str, data: st.DataObject) -> None:
    within = IPv4Network(network)
    number = data.draw(st.integers(int(within.network_address), int(within.broadcast_address)))
    assert not any(map(is_public, _ways_to_write(str(IPv4Address(number)))))
