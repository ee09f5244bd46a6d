"""Reads files below a folder, and none that a link in it leads to elsewhere."""

import errno
import os
import stat
from contextlib import ExitStack
from pathlib import Path

from services.packages.index_files import RepositoryFault
from services.repositories.file_problem import FileProblem

_MAX_LINKS = 40
"""As Linux has it; more are a circle."""

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link is an error, and the opening of a pipe does not wait for a writer."""


def read_file(root: Path, path: str, max_bytes: int, folder: str = "") -> bytes:
    """
    Read a file below a folder.

    Each part of the path is opened below the part before, so what is checked is what is read, whatever changes
    meanwhile.

    Args:
        root: The folder; links on the way to it are followed.
        path: The path of the file in it, or in *folder*.
        max_bytes: Its greatest size.
        folder: The path of a folder in the first one. No link of the path may lead out of it, nor a link on the way to
            it out of the first one.

    Raises:
        FileProblem: It is not there, no regular file, too large, or a link leads out of the folder.
        OSError: The folder, or the file, cannot be read.
    """
    with ExitStack() as closing:
        handle = _opened(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY, None, closing)
        try:
            handle = _walked(handle, folder, closing)
        except FileProblem as problem:
            raise OSError(errno.ENOENT, problem.problem) from None
        handle = _walked(handle, path, closing)
        kind = os.fstat(handle).st_mode
        if not stat.S_ISREG(kind):
            what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
            raise FileProblem(RepositoryFault.FILE_MISSING, f"this is {what}; put the file there")
        return _bytes(handle, max_bytes)


def _bytes(handle: int, max_bytes: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        problem = f"the file has more than {max_bytes:,} bytes; make it smaller"
        raise FileProblem(RepositoryFault.TOO_LARGE, problem)
    return data


def _opened(name: str | Path, flags: int, folder: int | None, closing: ExitStack) -> int:
    handle = os.open(name, flags, dir_fd=folder)
    closing.callback(os.close, handle)
    return handle


def _walked(base: int, path: str, closing: ExitStack) -> int:
    """A handle of what is at *path* below the open folder *base*."""
    # The open folders from the base down to the part that is next.
    handles = [base]
    left, links = _parts(path), 0
    while left:
        part = left.pop(0)
        if part == "..":
            handles.pop()
            if not handles:
                raise _leads_out()
            continue
        try:
            handles.append(_opened(part, _READ, handles[-1], closing))
        except OSError as error:
            # ENXIO: it is a socket.
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO):
                raise FileProblem(RepositoryFault.FILE_MISSING, "there is no such file") from None
            # Linux answers ELOOP for a link; other systems have numbers of their own.
            target = _link_target(part, handles[-1])
            if target is None:
                raise
            links += 1
            if target.startswith("/") or links > _MAX_LINKS:
                raise _leads_out() from None
            left = _parts(target) + left
    return handles[-1]


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
