"""Fetches the file at an address, within bounds and from public machines only."""

import asyncio
import logging
import math
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from yarl import URL

from services.addresses import is_public, raw_address, vetted, without_user
from services.core.errors import SourceUndecodable, SourceUnreadable
from services.syntax.usage import Usage
from services.syntax.web_pages import is_web_page

if TYPE_CHECKING:
    # Imported only when a text is fetched: most commands fetch nothing, and the import would take most of their time.
    import aiohttp
    from aiohttp.abc import AbstractResolver

log = logging.getLogger("pkger.fetching")

MAX_REDIRECTS = 10

_OK = 200
_REDIRECTS = (301, 302, 303, 307, 308)
_NOT_MODIFIED = 304

_GZIP = 16 + zlib.MAX_WBITS

_ERROR_BYTES = 4096
_SHOWN_CHARACTERS = 300
"""Most bytes of an error response that are read, and most characters that a message shows."""


class FetchedFile(NamedTuple):
    """
    The response of a server.

    Attributes:
        status: Its status.
        body: Its bytes; empty for a status that the caller accepts.
        etag: Its version of the file, as the server names it; empty: not known.
    """

    status: int
    body: bytes = b""
    etag: str = ""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """
    Fetches files.

    It uses no cookies, no passwords and no proxies: behind a proxy, the address of the server would be unknown.

    Attributes:
        may_ask: Whether requests to an IP address are allowed; by default, to any public address.
        resolver: Resolves host names; None: the resolver of the system.
    """

    may_ask: Callable[[str], bool] = is_public
    resolver: "AbstractResolver | None" = None

    async def fetch(self, address: str, usage: Usage) -> str:
        """
        Fetch the text at an address.

        Args:
            address: An http or https address, or the address of a file on GitHub.
            usage: How much of its bounds the package has used; the text is added.

        Raises:
            SourceUnreadable: The address is refused, there is no response in time, or the response is an error.
            SourceTooLarge: The text exceeds a bound.
            SourceUndecodable: It is no UTF-8, or a web page.
        """
        return _text(without_user(address), (await self.fetch_file(address, usage)).body)

    async def fetch_file(
        self, address: str, usage: Usage, etag: str = "", statuses: Collection[int] = ()
    ) -> FetchedFile:
        """
        Fetch the bytes at an address.

        Args:
            address: An http or https address, or the address of a file on GitHub.
            usage: How much of its bounds the package has used; the bytes are added.
            etag: The version of the file that the caller has; empty: none. With it, 304 is no error.
            statuses: Further statuses that are no errors.

        Raises:
            SourceUnreadable: The address is refused, there is no response in time, or the response is an error.
            SourceTooLarge: The file exceeds a bound.
        """
        import aiohttp

        from services.fetch_problems import problem_of

        shown = without_user(address)
        try:
            async with asyncio.timeout(usage.seconds_left):
                accepted = {*statuses, _NOT_MODIFIED} if etag else {*statuses}
                return await self._fetch(shown, vetted(raw_address(address)), usage, etag, accepted)
        # UnicodeError: the name of the server cannot be resolved.
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise SourceUnreadable(shown, _plain(problem_of(error, math.ceil(usage.bounds.seconds)))) from None

    async def _fetch(self, address: str, url: URL, usage: Usage, etag: str, accepted: Collection[int]) -> FetchedFile:
        for redirects in range(1 + MAX_REDIRECTS):
            async with self._answer(address, url, redirects > 0, etag) as answer:
                if answer.status not in _REDIRECTS or "Location" not in answer.headers:
                    if answer.status in accepted:
                        return FetchedFile(answer.status)
                    # Others of 2xx have a part of the file, such as 206, or none of it.
                    if answer.status != _OK:
                        raise SourceUnreadable(address, f"{_server(address, url)} answered {await _error_text(answer)}")
                    body = await _body(address, answer, usage)
                    return FetchedFile(answer.status, body, answer.headers.get("ETag", ""))
                url = _next(address, url, answer.headers["Location"])
        raise SourceUnreadable(address, f"leads through more than {MAX_REDIRECTS} redirects")

    @asynccontextmanager
    async def _answer(
        self, address: str, url: URL, is_redirect: bool, etag: str
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """The response of one server; the caller follows redirects."""
        import aiohttp

        from services.fetch_problems import CONNECT_SECONDS

        refused: list[str] = []
        headers = {"If-None-Match": etag} if etag else {}

        def open_socket(candidate: tuple[Any, ...]) -> socket.socket:
            # Here the IP address of the connection is known: names and unusual notations of numbers are resolved.
            family, kind, protocol, _, endpoint = candidate
            if not self.may_ask(endpoint[0]):
                refused.append(endpoint[0])
                raise OSError(f"requests to {endpoint[0]} are not allowed")
            return socket.socket(family, kind, protocol)

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=open_socket, resolver=self.resolver, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Decompressed below, where the bytes are counted.
            headers={"Accept-Encoding": "gzip", "User-Agent": "pkger"},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        ) as session:
            try:
                async with session.get(url, allow_redirects=False, headers=headers) as answer:
                    yield answer
            except aiohttp.ClientConnectorError:
                if not refused:
                    raise
                # Not in the error, where it would tell any caller which machines are in the network of the service.
                log.warning("address refused", extra={"host": url.host, "addresses": refused})
                raise SourceUnreadable(address, _not_public(is_redirect)) from None


def _not_public(is_redirect: bool) -> str:
    """The problem of a server that is not asked, without its address."""
    return (
        f"{'it redirects to a server' if is_redirect else 'the server is'} at an address that is not public; the"
        " operator of the service finds it in the log, and can allow such addresses with"
        " PKGER_ALLOW_PRIVATE_ADDRESSES=1"
    )


async def _error_text(answer: "aiohttp.ClientResponse") -> str:
    """Status and text of an error response."""
    data = await answer.content.read(_ERROR_BYTES)
    if answer.headers.get("Content-Encoding", "").lower() == "gzip":
        try:
            data = zlib.decompressobj(_GZIP).decompress(data, _ERROR_BYTES)
        except zlib.error:
            data = b""
    head = f"{answer.status} {_plain(answer.reason or '')}".rstrip()
    text = _plain(data.decode(errors="replace"))
    return f"{head}: {text}" if text else head


async def _body(address: str, answer: "aiohttp.ClientResponse", usage: Usage) -> bytes:
    packed = answer.headers.get("Content-Encoding", "identity").lower()
    if packed not in ("identity", "gzip"):
        raise SourceUnreadable(address, f"is packed as {_plain(packed)}, which was not asked for")
    body, unpacker = bytearray(), zlib.decompressobj(_GZIP)
    async for chunk in answer.content.iter_any():
        try:
            # One byte beyond the bound suffices, however much more a chunk holds.
            data = unpacker.decompress(chunk, usage.bytes_left + 1) if packed == "gzip" else chunk
        except zlib.error:
            raise SourceUnreadable(address, _BROKEN) from None
        usage.take_bytes(address, len(data))
        body += data
    if packed == "gzip" and (not unpacker.eof or unpacker.unused_data):
        raise SourceUnreadable(address, _BROKEN)
    return bytes(body)


_BROKEN = "is declared as gzip, but is invalid or incomplete"


def _next(address: str, url: URL, location: str) -> URL:
    try:
        return vetted(str(url.join(URL(location))))
    except (ValueError, SourceUnreadable):
        problem = "packages are fetched from http and https addresses, without user names or passwords"
        raise SourceUnreadable(address, f"leads to {_plain(without_user(location))}; {problem}") from None


def _text(address: str, body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        lines = body[: error.start].decode().split("\n")
        problem = f"this is no UTF-8 text (byte {body[error.start]:#04x}); save it as UTF-8"
        raise SourceUndecodable(address, problem, len(lines), len(lines[-1]) + 1) from None
    if is_web_page(text):
        problem = "this is a web page, and no package; take the address of the file itself"
        raise SourceUndecodable(address, problem, 1, 1)
    return text


def _server(address: str, url: URL) -> str:
    """The server in messages: after a redirect, it is not the one of the address."""
    return "the server" if str(url) == address else without_user(str(url))


def _plain(text: str) -> str:
    """The printable characters of a text, in one line, shortened."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
