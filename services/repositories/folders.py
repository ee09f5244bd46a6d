"""Reads files below a folder, and none that a link in it leads to elsewhere."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from services.packages.index_files import RepositoryFault
from services.repositories.file_problem import FileProblem

_MAX_LINKS = 40
"""As Linux has it; more are a circle."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link is an error, and the opening of a pipe does not wait for a writer."""


def read_file(root: Path, path: str, max_bytes: int) -> bytes:
    """
    Read a file below a folder.

    Each part of the path is opened below the part before, so what is checked is what is read, whatever changes
    meanwhile.

    Args:
        root: The folder; links on the way to it are followed.
        path: The path of the file in it, without ``..``.
        max_bytes: Its greatest size.

    Raises:
        FileProblem: It is not there, no regular file, too large, or a link leads out of the folder.
        OSError: The folder, or the file, cannot be read.
    """
    with _opened(root, path) as handle:
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
            raise FileProblem(RepositoryFault.FILE_MISSING, f"this is {what}; put the file there")
        return _bytes(handle, max_bytes)


def _bytes(handle: int, max_bytes: int) -> bytes:
    with os.fdopen(os.dup(handle), "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        problem = f"the file has more than {max_bytes:,} bytes; make it smaller"
        raise FileProblem(RepositoryFault.TOO_LARGE, problem)
    return data


@contextmanager
def _opened(root: Path, path: str) -> Iterator[int]:
    """A handle of what is at *path* below *root*."""
    with ExitStack() as closing:

        def opened(name: str | Path, flags: int, folder: int | None = None) -> int:
            handle = os.open(name, flags, dir_fd=folder)
            closing.callback(os.close, handle)
            return handle

        # The open folders from the root down to the part that is next.
        handles = [opened(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)]
        left, links = _parts(path), 0
        while left:
            part = left.pop(0)
            if part == "..":
                handles.pop()
                if not handles:
                    raise _leads_out()
                continue
            try:
                handles.append(opened(part, _READ, handles[-1]))
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    raise FileProblem(RepositoryFault.FILE_MISSING, "there is no such file") from None
                # Linux answers ELOOP for a link; other systems have numbers of their own.
                target = _link_target(part, handles[-1])
                if target is None:
                    raise
                links += 1
                if target.startswith("/") or links > _MAX_LINKS:
                    raise _leads_out() from None
                left = _parts(target) + left
        yield handles[-1]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _link_target(name: str, folder: int) -> str | None:
    """Where a link leads; None: it is no link."""
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _leads_out() -> FileProblem:
    problem = "a link leads out of the folder of the repository, or in a circle; put the file itself there"
    return FileProblem(RepositoryFault.PATH_REFUSED, problem)
