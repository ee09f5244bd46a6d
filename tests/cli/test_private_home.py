"""PKGER_HOME holds the packages of all stacks: only its owner may enter it and read its files."""

import os
import stat
from pathlib import Path

import pytest

from services.private_files import private_file, private_folder
from tests.apply.packages import an_object, text
from tests.cli.command import environment, installed, pkger


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
