"""Folders and files that only the user who runs pkger may open: databases hold the packages of all stacks."""

import os
from contextlib import suppress
from pathlib import Path

_OF_OTHERS = 0o077


def private_folder(path: Path) -> None:
    """
    Make a folder, and the missing ones above it, with mode 0700; one that exists keeps its mode.

    Raises:
        OSError: It cannot be made.
    """
    if not path.parent.exists():
        private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)


def private_file(path: Path) -> None:
    """
    Make an empty file with mode 0600; one that exists keeps its content and gets the mode.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # By its path: to open and close a database that this process has open would release the locks of SQLite on it.
        restrict(path)


def restrict(path: Path) -> None:
    """Give a file, such as a copy of a backup, mode 0600; a file of another user keeps its mode."""
    with suppress(FileNotFoundError, PermissionError):
        if path.stat().st_mode & _OF_OTHERS:
            path.chmod(0o600)
