"""Fetches files of a repository: over https or http, or from a folder."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Protocol
from urllib.parse import quote, unquote, urlsplit

from services.addresses import without_user
from services.core.errors import SourceTooLarge, SourceUnreadable
from services.fetching import Fetcher
from services.packages.index_files import RepositoryFault
from services.repositories.file_problem import FileProblem
from services.repositories.folders import read_file
from services.rpc.call import loop_time
from services.settings import Bounds
from services.syntax.usage import Usage

REQUESTS = 8
"""How many requests to one repository run at the same time."""

REQUEST_SECONDS = 30

_MISSING = (404, 410)
_NOT_MODIFIED = 304


class Unavailable(Exception):
    """The place of a file does not answer; a reader adds the name of the repository."""


class FetchedContent(NamedTuple):
    """
    The content of a file.

    Attributes:
        data: Its bytes; None: it is still what the caller has.
        etag: Its version, with which it can be asked for again; empty: not known.
    """

    data: bytes | None
    etag: str = ""


class Transport(Protocol):
    """Fetches files of one repository."""

    async def fetch(self, path: str, max_bytes: int, etag: str = "") -> FetchedContent:
        """
        Fetch a file.

        Args:
            path: Its path in the repository.
            max_bytes: Its greatest size.
            etag: The version that the caller has; empty: none.

        Raises:
            FileProblem: It is not there, too large, or must not be read.
            Unavailable: There is no answer.
        """


@dataclass(frozen=True, slots=True, weakref_slot=True)
class WebTransport:
    """
    A repository at an http or https address.

    Attributes:
        address: The address, without a slash at its end.
        fetcher: Fetches files.
        seconds: The time for one file.
    """

    address: str
    fetcher: Fetcher = field(default_factory=Fetcher)
    seconds: float = REQUEST_SECONDS
    _requests: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(REQUESTS), init=False)

    async def fetch(self, path: str, max_bytes: int, etag: str = "") -> FetchedContent:
        """Fetch a file."""
        # Servers may read + as a blank.
        address = f"{self.address}/{quote(path)}"
        async with self._requests:
            usage = Usage(Bounds(bytes=max_bytes, seconds=self.seconds), loop_time)
            try:
                file = await self.fetcher.fetch_file(address, usage, etag, statuses=_MISSING)
            except SourceTooLarge:
                problem = f"the file has more than {max_bytes:,} bytes; the publisher has to make it smaller"
                raise FileProblem(RepositoryFault.TOO_LARGE, problem) from None
            except SourceUnreadable as error:
                raise Unavailable(f"{error.metadata['source']}: {error.metadata['problem']}") from None
        if file.status in _MISSING:
            raise FileProblem(
                RepositoryFault.FILE_MISSING, f"there is no such file (the server answered {file.status})"
            )
        return FetchedContent(None if file.status == _NOT_MODIFIED else file.body, file.etag or etag)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FolderTransport:
    """
    A repository in a folder of this machine.

    Attributes:
        root: The folder that is opened.
        folder: The path of the repository in it; empty: itself.
    """

    root: Path
    folder: str = ""

    async def fetch(self, path: str, max_bytes: int, etag: str = "") -> FetchedContent:
        """Fetch a file; folders have no ETags."""
        try:
            return FetchedContent(await asyncio.to_thread(read_file, self.root, path, max_bytes, self.folder))
        except OSError as error:
            raise Unavailable(f"{self.root / self.folder}: {error.strerror or error}") from None


def transport_of(address: str, folders: Sequence[Path] | None, fetcher: Fetcher) -> Transport:
    """
    The transport for the address of a repository.

    Args:
        address: ``https://HOST/PATH``, ``http://HOST/PATH`` or ``file:///PATH``.
        folders: The folders below which repositories may be; None: anywhere.
        fetcher: Fetches files at http and https addresses.

    Raises:
        Unavailable: The address is refused.
    """
    shown = without_user(address)
    try:
        parts = urlsplit(address)
        has_user = "@" in parts.netloc
    except ValueError:
        raise Unavailable(f"{shown} is no address; {_FORMS}") from None
    if has_user or "?" in address or "#" in address:
        raise Unavailable(f"{shown}: an address of a repository has no user, query or fragment; {_FORMS}")
    match parts.scheme.lower():
        case "http" | "https" if parts.netloc:
            return WebTransport(address.rstrip("/"), fetcher)
        case "file" if parts.netloc == "" and parts.path.startswith("/"):
            return _folder_transport(unquote(parts.path), folders)
    raise Unavailable(f"{shown} is no address of a repository; {_FORMS}")


_FORMS = "write https://HOST/PATH, http://HOST/PATH or file:///PATH"


def _folder_transport(path: str, folders: Sequence[Path] | None) -> FolderTransport:
    if "\0" in path or ".." in PurePosixPath(path).parts:
        raise Unavailable("the address has a part .. or a character 0; write the path of the folder")
    folder = Path(os.path.normpath(path))
    if folders is None:
        return FolderTransport(folder)
    for root in folders:
        if folder.is_relative_to(root):
            return FolderTransport(root, "/".join(folder.relative_to(root).parts))
    problem = "the folder is in none of those that the operator allows with PKGER_REPOSITORY_FOLDERS"
    raise Unavailable(f"{problem}; publish it over https, or ask the operator")
