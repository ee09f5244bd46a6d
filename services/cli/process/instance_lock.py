"""A lock on a folder of databases: one ``pkger up`` at a time runs on it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from services.cli.errors import CommandFailed
from services.private_files import PathRefused, open_private, private_folder


@contextmanager
def instance_lock(data: Path) -> Iterator[None]:
    """
    Lock the folder *data* until the block is left or this process ends.

    Raises:
        CommandFailed: Another process holds the lock, or the folder cannot be written, or another user may control it.
    """
    path = data / "up.lock"
    try:
        private_folder(data)
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
    except PathRefused as error:
        raise CommandFailed(str(error)) from error
    except OSError as error:
        raise CommandFailed(f"cannot write {path}: {error.strerror or error}") from error
    try:
        _lock(descriptor, data)
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())  # noqa: TID251 - for operators
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, data: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        process = f" (process {holder})" if holder else ""
        raise CommandFailed(
            f"another `pkger up`{process} runs on the databases in {data}; stop it, or give this one another folder"
            " with --data"
        ) from None
