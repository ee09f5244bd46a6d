"""Files below a folder, and links out of it."""

import os
from pathlib import Path

import pytest

from services.packages.index_files import RepositoryFault
from services.repositories.file_problem import FileProblem
from services.repositories.folders import read_file


def fault(root: Path, path: str) -> RepositoryFault:
    with pytest.raises(FileProblem) as raised:
        read_file(root, path, 10)
    return raised.value.fault


def test_files_and_links_within_the_folder_are_read(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/c").write_text("text")
    (tmp_path / "d").symlink_to("a/b")
    (tmp_path / "a/e").symlink_to("../d/../b/c")
    assert {read_file(tmp_path, path, 4) for path in ("a/b/c", "d/c", "a/e")} == {b"text"}


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    (tmp_path / "secret").write_text("text")
    (root / "up").symlink_to("../secret")
    (root / "absolute").symlink_to(tmp_path / "secret")
    (root / "in/folder").symlink_to("../..")
    (root / "circle").symlink_to("circle")
    for path in ("up", "absolute", "in/folder/secret", "circle", "../secret", "in/../../secret"):
        assert fault(root, path) is RepositoryFault.PATH_REFUSED


def test_what_is_no_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    os.mkfifo(tmp_path / "pipe")
    for path in ("folder", "none", "folder/none", "file/none", "pipe"):
        assert fault(tmp_path, path) is RepositoryFault.FILE_MISSING


def test_the_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 11)
    assert fault(tmp_path, "large") is RepositoryFault.TOO_LARGE
    (tmp_path / "large").write_text("x" * 10)
    assert len(read_file(tmp_path, "large", 10)) == 10


def test_a_folder_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "none", "a", 10)


def test_a_folder_in_the_folder_bounds_links_as_well(tmp_path: Path) -> None:
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "root" / "file").write_text("text")
    (tmp_path / "root" / "in" / "up").symlink_to("../file")
    (tmp_path / "root" / "out").symlink_to("..")
    with pytest.raises(FileProblem):
        read_file(tmp_path / "root", "up", 10, "in")
    assert read_file(tmp_path / "root", "in/up", 10) == b"text"
    with pytest.raises(FileNotFoundError, match="a link leads out"):
        read_file(tmp_path / "root", "root/file", 10, "out")
