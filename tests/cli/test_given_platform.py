"""``pkger up --platform eu=URL``: an InfluxDB server for one run, and the options that are refused."""

import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.apply.packages import an_object, text
from tests.cli.command import Ended, ended, environment, pkger, sockets, started
from tests.influx.server import influx

PACKAGE = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"]))


@asynccontextmanager
async def running(*arguments: str, env: Mapping[str, str]) -> AsyncIterator[list[str]]:
    """``pkger up`` with *arguments*, once it is ready; the lines that it printed until then."""
    process = await started("up", *arguments, env=env)
    assert process.stdout
    printed: list[str] = []
    try:
        while not (line := (await process.stdout.readline()).decode()).startswith("ready"):
            assert line, (await ended(process)).err
            printed.append(line)
        yield printed
    finally:
        process.send_signal(signal.SIGINT)
        end = await ended(process)
    assert end.code == 0


@pytest.mark.slow
async def test_a_typed_server_is_a_platform_besides_those_of_the_file(short_path: Path) -> None:
    (short_path / "p.json").write_text(PACKAGE)
    (short_path / "platforms.yml").write_text(
        f"embedded: {{driver: embedded}}\nlab: {{driver: embedded, address: 'unix:{short_path}/lab.sock'}}\n"
    )
    async with influx() as server:
        env = environment(short_path, sockets(short_path))
        given = env | {"PKGER_INFLUXDB_TOKEN": server.token}
        async with running("--platform", f"eu={server.url}", env=given) as printed:
            assert {line.split()[0] for line in printed} >= {"platform", "platform-lab", "platform-eu"}
            for target in ("eu/main", "lab/main", "embedded/main"):
                apply = ("apply", "-f", str(short_path / "p.json"), "--stack", "s", "--target", target)
                assert "Done: 2 created, 1 label(s) attached." in (await pkger(*apply, env=env)).out
            checked = await pkger("platforms", "check", "eu", "--org", "main", env=env)
            assert checked.code == 0
            assert "  ok       read labels " in checked.out
        logs = "".join(path.read_text() for path in short_path.rglob("*.log"))
        assert server.token not in logs
        assert [label["name"] for label in server.state.labels.values()] == ["red"]


async def up(folder: Path, *arguments: str, token: str = "canary-8a1f") -> Ended:
    """``pkger up`` that cannot start."""
    env = environment(folder, sockets(folder)) | ({"PKGER_INFLUXDB_TOKEN": token} if token else {})
    end = await pkger("up", *arguments, env=env)
    assert (end.code, end.out) == (1, "")
    assert "canary" not in end.err
    return end


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("eu", "--platform: write NAME=URL, such as eu=https://influx.example.com:8086"),
        ("https://canary@host", "--platform: write NAME=URL, such as eu=https://influx.example.com:8086"),
        ("eu=", "--platform: write NAME=URL, such as eu=https://influx.example.com:8086"),
        (
            "EU=http://host",
            "--platform: the name 'EU' cannot be used; write up to 40 lower-case letters, digits, - and _, the first a"
            " letter or digit",
        ),
        (
            "eu=host:8086",
            "--platform: platform eu: option 'url' is no URL such as https://influx.example.com:8086",
        ),
        (
            "eu=http://me:canary@host",
            "--platform: platform eu: option 'url' holds a credential; name the token by 'token_file' or"
            " 'token_variable'",
        ),
        (
            "embedded=http://host",
            "--platform: platform embedded: another platform has that name: the default",
        ),
    ],
)
async def test_an_invalid_platform_is_refused(short_path: Path, typed: str, problem: str) -> None:
    assert (await up(short_path, "--platform", typed)).err == f"Error: {problem}\n"


async def test_a_platform_without_a_token_is_refused(short_path: Path) -> None:
    end = await up(short_path, "--platform", "eu=http://host", token="")
    assert end.err == "Error: --platform eu: put the token of the server into PKGER_INFLUXDB_TOKEN\n"


async def test_the_token_of_one_server_is_sent_to_no_other(short_path: Path) -> None:
    end = await up(short_path, "--platform", "eu=http://one", "--platform", "us=http://two")
    assert end.err.startswith(
        "Error: --platform is given 2 times, and PKGER_INFLUXDB_TOKEN holds the token of one server; "
    )


async def test_a_server_of_the_file_cannot_be_a_second_platform(short_path: Path) -> None:
    (short_path / "platforms.yml").write_text(
        "eu: {driver: influxdb, address: '127.0.0.1:50060', options: {url: 'http://host', token_variable: T}}\n"
    )
    again = await up(short_path, "--platform", "eu=http://other")
    assert again.err.endswith(f"another platform has that name: {short_path}/platforms.yml:1\n")
    same = await up(short_path, "--platform", "us=http://host:80/")
    assert "it has the same data as platform eu" in same.err
