"""Files with one token each: that of a home, and that of the operator."""

import os
from collections.abc import Callable
from pathlib import Path

from services.access.tokens import TOKEN_RULE, TokenDigest, digest_of, new_token
from services.private_files import PathRefused, new_private_file, private_folder, read_private
from services.system import Ids, MachineIds

HOME_TOKEN = "token"  # noqa: S105
"""Name of the file in ``PKGER_HOME``."""


class TokenUnusable(Exception):
    """There is no usable token in a file or a variable; the message is a sentence that says what to do, without it."""


class TokenFile:
    """
    The token in a file, which is read again when the file has changed.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, ...] = ()
        self._token = ""
        self._problem = ""

    def token(self) -> str:
        """
        The token.

        Raises:
            TokenUnusable: The file cannot be read, others may read it, or it has no token.
        """
        if (version := self._version()) != self._read_at or not version:
            self._read_at = version
            self._token, self._problem = self._read()
        if self._problem:
            raise TokenUnusable(self._problem)
        return self._token

    def digest(self) -> TokenDigest | None:
        """
        The digest of the token.

        Raises:
            TokenUnusable: As for ``token``.
        """
        return digest_of(self.token())

    def _version(self) -> tuple[int, ...]:
        """What changes when the file is replaced or written; empty if there is none."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    def _read(self) -> tuple[str, str]:
        """The token, or the problem with the file."""
        try:
            text = read_private(self.path).strip()
        except PathRefused as error:
            return "", str(error)
        except UnicodeDecodeError:
            text = ""
        except OSError as error:
            return "", f"the token cannot be read from {self.path}: {error.strerror or error}"
        return (text, "") if digest_of(text) else ("", f"{self.path} holds no token: write {TOKEN_RULE}")


def home_token(home: Path, ids: Ids = MachineIds(), report: Callable[[Path], None] = lambda _: None) -> TokenFile:
    """
    The token of a home, for the loopback addresses of this machine; it is made if there is none.

    Args:
        home: The folder.
        ids: Draws a token.
        report: Called with the path of a file that was made.

    Raises:
        TokenUnusable: The file cannot be made, or not be used.
    """
    file = TokenFile(home / HOME_TOKEN)
    try:
        private_folder(home)
        if not os.path.lexists(file.path) and new_private_file(file.path, f"{new_token(ids)}\n"):
            report(file.path)
    except OSError as error:
        raise TokenUnusable(_cannot_make(file.path, error)) from error
    file.token()
    return file


def rotate_home_token(home: Path, ids: Ids = MachineIds()) -> TokenFile:
    """
    Replace the token of a home by a new one; every process that reads the file accepts only that from then on.

    Raises:
        TokenUnusable: The file cannot be made.
    """
    path = home / HOME_TOKEN
    new = home / f"{HOME_TOKEN}.{ids.token(4)}"
    try:
        private_folder(home)
        new_private_file(new, f"{new_token(ids)}\n")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise TokenUnusable(_cannot_make(path, error)) from error
    return TokenFile(path)


def _cannot_make(path: Path, error: OSError) -> str:
    if isinstance(error, PathRefused):
        return str(error)
    return f"the token cannot be written to {path}: {error.strerror or error}; set PKGER_HOME to another folder"
