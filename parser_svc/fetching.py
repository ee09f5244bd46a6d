"""Fetches the text at an address, within bounds and from public machines only."""

import asyncio
import math
import os
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from yarl import URL

from parser_svc.bounds import Usage
from services.addresses import is_public, raw_address, vetted, without_user
from services.core.errors import SourceUndecodable, SourceUnreadable

if TYPE_CHECKING:
    # Imported where something is fetched: most commands fetch nothing, and it takes longer than all else that they do.
    import aiohttp
    from aiohttp.abc import AbstractResolver

CONNECT_SECONDS = 60
"""
How long a connection may take to come about (docs/reference/package-format.md, "Sources"); the bound on seconds is
mostly shorter.
"""

MAX_REDIRECTS = 10

_REDIRECTS = (301, 302, 303, 307, 308)

_GZIP = 16 + zlib.MAX_WBITS

_ERROR_BYTES = 4096
_SHOWN_CHARACTERS = 300
"""What is read of an answer that is no success, and what is shown of it."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """
    Fetches texts.

    There are no cookies, no passwords and no proxies: with a proxy, which machine answers could not be known.

    Attributes:
        may_ask: Whether the machine of an IP address may be asked; by default any on the Internet.
        resolver: Finds machines by name; None: that of the system.
    """

    may_ask: Callable[[str], bool] = is_public
    resolver: "AbstractResolver | None" = None

    async def fetch(self, address: str, usage: Usage) -> str:
        """
        Fetch the text at an address.

        Args:
            address: An http or https address, or that of a file on GitHub.
            usage: What the package has taken of its bounds so far; the text is added.

        Raises:
            SourceUnreadable: The address is refused, there is no answer in time, or the answer is no success.
            SourceTooLarge: The text exceeds a bound.
            SourceUndecodable: It is no UTF-8, or a web page.
        """
        import aiohttp

        shown = without_user(address)
        try:
            async with asyncio.timeout(usage.seconds_left):
                return _text(shown, await self._fetch(shown, vetted(raw_address(address)), usage))
        except aiohttp.ServerTimeoutError:
            raise SourceUnreadable(shown, f"there is no connection within {CONNECT_SECONDS} seconds") from None
        except TimeoutError:
            seconds = math.ceil(usage.bounds.seconds)
            raise SourceUnreadable(shown, f"there is no full answer within {seconds} seconds") from None
        except aiohttp.ClientConnectorError as error:
            problem = f"cannot be fetched: no connection to {error.host}:{error.port} ({_cause(error.os_error)})"
            raise SourceUnreadable(shown, problem) from None
        # UnicodeError: the name of the server is none that can be looked up.
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise SourceUnreadable(shown, f"cannot be fetched: {_plain(str(error) or type(error).__name__)}") from None

    async def _fetch(self, address: str, url: URL, usage: Usage) -> bytes:
        for _ in range(1 + MAX_REDIRECTS):
            async with self._answer(address, url) as answer:
                if answer.status not in _REDIRECTS or "Location" not in answer.headers:
                    if not 200 <= answer.status < 300:
                        raise SourceUnreadable(address, f"{_server(address, url)} answered {await _told(answer)}")
                    return await _body(address, answer, usage)
                url = _next(address, url, answer.headers["Location"])
        raise SourceUnreadable(address, f"leads through more than {MAX_REDIRECTS} redirects")

    @asynccontextmanager
    async def _answer(self, address: str, url: URL) -> AsyncIterator["aiohttp.ClientResponse"]:
        """The answer of one server; redirects are for the caller."""
        import aiohttp

        refused: list[str] = []

        def open_socket(found: tuple[Any, ...]) -> socket.socket:
            # Here it is known which machine will be connected to: names, and odd ways to write numbers, are resolved.
            family, kind, protocol, _, place = found
            if not self.may_ask(place[0]):
                refused.append(place[0])
                raise OSError(f"{place[0]} may not be asked")
            return socket.socket(family, kind, protocol)

        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=open_socket, resolver=self.resolver, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Unpacked below, where it is counted.
            headers={"Accept-Encoding": "gzip", "User-Agent": "pkger"},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
        ) as session:
            try:
                async with session.get(url, allow_redirects=False) as answer:
                    yield answer
            except aiohttp.ClientConnectorError:
                if not refused:
                    raise
                problem = (
                    f"{_server(address, url)} is at {refused[0]}, which is no public address;"
                    " the operator of the parser can allow those with PKGER_ALLOW_PRIVATE_ADDRESSES=1"
                )
                raise SourceUnreadable(address, problem) from None


def _cause(error: OSError) -> str:
    """Why there is no connection, in the words of the system."""
    # Errors of names and of TLS have numbers of their own.
    if isinstance(error, socket.gaierror | ssl.SSLError) or error.errno is None:
        return _plain(error.strerror or "the name is not known")
    return os.strerror(error.errno)


async def _told(answer: "aiohttp.ClientResponse") -> str:
    """Status and text of an answer that is no success."""
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
            # One byte too many is enough to know, however much more there is in a chunk.
            data = unpacker.decompress(chunk, usage.bytes_left + 1) if packed == "gzip" else chunk
        except zlib.error:
            raise SourceUnreadable(address, _BROKEN) from None
        usage.take_bytes(address, len(data))
        body += data
    if packed == "gzip" and (not unpacker.eof or unpacker.unused_data):
        raise SourceUnreadable(address, _BROKEN)
    return bytes(body)


_BROKEN = "is said to be packed as gzip, but is not, or not to its end"


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
    if text[:_SHOWN_CHARACTERS].lstrip("\ufeff \t\r\n").lower().startswith(_WEB_PAGES):
        problem = "this is a web page, and no package; take the address of the file itself"
        raise SourceUndecodable(address, problem, 1, 1)
    return text


_WEB_PAGES = ("<!doctype html", "<html")
"""How the answer of a server begins that asks for a login, or shows a file instead of handing it out."""


def _server(address: str, url: URL) -> str:
    """Who answers, for messages: after a redirect, it is not the one that was asked."""
    return "the server" if str(url) == address else without_user(str(url))


def _plain(text: str) -> str:
    """Some printable characters of a text, in one line."""
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}..."
