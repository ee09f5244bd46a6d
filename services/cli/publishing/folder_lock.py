"""A lock on the folder of a repository: what one ``pkger repo index`` writes is not lost to another one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from services.cli.errors import CommandFailed


@contextmanager
def folder_lock(root: Path, is_check: bool) -> Iterator[None]:
    """
    Lock a folder until the block is left or this process ends; a file system without such locks, as NFS, has none.

    Args:
        root: The folder, which gets no further file.
        is_check: Whether nothing will be written, so that others may check as well.

    Raises:
        CommandFailed: Another process has the lock, or the folder cannot be read.
    """
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandFailed(f"{root}: {error.strerror or error}; name the folder of a repository") from error
    try:
        with suppress(OSError):
            _lock(descriptor, root, fcntl.LOCK_SH if is_check else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, root: Path, kind: int) -> None:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        text = f"{root}: another `pkger repo index` is at work in this folder; run the command again when it has ended"
        raise CommandFailed(text) from None
