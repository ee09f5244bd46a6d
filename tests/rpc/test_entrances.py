"""Where a server listens: what it demands there, and what it refuses, before anything is started."""

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from services.access.listeners import Listener, ListenerKind
from services.rpc import listening
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.client import Peer
from services.rpc.entrances import CannotServe, Entrance, entrances_of
from services.rpc.server import serving
from services.settings import Settings, load
from tests import needs
from tests.rpc.plumbing import SERVICES, registered
from tests.transport import socket_in_new_folder

MIB = 2**20


def settings(home: Path, **more: str) -> Settings:
    return load({"PKGER_HOME": str(home), **more})


async def served(home: Path, *addresses: str, service: str = "parser", **more: str) -> list[str]:
    """The addresses of a server that started at *addresses*, and was stopped again."""
    entrances = entrances_of(service, addresses, settings(home, **more))
    async with serving(registered(), SERVICES, entrances, 0) as bound:
        return bound


def network(home: Path) -> dict[str, str]:
    """The settings of a listener that other machines reach."""
    (home / "operator").write_text("pkg1_0123456789abcdef_" + "o" * 43)
    (home / "operator").chmod(0o600)
    return {"PKGER_ALLOW_PLAINTEXT": "1", "PKGER_OPERATOR_TOKEN_FILE": str(home / "operator")}


async def test_by_default_a_service_has_a_socket_and_both_loopback_addresses(tmp_path: Path) -> None:
    own = settings(tmp_path, PKGER_RUN="/run/pkger")
    assert own.listen_addresses("parser") == ("unix:/run/pkger/parser.sock", "127.0.0.1:50051")
    assert own.listen_addresses("http") == ("unix:/run/pkger/http.sock", "127.0.0.1:8086")
    assert own.listen_addresses("platform") == ("unix:/run/pkger/platform.sock",)
    moved = settings(tmp_path, PKGER_RUN="/r", PKGER_PARSER_ADDRESS="127.0.0.1:7", PKGER_SERVER="far")
    assert moved.listen_addresses("parser") == ("unix:/r/parser.sock", "127.0.0.1:7")
    assert moved.listen_addresses("stack") == ("unix:/r/stack.sock", "127.0.0.1:50054")
    assert settings(tmp_path, PKGER_LISTEN="a:1, unix:/b,").listen_addresses("parser") == ("a:1", "unix:/b")


async def test_one_address_of_each_listener_is_told(tmp_path: Path) -> None:
    with socket_in_new_folder() as at:
        bound = await served(tmp_path, at, "127.0.0.1:0", "0.0.0.0:0", **network(tmp_path))
        assert bound[0] == at
        assert bound[1].startswith("127.0.0.1:")
        assert bound[2].startswith("0.0.0.0:")
        assert len(set(bound)) == 3


def test_what_a_listener_is_decides_what_it_demands(tmp_path: Path) -> None:
    at = ["unix:/s", "127.0.0.1:1", "0.0.0.0:2"]
    entrances = entrances_of("parser", at, settings(tmp_path, **network(tmp_path)))
    assert [each.token and each.token.path for each in entrances] == [None, tmp_path / "token", tmp_path / "operator"]
    assert [each.has_reflection for each in entrances] == [True, True, False]
    assert [each.message_bytes for each in entrances] == [MESSAGE_LIMIT, 16 * MIB, MESSAGE_LIMIT]
    (stack,) = entrances_of("stack", ["127.0.0.1:1"], settings(tmp_path))
    assert stack.message_bytes == 4 * MIB


@pytest.mark.parametrize(("value", "expected"), [("0", [False] * 3), ("1", [True] * 3)])
def test_reflection_can_be_set(tmp_path: Path, value: str, expected: list[bool]) -> None:
    common = settings(tmp_path, PKGER_REFLECTION=value, **network(tmp_path))
    entrances = entrances_of("parser", ["unix:/s", "127.0.0.1:1", "0.0.0.0:2"], common)
    assert [each.has_reflection for each in entrances] == expected


@pytest.mark.parametrize(
    ("address", "more", "problem"),
    [
        ("0.0.0.0:1", {}, "0.0.0.0:1 can be reached from other machines, and tokens would pass unencrypted"),
        ("nobody.invalid:1", {}, "PKGER_ALLOW_PLAINTEXT=1"),
        ("0.0.0.0:1", {"PKGER_ALLOW_PLAINTEXT": "1"}, "name it in PKGER_OPERATOR_TOKEN_FILE"),
        ("0.0.0.0:1", {"PKGER_ALLOW_PLAINTEXT": "1", "PKGER_OPERATOR_TOKEN_FILE": "/nothing"}, "cannot be read"),
        ("127.0.0.1", {}, "write host:port or unix:/path"),
        ("unix:/" + "x" * 107, {}, "has 108 bytes"),
        ("unix:/tmp/pkger-test.sock", {}, "/tmp"),
        ("unix:{home}/open/s", {}, "other users of this machine may enter the folder {home}/open"),
        ("unix:{home}/link/s", {}, "{home}/link is no folder"),
        ("unix:{home}/nothing/s", {}, "there is no folder {home}/nothing"),
        ("unix:{home}/file/s", {}, "{home}/file is no folder; remove it"),
        ("unix:{home}/own/file", {}, "{home}/own/file is no socket; remove it"),
        ("unix:{home}/own/live", {}, "another process does"),
    ],
)
async def test_an_address_that_cannot_be_used_starts_nothing(
    tmp_path: Path, address: str, more: dict[str, str], problem: str
) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("own")
    for name in ("file", "own/file"):
        (tmp_path / name).touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as live, socket_in_new_folder() as first:
        os.chdir(tmp_path)
        live.bind("own/live")
        live.listen()
        with pytest.raises((CannotServe, OSError)) as raised:
            await served(tmp_path, first, address.format(home=tmp_path), **more)
        assert problem.format(home=tmp_path) in str(raised.value)
        assert "\n" not in str(raised.value)
        assert not Path(first.removeprefix("unix:")).exists()


@pytest.fixture(autouse=True)
def in_its_own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Paths relative to the folder of a test are short enough for a socket."""
    monkeypatch.chdir(tmp_path)


async def test_a_port_whose_other_loopback_address_is_taken_is_refused(tmp_path: Path) -> None:
    """Whoever has it would be called by everybody who connects to localhost."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as stranger:
        stranger.bind(("::1", 0))
        port = stranger.getsockname()[1]
        with pytest.raises(OSError, match=rf"127.0.0.1:{port}: \[::1\]:{port} is in use, .*; stop the program that"):
            await served(tmp_path, f"127.0.0.1:{port}")
        with pytest.raises(OSError, match=rf"\[::1\]:{port}"):
            await served(tmp_path, f"localhost:{port}")


async def test_both_loopback_addresses_are_taken(tmp_path: Path) -> None:
    entrance = Entrance(Listener("127.0.0.1:0", ListenerKind.LOOPBACK))
    async with serving(registered(), SERVICES, [entrance], 0) as (address,):
        port = int(address.rpartition(":")[2])
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family, socket.SOCK_STREAM) as stranger, pytest.raises(OSError, match="in use"):
                stranger.bind((host, port))


async def test_a_machine_without_ipv6_has_one_loopback_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "_is_of_machine", lambda host: host != "::1")
    assert listening.free_addresses(Listener("localhost:0", ListenerKind.LOOPBACK)) == ["127.0.0.1:0"]
    assert await served(tmp_path, "127.0.0.1:0")


async def test_a_port_in_use_and_one_that_does_not_exist_are_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            OSError, match=f"cannot listen on {address}: it is in use or not an address of this machine"
        ):
            await served(tmp_path, address)
    with pytest.raises(CannotServe, match=r"127\.0\.0\.1:99999: write host:port"):
        await served(tmp_path, "127.0.0.1:99999")
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:1"):
        await served(tmp_path, "192.0.2.1:1", **network(tmp_path))


async def test_a_socket_belongs_to_one_server_at_a_time(tmp_path: Path) -> None:
    with socket_in_new_folder() as at:
        entrance = Entrance(Listener(at, ListenerKind.SOCKET), data=Path("/data"))
        async with serving(registered(), SERVICES, [entrance], 0):
            assert listening.data_of(Path(at.removeprefix("unix:"))) == Path("/data")
            with pytest.raises(OSError, match="another process does"):
                async with serving(registered(), SERVICES, [entrance], 0):
                    pass
            async with Peer("other", at) as peer:
                await peer.channel.channel_ready()
        # What a killed server leaves is removed.
        Path(at.removeprefix("unix:")).touch()
        Path(at.removeprefix("unix:")).unlink()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
            left.bind(at.removeprefix("unix:"))
        async with serving(registered(), SERVICES, [entrance], 0):
            pass


@needs.root()
@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (lambda run: run.write_text(""), "File exists|is no folder|Not a directory"),
        (lambda run: (run.mkdir(mode=0o700), shutil.chown(run, 65534, 65534)), "belongs to another user"),
        (lambda run: (run.mkdir(), run.chmod(0o777)), "other users of this machine may enter"),
        (lambda run: (run.mkdir(), run.chmod(0o750)), "other users of this machine may enter"),
        (lambda run: (run.mkdir(mode=0o700), shutil.chown(run.parent, 65534)), "is in a folder of another user"),
    ],
    ids=["file", "other user", "writable", "group", "in that of another user"],
)
async def test_a_folder_of_sockets_of_others_is_refused(
    tmp_path: Path, prepare: Callable[[Path], object], problem: str
) -> None:
    prepare(tmp_path / "run")
    with pytest.raises((CannotServe, OSError), match=problem):
        await served(tmp_path, *settings(tmp_path, PKGER_RUN="run").listen_addresses("platform"), PKGER_RUN="run")
