"""PKGER_HOME holds the packages of all stacks: only its owner may enter it and read its files."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from services.private_files import (
    PathRefused,
    file_problem,
    folder_problem,
    open_private,
    private_file,
    private_folder,
    shared_file_problem,
)
from tests import needs
from tests.apply.packages import an_object, text
from tests.cli.command import Ended, ended, environment, installed, pkger, sockets, started

STRANGER = 4711
"""The id of another user."""


def modes(folder: Path) -> dict[str, int]:
    """The modes of a folder and of all that is in it."""
    paths = (folder, *folder.rglob("*"))
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in paths}


@pytest.fixture
def generous_umask() -> object:
    """What processes make is open to everybody, unless they say otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous_umask")
async def test_what_an_apply_writes_is_private(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(text(an_object("Label", "l", "label")))
    home = tmp_path / "users" / "home"
    env = environment(home)
    # The installed command, as a process of its own, which starts the services.
    applied = await installed("apply", "-f", str(tmp_path / "package.json"), "--stack", "s", env=env)
    assert applied.code == 0, applied.err
    assert (await pkger("config", "set", "lab", "--target", "embedded/lab", env=env)).code == 0
    found = modes(home)
    assert {".", "stack.db", "platform.db", "config.yml", "logs"} <= found.keys()
    assert {path: mode for path, mode in found.items() if mode & 0o077} == {}
    assert stat.S_IMODE((tmp_path / "users").stat().st_mode) == 0o700


def test_files_of_earlier_versions_become_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    old = tmp_path / "stack.db"
    old.write_text("content")
    old.chmod(0o644)
    private_folder(tmp_path)
    private_file(old)
    assert old.read_text() == "content"
    assert modes(tmp_path) == {".": 0o755, "stack.db": 0o600}


def status(mode: int, owner: int = os.geteuid()) -> os.stat_result:
    """The status of a folder or file of *owner*."""
    return os.stat_result((mode, 1, 1, 1, owner, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "owner", "problem"),
    [
        (0o700, 7, ""),
        (0o755, 7, ""),
        (0o2775, 7, ""),  # a volume of a group
        (0o2775, 0, ""),
        (0o700, 8, "the folder /data belongs to another user (uid 8), who could replace"),
        (0o777, 7, "every user of this machine may write to the folder /data, and could replace"),
        (0o1777, 0, "every user of this machine may write to the folder /data, and could replace"),
    ],
)
def test_a_folder_is_refused_if_others_control_it(mode: int, owner: int, problem: str) -> None:
    found = folder_problem(Path("/data"), status(stat.S_IFDIR | mode, owner), 7)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


@pytest.mark.parametrize(
    ("mode", "owner", "problem"),
    [
        (stat.S_IFREG | 0o644, 7, ""),
        (stat.S_IFREG | 0o644, 0, ""),
        (stat.S_IFREG | 0o600, 8, "the file /data/f belongs to another user (uid 8); remove it"),
        (stat.S_IFLNK | 0o777, 7, "/data/f is a symbolic link, "),
        (stat.S_IFIFO | 0o600, 7, "/data/f is not a regular file; use another path, or remove it"),
    ],
)
def test_a_file_is_refused_if_others_made_it_or_it_is_none(mode: int, owner: int, problem: str) -> None:
    found = file_problem(Path("/data/f"), status(mode, owner), 7)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_a_file_of_the_operator_is_refused_only_if_everybody_may_change_it() -> None:
    for mode in (0o644, 0o664, 0o600):
        assert shared_file_problem(Path("f"), status(stat.S_IFREG | mode, STRANGER)) == ""
    expected = "every user of this machine may change f; check its content, and run chmod o-w on it"
    assert shared_file_problem(Path("f"), status(stat.S_IFREG | 0o666)) == expected
    assert shared_file_problem(Path("/dev/null"), status(stat.S_IFCHR | 0o666)) == ""


def test_a_file_that_is_refused_is_not_changed(tmp_path: Path) -> None:
    """An opener must not empty the file before it is known to be one of pkger."""
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    target.write_text("content")
    target.chmod(0o644)
    link.symlink_to(target)
    os.mkfifo(pipe)
    for path, mode in ((link, "w"), (link, "r"), (link, "ab"), (pipe, "r")):
        with pytest.raises(PathRefused), open(path, mode, opener=open_private):
            raise AssertionError(path)
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode)) == ("content", 0o644)
    with open(target, "w", opener=open_private) as file:
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        file.write("new")
    assert target.read_text() == "new"


def refusal(end: Ended) -> str:
    """The one line with which a command ended."""
    assert (end.code != 0, end.out) == (True, "")
    *logged, last = end.err.splitlines()
    assert all(line.startswith("{") for line in logged), end.err
    assert last.startswith("Error: "), end.err
    return last.removeprefix("Error: ")


async def refused_up(folder: Path, data: Path) -> str:
    """The one line with which a ``pkger up`` on the databases in *data* ends; it is killed if it runs instead."""
    process = await started("up", "--data", str(data), env=environment(folder, sockets(folder)))
    try:
        async with asyncio.timeout(20):
            return refusal(await ended(process))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("name", ["stack.db", "stack.db.lock", "stack.db-wal", "stack.db-journal", "platform.db"])
async def test_a_link_in_the_folder_of_databases_is_not_followed(tmp_path: Path, name: str) -> None:
    """It would make a database elsewhere, or empty the file that it names."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "notes").write_text("content")
    for target in ("notes", "new"):
        (home / name).unlink(missing_ok=True)
        (home / name).symlink_to(elsewhere / target)
        (tmp_path / "package.json").write_text(text(an_object("Label", "l", "label")))
        end = await pkger("plan", "-f", str(tmp_path / "package.json"), env=environment(home))
        assert f"{home / name} is a symbolic link, and pkger would use the file that it names; " in refusal(end)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"notes": "content"}


async def test_a_link_named_as_the_lock_of_an_instance_empties_nothing(short_path: Path) -> None:
    target, data = short_path / "notes", short_path / "data"
    target.write_text("content")
    data.mkdir()
    (data / "up.lock").symlink_to(target)
    assert (await refused_up(short_path, data)).startswith(f"{data / 'up.lock'} is a symbolic link")
    assert target.read_text() == "content"


async def test_a_link_in_place_of_a_log_or_the_contexts_is_not_followed(tmp_path: Path) -> None:
    target, env = tmp_path / "notes", environment(tmp_path / "home")
    target.write_text("current: lab\ncontexts: {lab: {target: a/b}}\n")
    (tmp_path / "home" / "logs").mkdir(parents=True)
    (tmp_path / "home" / "logs" / "services.log").symlink_to(target)
    assert "services.log is a symbolic link" in refusal(await pkger("stacks", "list", env=env))
    (tmp_path / "home" / "config.yml").symlink_to(target)
    assert "config.yml is a symbolic link" in (await pkger("config", "list", env=env)).err
    assert target.read_text() == "current: lab\ncontexts: {lab: {target: a/b}}\n"


async def test_a_link_in_place_of_a_folder_is_not_followed(short_path: Path) -> None:
    """Whoever may change it decides which store is used."""
    data, link = short_path / "data", short_path / "link"
    link.symlink_to(data)
    for exists in (False, True):
        if exists:
            data.mkdir()
        listed = await pkger("stacks", "list", env=environment(short_path) | {"PKGER_DATA": str(link)})
        assert f"{link} is a symbolic link, and whoever may change it decides" in refusal(listed)
        assert (await refused_up(short_path, link)).startswith(f"{link} is a symbolic link")
        assert data.exists() is exists
    assert not list(data.iterdir())


async def test_a_folder_that_everybody_may_write_is_refused(short_path: Path) -> None:
    data = short_path / "data"
    data.mkdir()
    data.chmod(0o1777)
    expected = f"every user of this machine may write to the folder {data}, and could replace the files in it; "
    listed = await pkger("stacks", "list", env=environment(short_path) | {"PKGER_DATA": str(data)})
    assert expected in refusal(listed)
    assert (await refused_up(short_path, data)).startswith(expected)
    # The way out that the sentence names.
    inside = await pkger("stacks", "list", env=environment(short_path) | {"PKGER_DATA": str(data / "mine")})
    assert (inside.code, inside.err) == (0, "")


async def test_a_platforms_file_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "platforms.yml"
    file.write_text("embedded: {driver: embedded}\n")
    file.chmod(0o666)
    problem = f"every user of this machine may change {file}; check its content, and run chmod o-w on it"
    end = await pkger("plan", "-f", str(file), env=environment(tmp_path))
    assert refusal(end) == f"the platforms file cannot be used: {problem}"


def by_a_stranger(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "the folder HOME belongs to another user (uid 4711), who could replace the files in it; "),
        ("stack.db", "the file HOME/stack.db belongs to another user (uid 4711); "),
        ("stack.db.lock", "the file HOME/stack.db.lock belongs to another user (uid 4711); "),
        ("logs", "the folder HOME/logs belongs to another user (uid 4711), who could replace the files in it; "),
        ("logs/services.log", "the file HOME/logs/services.log belongs to another user (uid 4711); "),
        ("config.yml", "the file HOME/config.yml belongs to another user (uid 4711); "),
    ],
)
@needs.root()
async def test_what_another_user_prepared_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    """Its stacks, contexts or schema would be that user's, who could also read what is written."""
    home = tmp_path / "home"
    env = environment(home)
    assert (await pkger("stacks", "list", env=env)).code == 0
    (home / "config.yml").write_text("current: ''\ncontexts: {}\n")
    by_a_stranger(home / name)
    assert problem.replace("HOME", str(home)) in (await pkger("stacks", "list", env=env)).err
