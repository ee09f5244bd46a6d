"""Commands find the services of `pkger up` at their sockets, and nobody else's."""

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.apply.packages import an_object, text
from tests.cli.command import ended, environment, pkger, started

LABEL = text(an_object("Label", "l", "label"))


@asynccontextmanager
async def running(home: Path, more: Mapping[str, str] | None = None) -> AsyncIterator[tuple[dict[str, str], str]]:
    """``pkger up`` on *home*, with ports that the kernel picks; the environment of commands, and what it printed."""
    names = ("PARSER", "PLANNER", "APPLIER", "STACK", "HTTP")
    ports = {f"PKGER_{name}_ADDRESS": "127.0.0.1:0" for name in names}
    env = environment(home) | dict(more or {})
    process = await started("up", "--http", env=env | ports)
    assert process.stdout
    try:
        printed = b""
        while b"\nready" not in printed:
            line = await process.stdout.readline()
            assert line, (await ended(process)).err
            printed += line
        yield env, printed.decode()
    finally:
        process.terminate()
        end = await ended(process)
    assert end.code == 0, end.err


@pytest.mark.slow
async def test_a_command_uses_the_services_that_run(short_path: Path) -> None:
    package = short_path / "p.json"
    package.write_text(LABEL)
    async with running(short_path) as (env, printed):
        assert f"made the token for other programs, {short_path}/token" in printed
        applied = await pkger("apply", "-f", str(package), "--stack", "s", "--yes", env=env)
        assert (applied.code, applied.err) == (0, "")
        listed = await pkger("stacks", "list", "-o", "json", env=env)
        assert [each["name"] for each in json.loads(listed.out)] == ["s"]
        # Services of a command have a log there.
        assert not (short_path / "logs").exists()
        other = await pkger("stacks", "list", env=env | {"PKGER_DATA": str(short_path / "other")})
        assert (other.code, other.out) == (1, "")
        assert f"run on the databases in {short_path}, and this command is for those in" in other.err
    alone = await pkger("stacks", "list", "-o", "json", env=env)
    assert [each["name"] for each in json.loads(alone.out)] == ["s"]
    assert (short_path / "logs").exists()


@pytest.mark.slow
async def test_a_second_home_has_its_own_services(short_path: Path) -> None:
    async with running(short_path / "a") as (env, _):
        second = await pkger("stacks", "list", env=environment(short_path / "b"))
        assert (second.code, (short_path / "b" / "logs").exists()) == (0, True)
        again = await pkger("up", env=env)
        assert again.code == 1
        assert "another `pkger up`" in again.err


async def test_a_folder_of_sockets_that_others_may_enter_is_not_used(short_path: Path) -> None:
    """Its owner, or whoever made a socket there, would get the package, and its secrets."""
    run = short_path / "run"
    run.mkdir(mode=0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        stranger.bind(str(run / "stack.sock"))
        stranger.listen()
        end = await pkger("stacks", "list", env=environment(short_path))
    assert (end.code, end.out) == (1, "")
    assert end.err.startswith(f"Error: other users of this machine may enter the folder {run}")


async def test_a_socket_at_which_nobody_answers_is_not_used(short_path: Path) -> None:
    (short_path / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(short_path / "run" / "stack.sock"))
    end = await pkger("stacks", "list", env=environment(short_path))
    assert (end.code, (short_path / "logs").exists()) == (0, True)
