"""
Folders and files that only the user who runs pkger may open: databases hold the packages of all stacks.

Another user may have prepared a folder, or left files and links in it, so that pkger would use their content or
overwrite what a link names. Such folders and files are refused.
"""

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_OF_OTHERS = 0o077

MOST_CREDENTIAL_BYTES = 8192
"""A file with a credential is not read any further."""

_ROOT = 0
"""The user who can do everything anyway, so nothing of this user is refused."""


class PathRefused(OSError):
    """Another user may control a folder or a file; the message is a sentence that says what to do."""


def folder_problem(path: Path, status: os.stat_result, user: int) -> str:
    """
    Why pkger must not keep its files in a folder; empty if it may. A folder that a group may write is fine.

    Args:
        path: The folder, for the sentence.
        status: Its status.
        user: The id of the user who runs pkger.
    """
    if status.st_uid not in (user, _ROOT):
        return (
            f"the folder {path} belongs to another user (uid {status.st_uid}), who could replace the files in it; use"
            " another folder (PKGER_DATA, PKGER_HOME, PKGER_RUN), or make it yours with chown"
        )
    if status.st_mode & stat.S_IWOTH:
        return (
            f"every user of this machine may write to the folder {path}, and could replace the files in it; run chmod"
            " o-w on it, or use a new folder inside it (PKGER_DATA, PKGER_HOME, PKGER_RUN), which pkger makes for its"
            " user alone"
        )
    return ""


def file_problem(path: Path, status: os.stat_result, user: int) -> str:
    """
    Why pkger must not use a file as one of its own; empty if it may.

    Args:
        path: The file, for the sentence.
        status: Its status, of the link if it is one.
        user: The id of the user who runs pkger.
    """
    if stat.S_ISLNK(status.st_mode):
        return f"{path} is a symbolic link, and pkger would use the file that it names; put a file there, or remove it"
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is not a regular file; use another path, or remove it"
    if status.st_uid not in (user, _ROOT):
        return (
            f"the file {path} belongs to another user (uid {status.st_uid}); remove it, or make it yours with chown if"
            " you trust its content"
        )
    return ""


def credential_problem(path: Path, status: os.stat_result) -> str:
    """Why pkger must not use the credential in a file; empty if only its owner may read it."""
    if status.st_mode & _OF_OTHERS:
        return (
            f"other users of this machine may read {path}; run chmod 600 on it, and replace the token in it, which"
            " somebody may have read"
        )
    return ""


def shared_file_problem(path: Path, status: os.stat_result) -> str:
    """Why pkger must not trust a file that its operator wrote, which others may read; empty if it may."""
    if stat.S_ISREG(status.st_mode) and status.st_mode & stat.S_IWOTH:
        return f"every user of this machine may change {path}; check its content, and run chmod o-w on it"
    return ""


def own_folder_problem(path: Path, status: os.stat_result, user: int) -> str:
    """Why pkger must not keep sockets or tokens in a folder; empty if it may: only this user may enter it."""
    if not stat.S_ISDIR(status.st_mode):
        return f"{path} is no folder; remove it, or use another one (PKGER_RUN, PKGER_HOME)"
    if status.st_uid != user:
        return (
            f"the folder {path} belongs to another user (uid {status.st_uid}); use another folder (PKGER_RUN,"
            " PKGER_LISTEN), or make it yours with chown"
        )
    if status.st_mode & _OF_OTHERS:
        return (
            f"other users of this machine may enter the folder {path}, and connect to the sockets in it; use another"
            " folder (PKGER_RUN, PKGER_LISTEN), or run chmod 700 on it if it is for pkger alone"
        )
    return ""


def parent_problem(path: Path, status: os.stat_result, user: int) -> str:
    """
    Why pkger must not keep sockets or tokens in a folder, because of the one that it is in; empty if it may.

    Args:
        path: The folder, for the sentence.
        status: The status of the folder that it is in.
        user: The id of the user who runs pkger.
    """
    if status.st_uid in (user, _ROOT):
        return ""
    return (
        f"the folder {path} is in a folder of another user (uid {status.st_uid}), who could put another one in its"
        " place; use another folder (PKGER_RUN, PKGER_LISTEN)"
    )


def own_folder(path: Path) -> None:
    """
    Check that only this user may enter a folder, or replace it.

    Raises:
        PathRefused: Other users may enter it, or control it.
        OSError: There is none.
    """
    _refuse(own_folder_problem(path, path.lstat(), os.geteuid()))
    _refuse(parent_problem(path, path.parent.stat(), os.geteuid()))


def private_folder(path: Path) -> None:
    """
    Make a folder, and the missing ones above it, with mode 0700; one that exists keeps its mode.

    Raises:
        PathRefused: It is a link, or cannot be made, or another user may replace the files in it.
    """
    # False for a path that this user may not see; making the folder fails then.
    if os.path.islink(path):
        raise PathRefused(
            f"{path} is a symbolic link, and whoever may change it decides where pkger keeps its files; name the folder"
            " itself (PKGER_DATA, PKGER_HOME, PKGER_RUN)"
        )
    try:
        _make(path)
    except (FileExistsError, NotADirectoryError):
        raise PathRefused(
            f"the folder {path} cannot be made, as a file has its name or that of a folder above it; use another one"
            " (PKGER_DATA, PKGER_HOME, PKGER_RUN)"
        ) from None
    except OSError as error:
        raise PathRefused(
            f"the folder {path} cannot be made: {error.strerror}; use another one (PKGER_DATA, PKGER_HOME, PKGER_RUN)"
        ) from error
    _refuse(folder_problem(path, path.stat(), os.geteuid()))


def private_file(path: Path) -> None:
    """
    Make an empty file with mode 0600; one that exists keeps its content and gets the mode.

    Raises:
        PathRefused: It exists, and is a link or a file of another user.
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # By its path: to open and close a database that this process has open would release the locks of SQLite on it.
        restrict(path)


def restrict(path: Path) -> None:
    """
    Give a file, such as a copy of a backup, mode 0600; a missing one is ignored, and a file of root keeps its mode.

    Raises:
        PathRefused: It is a link or a file of another user.
    """
    with suppress(FileNotFoundError, PermissionError):
        status = path.lstat()
        _refuse(file_problem(path, status, os.geteuid()))
        if status.st_mode & _OF_OTHERS:
            path.chmod(0o600)


def open_private(path: str | Path, flags: int) -> int:
    """
    An opener for ``open``: opens a file without following a link; one that is written gets mode 0600.

    Raises:
        PathRefused: It is a link or a file of another user; it was not changed.
        OSError: It cannot be opened.
    """
    path = Path(path)
    # O_NONBLOCK: a pipe would wait for another process. The file is emptied once it is known to be one of pkger.
    try:
        descriptor = os.open(path, (flags & ~os.O_TRUNC) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode=0o600)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            _refuse(file_problem(path, path.lstat(), os.geteuid()))
        raise
    try:
        status = os.fstat(descriptor)
        _refuse(file_problem(path, status, os.geteuid()))
        if flags & (os.O_WRONLY | os.O_RDWR) and status.st_mode & _OF_OTHERS:
            with suppress(PermissionError):
                os.fchmod(descriptor, 0o600)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_shared(path: Path) -> str:
    """
    The text of a file that its operator wrote and others may read, such as the platforms file; links are followed.

    Raises:
        PathRefused: Everybody may change it.
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    with path.open(encoding="utf-8") as file:
        _refuse(shared_file_problem(path, os.fstat(file.fileno())))
        return file.read()


def read_private(path: Path) -> str:
    """
    The text of a file with a credential, at most its first ``MOST_CREDENTIAL_BYTES``.

    Raises:
        PathRefused: It is a link or a file of another user, or others may read it.
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    with open(path, "rb", opener=open_private) as file:
        _refuse(credential_problem(path, os.fstat(file.fileno())))
        return file.read(MOST_CREDENTIAL_BYTES).decode()


def read_within(folder: Path, name: str, most_bytes: int) -> str:
    """
    The text of a file below *folder*. Links are followed as long as they stay below it.

    Raises:
        PathRefused: The name leads out of the folder, or the file has more than *most_bytes*.
        OSError: It cannot be read.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise PathRefused("the name leads out of the folder; write a path below it")
    path = Path(os.path.realpath(folder / name))
    if not path.is_relative_to(os.path.realpath(folder)):
        raise PathRefused("a link leads out of the folder; put the file there")
    with path.open("rb") as file:
        text = file.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise PathRefused(f"the file has more than {most_bytes:,} bytes")
    return text.decode()


def new_private_file(path: Path, text: str) -> bool:
    """
    Make a file with mode 0600 and its text at once; one that exists stays as it is.

    Returns:
        Whether it was made.

    Raises:
        OSError: It cannot be made.
    """
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}-") as file:
        file.write(text)
        file.flush()
        try:
            os.link(file.name, path)
        except FileExistsError:
            return False
    return True


def _make(folder: Path) -> None:
    if not folder.parent.exists():
        _make(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def _refuse(problem: str) -> None:
    """
    Refuse a path with a *problem*.

    Raises:
        PathRefused: The problem is not empty.
    """
    if problem:
        raise PathRefused(problem)
