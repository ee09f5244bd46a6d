"""Which token a command sends, and to which server; a token that it cannot use is one line that says what to do."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from services.access.token_file import home_token
from services.access.tokens import new_token
from services.cli.caller import Caller
from services.cli.common import Common
from services.system import MachineIds
from tests.cli.command import environment, pkger
from tests.ports import home_at_ports

LIST = ("stacks", "list")

HINT = "(`export PKGER_TOKEN=$(pkger token local)` on the machine of the services)\n"


async def test_a_command_sends_a_token_to_a_port_only_if_it_was_given_one(tmp_path: Path) -> None:
    """Whoever holds the port would get that of the home."""
    async with home_at_ports(tmp_path) as home:
        env = environment(tmp_path) | home.environ
        token, other = home_token(tmp_path).token(), new_token(MachineIds())
        refused = await pkger(*LIST, env=env)
        assert (refused.code, refused.out) == (10, "")
        assert refused.err.startswith("Error: no valid token; ")
        assert refused.err.endswith(HINT)
        file = str(tmp_path / "token")
        for variables, code in (
            ({"PKGER_TOKEN": token}, 0),
            ({"PKGER_TOKEN_FILE": file}, 0),
            ({"PKGER_TOKEN": token, "PKGER_TOKEN_FILE": "/nothing"}, 0),
            ({"PKGER_TOKEN": other, "PKGER_TOKEN_FILE": file}, 10),
        ):
            assert (await pkger(*LIST, env=env | variables)).code == code, variables


async def test_the_token_of_a_context_goes_to_the_server_of_the_context_only(tmp_path: Path) -> None:
    env = environment(tmp_path)
    context = ("--server", "prod.invalid", "--token-file", "/prod-token")
    assert (await pkger("config", "set", "prod", *context, env=env)).code == 0
    assert (await pkger("config", "use", "prod", env=env)).code == 0

    def sent(server: str | None = None, **more: str) -> tuple[str | None, str | None]:
        """The server that a command calls, and the file of the token that it sends there."""
        environ = Common(server, caller=Caller(0, sys.stdout, sys.stderr, env | more)).environ()
        return environ.get("PKGER_SERVER"), environ.get("PKGER_TOKEN_FILE")

    assert sent() == ("prod.invalid", "/prod-token")
    assert sent(PKGER_TOKEN_FILE="/other") == ("prod.invalid", "/other")
    assert sent(PKGER_TOKEN="t") == ("prod.invalid", None)
    assert sent("other.invalid") == ("other.invalid", None)
    assert sent(PKGER_SERVER="other.invalid") == ("other.invalid", None)
    assert sent(PKGER_STACK_ADDRESS="other.invalid:1") == (None, None)


def folder(path: Path) -> None:
    path.mkdir()


def link(path: Path) -> None:
    path.symlink_to(path.parent / "token")


def with_mode(mode: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(new_token(MachineIds()))
        path.chmod(mode)

    return write


def with_text(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_text(text)
        path.chmod(0o600)

    return write


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "the token cannot be read from {path}: No such file or directory"),
        (folder, "{path} is not a regular file; "),
        (os.mkfifo, "{path} is not a regular file; "),
        (link, "{path} is a symbolic link, "),
        (with_mode(0o644), "other users of this machine may read {path}; run chmod 600 on it, "),
        (with_text(""), "{path} holds no token: write pkg1_"),
        (with_text("x" * 5120), "{path} holds no token: write pkg1_"),
        (with_text("pkg1_0123456789abcdef_" + "s" * 42), "{path} holds no token: write pkg1_"),
    ],
    ids=["none", "folder", "pipe", "link", "readable", "empty", "5 KiB", "cut"],
)
async def test_a_file_without_a_usable_token_is_reported_in_one_line(
    tmp_path: Path, make: Callable[[Path], object], problem: str
) -> None:
    home_token(tmp_path)
    make(path := tmp_path / "file")
    end = await pkger(*LIST, env=environment(tmp_path) | {"PKGER_SERVER": "127.0.0.1", "PKGER_TOKEN_FILE": str(path)})
    where = "Error: PKGER_TOKEN_FILE, or token_file of the context in use: "
    assert (end.code, end.out) == (10, "")
    assert end.err.startswith(where + problem.format(path=path))
    assert end.err.count("\n") == 1


@pytest.mark.parametrize("token", ["x", "pkg1_0123456789abcdef_" + "s" * 42, f"{'s' * 5120}", "a\nb", "Bearer x"])
async def test_a_text_that_is_no_token_is_reported_and_not_repeated(tmp_path: Path, token: str) -> None:
    end = await pkger(*LIST, env=environment(tmp_path) | {"PKGER_SERVER": "127.0.0.1", "PKGER_TOKEN": token})
    assert (end.code, end.out) == (10, "")
    assert end.err == (
        "Error: PKGER_TOKEN has no token: write pkg1_, 16 hexadecimal digits, _ and 43 letters, digits, - and _, as"
        " `pkger token local` prints one\n"
    )


async def test_a_rotated_token_is_printed_and_the_one_before_is_replaced(tmp_path: Path) -> None:
    env = environment(tmp_path)
    printed = [(await pkger("token", "local", *more, env=env)).out for more in ((), (), ("--rotate",), ())]
    first, second, rotated, last = printed
    assert first == second != rotated == last == f"{home_token(tmp_path).token()}\n"
