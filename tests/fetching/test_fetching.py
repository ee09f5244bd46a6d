"""
Texts at addresses (docs/reference/package-format.md, "Sources", "GitHub addresses"): which are fetched, which are
refused, and the errors.
"""

import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from services.core.errors import PkgerError, SourceTooLarge, SourceUndecodable, SourceUnreadable
from services.fetching import MAX_REDIRECTS, FetchedFile, Fetcher
from services.rpc.log import JsonFormatter
from services.settings import Bounds
from services.syntax.usage import Usage
from tests import needs
from tests.influx.certificates import own_certificate, served_with
from tests.web import Handler, Names, drip, packed, redirect, serving

TEXT = "kind: Label # é\n"
ALLOWED = Fetcher(may_ask=lambda address: True)


async def fetch(address: str, fetcher: Fetcher = ALLOWED, bounds: Bounds | None = None) -> str:
    return await fetcher.fetch(address, Usage(bounds))


async def test_a_text_is_fetched_and_counted() -> None:
    usage = Usage(Bounds(bytes=100))
    async with serving({"/a.yml": TEXT}) as server:
        assert await ALLOWED.fetch(f"{server.address}/a.yml?b=c", usage) == TEXT
    [request] = server.requests
    assert (request.method, request.path_qs) == ("GET", "/a.yml?b=c")
    assert usage.bytes_left == 100 - len(TEXT.encode())


async def test_a_byte_order_mark_is_left_to_the_readers() -> None:
    async with serving({"/": b"\xef\xbb\xbfa"}) as server:
        assert await fetch(server.address) == "\ufeffa"


@pytest.mark.parametrize("page", ["<!DOCTYPE html><title>Log in</title>", "\n <HTML lang=en>"])
async def test_a_web_page_is_refused(page: str) -> None:
    async with serving({"/a.yml": page}) as server:
        with pytest.raises(SourceUndecodable, match="this is a web page, and no package"):
            await fetch(f"{server.address}/a.yml")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(status: int) -> None:
    answers: dict[str, str | Handler] = {"/a/b": redirect("../c?d=e#f", status), "/c": TEXT}
    async with serving(answers) as server:
        assert await fetch(f"{server.address}/a/b") == TEXT
    assert [request.path_qs for request in server.requests] == ["/a/b", "/c?d=e"]


async def test_neither_cookies_nor_passwords_are_sent_on() -> None:
    async with serving({"/": redirect("/next"), "/next": TEXT}) as server:
        await fetch(server.address)
    assert len(server.requests) == 2
    assert not {"Cookie", "Authorization", "Referer"} & {
        name for request in server.requests for name in request.headers
    }


async def test_as_many_redirects_are_followed_as_the_bound_says_and_no_more() -> None:
    answers: dict[str, str | Handler] = {
        f"/{count}": redirect(f"/{count - 1}") for count in range(1, MAX_REDIRECTS + 2)
    }
    async with serving(answers | {"/0": TEXT}) as server:
        assert await fetch(f"{server.address}/{MAX_REDIRECTS}") == TEXT
        with pytest.raises(SourceUnreadable, match="leads through more than 10 redirects"):
            await fetch(f"{server.address}/{MAX_REDIRECTS + 1}")


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/",
        "http://user:secret@127.0.0.1/",
        "http://[",
        "//user@host/",
        "javascript:1",
    ],
)
async def test_a_redirect_to_an_address_that_is_not_fetched_is_refused(location: str) -> None:
    async with serving({"/a": redirect(location)}) as server:
        with pytest.raises(SourceUnreadable, match=r": leads to .*http and https addresses") as caught:
            await fetch(f"{server.address}/a")
    assert caught.value.metadata["source"] == f"{server.address}/a"
    assert "secret" not in str(caught.value)


async def test_a_redirect_without_an_address_is_no_success() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=302, body=b"plain", headers={"Content-Encoding": "gzip"})

    async with serving({"/": answer}) as server:
        with pytest.raises(SourceUnreadable, match=r"answered 302 Found$"):
            await fetch(server.address)


async def test_an_error_response_is_reported_with_its_text() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=503, reason="Busy", body=b"try\r\n\tagain\x1b[31m \xff" + b"x" * 100_000)

    async def packed_answer(request: web.Request) -> web.Response:
        return web.Response(status=400, body=gzip.compress(b"packed"), headers={"Content-Encoding": "gzip"})

    async with serving({"/busy": answer, "/moved": redirect("/gone"), "/packed": packed_answer}) as server:
        with pytest.raises(SourceUnreadable, match="answered 400 Bad Request: packed"):
            await fetch(f"{server.address}/packed")
        with pytest.raises(SourceUnreadable) as busy:
            await fetch(f"{server.address}/busy")
        with pytest.raises(SourceUnreadable) as gone:
            await fetch(f"{server.address}/moved")
    text = str(busy.value)
    assert text.startswith(f"{server.address}/busy: the server answered 503 Busy: try again [31m \ufffdxxx")
    assert text.endswith("xxx...")
    assert len(text) < 450
    expected = f"{server.address}/moved: {server.address}/gone answered 404 Not Found: there is nothing"
    assert str(gone.value) == expected


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0",
        "[::]",
    ],
)
async def test_private_machines_are_not_asked_unless_that_is_allowed(host: str) -> None:
    async with serving({"/a.yml": TEXT}) as server:
        with pytest.raises(SourceUnreadable):
            await fetch(f"http://{host}:{server.port}/a.yml", Fetcher())
    assert server.requests == []


async def test_a_refused_machine_is_reported_with_the_remedy_and_its_address_only_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error with the address would tell any caller which machines are in the network of the parser."""
    names = Names({"inside.example": ["10.1.2.3"]})
    with pytest.raises(SourceUnreadable) as caught:
        await fetch("http://inside.example/a.yml?key=abc", Fetcher(resolver=names))
    expected = (
        "http://inside.example/a.yml?key=abc: the server is at an address that is not public; the operator of the"
        " service finds it in the log, and can allow such addresses with PKGER_ALLOW_PRIVATE_ADDRESSES=1"
    )
    assert str(caught.value) == expected
    assert "10.1.2.3" not in str(caught.value.metadata)
    [record] = [each for each in caplog.records if each.name == "pkger.fetching"]
    line = JsonFormatter().format(record)
    assert '"host":"inside.example","addresses":["10.1.2.3"]' in line
    assert "abc" not in line


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::1", "10.0.0.1", "127.0.0.1"]])
async def test_a_name_is_no_way_to_a_private_machine(addresses: list[str]) -> None:
    names = Names({"public.example": addresses})
    async with serving({"/": TEXT}) as server:
        with pytest.raises(SourceUnreadable, match="the server is at an address that is not public"):
            await fetch(f"http://public.example:{server.port}", Fetcher(resolver=names))
    assert names.asked == ["public.example"]
    assert server.requests == []


async def test_a_redirect_is_no_way_to_a_private_machine() -> None:
    names = Names({"first.example": ["127.0.0.1"], "second.example": ["127.0.0.2"]})
    only_first = Fetcher(lambda address: address == "127.0.0.1", names)
    async with serving({"/": redirect("http://second.example/a")}) as server:
        with pytest.raises(SourceUnreadable, match="it redirects to a server at an address that is not") as caught:
            await fetch(f"http://first.example:{server.port}/", only_first)
    assert "127.0.0.2" not in str(caught.value)
    assert len(server.requests) == 1


async def test_a_file_on_github_is_asked_for_where_its_text_is() -> None:
    names = Names({"raw.githubusercontent.com": ["127.0.0.1"]})
    address = "https://github.com/o/r/blob/main/a.yml"
    with pytest.raises(SourceUnreadable, match="the server is at an address that is not public") as caught:
        await fetch(address, Fetcher(resolver=names))
    assert caught.value.metadata["source"] == address


async def test_an_address_with_a_password_is_refused_without_asking() -> None:
    async with serving({"/": TEXT}) as server:
        with pytest.raises(SourceUnreadable, match="no user name or password") as caught:
            await fetch(server.address.replace("//", "//user:secret@"))
    assert "secret" not in str(caught.value) + str(caught.value.metadata)
    assert server.requests == []


@pytest.mark.parametrize(
    ("answer", "error", "expected"),
    [
        (b"x" * 1001, SourceTooLarge, "bytes in all sources together of 1,000"),
        (packed(gzip.compress(b"x" * 1001)), SourceTooLarge, "bytes in all sources together of 1,000"),
        (packed(gzip.compress(b"x" * 50_000_000)), SourceTooLarge, "bytes in all sources together of 1,000"),
        (packed(gzip.compress(b"xyz" * 9)[:-9]), SourceUnreadable, "declared as gzip, but is invalid or incomplete"),
        (packed(gzip.compress(b"x") + b"more"), SourceUnreadable, "declared as gzip, but is invalid or incomplete"),
        (packed(b"plain"), SourceUnreadable, "declared as gzip, but is invalid or incomplete"),
        (packed(zlib.compress(b"x"), "deflate"), SourceUnreadable, "is packed as deflate, which was not asked for"),
        (b"a: b\nc: caf\xe9\n", SourceUndecodable, ":2:7: this is no UTF-8 text .byte 0xe9.; save it as UTF-8"),
        (drip, SourceUnreadable, "there is no full answer within 1 seconds"),
    ],
    ids=["long", "long when unpacked", "bomb", "cut off", "more", "not packed", "packed else", "Latin-1", "drip"],
)
async def test_an_unusable_response_is_reported(
    answer: bytes | Handler, error: type[PkgerError], expected: str
) -> None:
    async with serving({"/a": answer}) as server:
        with pytest.raises(error, match=expected) as caught:
            await fetch(f"{server.address}/a", bounds=Bounds(bytes=1000, seconds=0.3))
    assert str(caught.value).startswith(f"{server.address}/a:")


async def test_a_packed_text_is_unpacked() -> None:
    async with serving({"/": packed(gzip.compress(TEXT.encode()))}) as server:
        assert await fetch(server.address, bounds=Bounds(bytes=len(TEXT.encode()))) == TEXT


async def test_a_machine_that_does_not_answer_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(SourceUnreadable, match="no full answer within 1 seconds"):
            await fetch(f"http://127.0.0.1:{port}/", bounds=Bounds(seconds=0.2))
    with pytest.raises(SourceUnreadable, match=r"nothing listens at 127\.0\.0\.1:\d+; check the address"):
        await fetch(f"http://127.0.0.1:{port}/")


async def test_a_host_name_that_does_not_exist_is_reported() -> None:
    with pytest.raises(SourceUnreadable, match=r"the name nobody\.example is not known; check the address"):
        await fetch("http://nobody.example/", Fetcher(resolver=Names({})))


@given(st.text(max_size=40) | st.text(":/?#[]@%\\.xn-0123a é", max_size=40).map("http://".__add__))
async def test_any_text_is_an_address_or_refused_with_a_pkger_error(text: str) -> None:
    with pytest.raises(SourceUnreadable) as caught:
        await fetch(text, Fetcher(resolver=Names({})))
    assert str(caught.value).isprintable()


async def test_a_server_without_tls_is_reported() -> None:
    async with serving({"/": TEXT}) as server:
        with pytest.raises(SourceUnreadable, match=r"no TLS with 127\.0\.0\.1:\d+; check whether"):
            await fetch(server.address.replace("http", "https"))


@needs.program("openssl")
async def test_a_server_whose_certificate_nobody_trusts_is_reported(tmp_path: Path) -> None:
    tls = served_with(own_certificate(tmp_path))
    async with answering(b"", tls) as port:
        with pytest.raises(
            SourceUnreadable, match=r"the certificate of 127\.0\.0\.1:\d+ is of nobody whom the service"
        ):
            await fetch(f"https://127.0.0.1:{port}/")


@asynccontextmanager
async def answering(data: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that answers each request with *data* and ends the connection."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "the server ended the connection without an answer; check the address, or try again later"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "the answer is no valid HTTP; check the address, or have the"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nkind", "the answer is cut off or broken; try again, or"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "the answer is no valid HTTP; check"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nkind\r\n", "the answer is cut off or broken; try"),
        ("HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\nkind", "the server answered 206 Partial Content"),
        ("HTTP/1.1 204 No Content\r\n\r\n", "the server answered 204 No Content"),
    ],
)
async def test_an_answer_that_is_no_whole_file_is_reported_in_a_sentence(answer: str, problem: str) -> None:
    async with answering(answer.encode()) as port:
        with pytest.raises(SourceUnreadable) as caught:
            await fetch(f"http://127.0.0.1:{port}/")
    assert caught.value.metadata["problem"].startswith(problem)


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with serving({"/": TEXT}) as server:
        assert await fetch(server.address) == TEXT


async def test_a_version_that_the_caller_has_is_not_sent_again() -> None:
    async def answer(request: web.Request) -> web.Response:
        if request.headers.get("If-None-Match") == '"v1"':
            return web.Response(status=304, headers={"ETag": '"v1"'})
        return web.Response(body=b"\xff", headers={"ETag": '"v1"'})

    async with serving({"/a": answer}) as server:
        first = await ALLOWED.fetch_file(f"{server.address}/a", Usage())
        assert first == FetchedFile(200, b"\xff", '"v1"')
        assert await ALLOWED.fetch_file(f"{server.address}/a", Usage(), etag=first.etag) == FetchedFile(304)


async def test_a_status_is_an_error_unless_the_caller_accepts_it() -> None:
    async with serving({}) as server:
        assert await ALLOWED.fetch_file(f"{server.address}/a", Usage(), statuses={404}) == FetchedFile(404)
        with pytest.raises(SourceUnreadable, match="the server answered 404"):
            await ALLOWED.fetch_file(f"{server.address}/a", Usage())
