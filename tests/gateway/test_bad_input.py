"""Invalid requests: each gets an error in the right form, none causes a defect, and none changes anything."""

import asyncio
import gzip
import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.gateway.answers import Code
from tests.cluster import Cluster, cluster
from tests.gateway.gateway import TOKEN, client, gateway, settings
from tests.gateway.raw import RawAnswer, request, send

APPLY, EXPORT, STACKS = "/api/v2/templates/apply", "/api/v2/templates/export", "/api/v2/stacks"

ID = "00000000deadbeef"


@pytest.fixture
async def address(services: Cluster, tmp_path: Path) -> AsyncIterator[str]:
    """A gateway with a limit of 110,000 bytes and short times."""
    made = replace(settings(tmp_path, PKGER_MAX_BYTES="100000"), body_seconds=1, header_seconds=1)
    async with gateway(made, services) as found:
        yield found


def is_well_formed(answer: RawAnswer) -> bool:
    """Whether an error has the form that every client reads."""
    document = answer.document
    return (
        answer.headers["content-type"] == "application/json; charset=utf-8"
        and document["code"] in set(Code)
        and answer.headers["x-platform-error-code"] == document["code"]
        and isinstance(document["message"], str)
        and document["message"] != ""
    )


BODIES: dict[str, tuple[bytes, int]] = {
    "empty": (b"", 400),
    "truncated": (b'{"orgID": "', 400),
    "trailing": (b"{} x", 400),
    "null": (b"null", 400),
    "list": (b"[]", 400),
    "nan": (b'{"orgID": NaN}', 400),
    "deep": (b"[" * 10_000 + b"]" * 10_000, 400),
    "no-utf-8": (b'{"orgID": "\xff"}', 400),
    "overflow": (b'{"orgID": 99999999999999999999999999}', 400),
    "infinite": (b'{"orgID": 1e999}', 400),
    "no-org": (b"{}", 400),
    "zero": (b'{"orgID": "0000000000000000"}', 400),
    "unknown-org": (b'{"orgID": "00000000deadbeef"}', 404),
}


async def test_invalid_bodies_are_refused(address: str) -> None:
    wrong: dict[str, Any] = {}
    for path, method in ((APPLY, "POST"), (STACKS, "POST")):
        for name, (body, status) in BODIES.items():
            answer = await send(address, request(method, path, body, token=TOKEN))
            if answer.status != status or not is_well_formed(answer):
                wrong[f"{path} {name}"] = answer
    assert not wrong


PATHS = [
    ("GET /api/v2/stacks/zz", 400),
    (f"GET /api/v2/stacks/{'1' * 15}", 400),
    (f"GET /api/v2/stacks/{'1' * 17}", 400),
    (f"GET /api/v2/stacks/{'0' * 16}", 400),
    ("GET /api/v2/stacks/a%2Fb", 400),
    ("GET /api/v2/stacks/%ff%fe", 400),
    ("GET /api/v2/stacks/..%2f..", 400),
    (f"GET /api/v2/stacks/{ID.upper()}", 404),
    (f"GET /api/v2/stacks/{ID}/", 404),
    (f"GET /api/v2/stacks/{ID}/nothing", 404),
    ("GET /api/v2//stacks", 404),
    ("GET /API/v2/stacks", 404),
    ("GET /api/v2/stacks?orgID=zz", 400),
    (f"GET /api/v2/stacks?orgID={ID}", 404),
    ("GET /api/v2/orgs?limit=0", 400),
    ("GET /api/v2/orgs?limit=101", 400),
    ("GET /api/v2/orgs?limit=x", 400),
    ("GET /api/v2/orgs?offset=-1", 400),
    ("GET /api/v2/orgs?org=", 404),
    ("GET /api/v2/orgs?orgID=zz", 400),
    ("GET /", 404),
    ("DELETE /health", 405),
    ("OPTIONS /api/v2/stacks", 405),
    ("PROPFIND /api/v2/stacks", 405),
    ("DELETE /api/v2/stacks/zz", 400),
    (f"DELETE /api/v2/stacks/{ID}?orgID=zz", 400),
    (f"DELETE /api/v2/stacks/{ID}", 204),
]


async def test_invalid_paths_and_queries_are_refused(address: str) -> None:
    wrong: dict[str, Any] = {}
    for line, status in PATHS:
        method, _, path = line.partition(" ")
        answer = await send(address, request(method, path, token=TOKEN))
        if answer.status != status or not (status == 204 or is_well_formed(answer)):
            wrong[line] = answer
    assert not wrong


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


OWN = ("Host: localhost", f"Authorization: Token {TOKEN}")

UNFIT = json.dumps({"orgID": "d28a912511da88e3", "template": {"contents": [{"kind": "Labl"}]}}).encode()

MALFORMED: dict[str, tuple[bytes, int]] = {
    "no-http": (b"hello\r\n\r\n", 400),
    "two-lengths": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: 2", "Content-Length: 3") + b"{}", 400),
    "length-and-chunked": (
        head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: 2", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "no-number": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: two"), 400),
    "chunk-size": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Transfer-Encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n", 400),
    "chunk-of-wrong-length": (
        head(f"POST {APPLY} HTTP/1.1", *OWN, "Transfer-Encoding: chunked") + b"1\r\n{}\r\n0\r\n\r\n",
        400,
    ),
    "large-header": (head("GET /health HTTP/1.1", *OWN, f"X-Large: {'x' * 65536}"), 400),
    "large-path": (head(f"GET /{'x' * 65536} HTTP/1.1", *OWN), 400),
    "bad-header": (head("GET /health HTTP/1.1", "Host localhost"), 400),
    "media-type": (head(f"POST {EXPORT} HTTP/1.1", *OWN, "Content-Type: text/plain", "Content-Length: 2") + b"{}", 415),
    "charset": (
        head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Type: application/json; charset=latin-1", "Content-Length: 2")
        + b"{}",
        415,
    ),
    "coding": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Encoding: br", "Content-Length: 2") + b"{}", 415),
    "no-gzip": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Encoding: gzip", "Content-Length: 2") + b"{}", 400),
    "half-gzip": (
        head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Encoding: gzip", "Content-Length: 12")
        + gzip.compress(b"{}")[:12],
        400,
    ),
    "declared-too-large": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: 110001"), 413),
    "no-token": (head("GET /api/v2/stacks HTTP/1.1", "Host: localhost"), 401),
    "no-token-no-route": (head("GET /nothing HTTP/1.1", "Host: localhost"), 401),
    "page-of-another-site": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Origin: http://evil.example.com"), 403),
    "no-origin": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Origin: http://[::1"), 403),
    "key-of-bytes": (
        head(f"POST {APPLY} HTTP/1.1", *OWN, f"Content-Length: {len(UNFIT)}").removesuffix(b"\r\n")
        + b"Idempotency-Key: \xff\r\n\r\n"
        + UNFIT,
        422,
    ),
    "unknown-host": (head("GET /health HTTP/1.1", "Host: evil.example.com"), 421),
    "stalls": (head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: 100") + b"{", 408),
}


async def test_malformed_requests_have_answers(address: str) -> None:
    answers = await asyncio.gather(*(send(address, sent) for sent, _ in MALFORMED.values()))
    wrong = {
        name: answer
        for (name, (_, status)), answer in zip(MALFORMED.items(), answers, strict=True)
        if answer.status != status or not is_well_formed(answer)
    }
    assert not wrong


async def test_malformed_requests_leave_no_part_of_a_token_in_the_log(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for line in (b"Authorization Token canary", b"Authorization: Token can\0ary", b"canary: \xff\0", b"\x16canary"):
            answer = await send(address, b"GET /health HTTP/1.1\r\n" + line + b"\r\n\r\n")
            assert (answer.status, is_well_formed(answer)) == (400, True)
        assert (await send(address, b"canary\r\n\r\n")).status == 400
    assert "malformed request" in caplog.messages
    assert not re.search("can.{0,4}ary", caplog.text)


async def test_a_body_is_counted_while_it_arrives_and_while_it_is_inflated(address: str) -> None:
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    chunked = head(f"POST {APPLY} HTTP/1.1", *OWN, "Transfer-Encoding: chunked")
    answer = await send(address, chunked, *[chunk] * 27)
    assert answer.status == 413, "the server does not wait for the end of the body"
    small = gzip.compress(b" " * 1_000_000)
    answer = await send(address, request("POST", APPLY, small, ["Content-Encoding: gzip"], token=TOKEN))
    assert (answer.status, is_well_formed(answer)) == (413, True)


async def test_headers_that_do_not_arrive_in_time_end_the_connection(address: str) -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        await send(address, b"GET /health HTTP/1.1\r\nHost: localhost\r\n")
    with pytest.raises(asyncio.IncompleteReadError):
        await send(address)


async def test_the_server_survives_clients_that_disconnect_at_any_time(address: str) -> None:
    body = json.dumps({"orgID": ID, "dryRun": True}).encode()
    sent = request("POST", APPLY, body, token=TOKEN)
    for place in range(0, len(sent), 25):
        await send(address, sent[:place], leaves=True)
    await send(address, sent, leaves=True)
    assert (await send(address, request("GET", "/health", token=TOKEN))).status == 200


async def test_the_number_of_requests_at_a_time_is_limited(services: Cluster, tmp_path: Path) -> None:
    made = replace(settings(tmp_path), requests=1)
    async with gateway(made, services) as address, client(address) as session:
        host, _, port = address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head(f"POST {APPLY} HTTP/1.1", *OWN, "Content-Length: 100") + b"{")
        await writer.drain()
        while True:
            async with session.get("/api/v2/me") as second:
                if second.status == 503:
                    break
        assert second.headers["Retry-After"] == "1"
        async with session.get("/health") as health:
            assert health.status == 200, "probes need no place"
        writer.close()
        while True:
            async with session.get("/api/v2/me") as third:
                if third.status == 200:
                    break


async def test_pages_of_listed_origins_may_send_requests(services: Cluster, tmp_path: Path) -> None:
    made = settings(tmp_path, PKGER_HTTP_ORIGINS="https://console.example.com")
    async with gateway(made, services) as address, client(address) as session:
        origin = {"Origin": "https://console.example.com"}
        asked = {**origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        async with session.options(APPLY, headers=asked) as preflight:
            assert preflight.status == 204
            assert preflight.headers["Access-Control-Allow-Origin"] == "https://console.example.com"
            assert preflight.headers["Access-Control-Allow-Headers"] == "authorization"
        async with session.get("/api/v2/me", headers=origin) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, origin["Origin"])
        other_site = {**asked, "Origin": "https://evil.example.com"}
        async with session.options(APPLY, headers=other_site) as refused:
            assert refused.status == 403


async def test_answers_are_compressed_for_clients_that_accept_gzip(services: Cluster, tmp_path: Path) -> None:
    async with gateway(settings(tmp_path), services) as address:
        asked = request("GET", "/api/v2/swagger.json", b"", ["Accept-Encoding: gzip"], token=TOKEN)
        answer = await send(address, asked)
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(answer.body))["openapi"] == "3.1.0"
        plain = await send(address, request("GET", "/api/v2/swagger.json", token=TOKEN))
        assert "content-encoding" not in plain.headers
        refused = await send(
            address, request("GET", "/api/v2/swagger.json", b"", ["Accept-Encoding: gzip;q=0"], token=TOKEN)
        )
        assert "content-encoding" not in refused.headers


async def test_the_request_id_of_a_client_is_used_and_returned(services: Cluster, tmp_path: Path) -> None:
    made = settings(tmp_path, PKGER_HTTP_BASE_PATH="/pkger")
    async with gateway(made, services) as address, client(address) as session:
        async with session.get("/pkger/api/v2/me", headers={"X-Request-Id": "mine", "Zap-Trace-Span": "x"}) as answer:
            assert answer.status == 200
            ids = [answer.headers[name] for name in ("X-Request-Id", "trace-id", "trace-sampled")]
            assert ids == ["mine", "mine", "true"]
        async with session.get("/api/v2/me", headers={"X-Request-Id": "no id"}) as answer:
            assert answer.headers["X-Request-Id"] != "no id"
            assert "trace-id" not in answer.headers


async def test_health_names_the_service_that_is_down(tmp_path: Path) -> None:
    async with cluster(tmp_path) as services:
        services.addresses["applier"] = "127.0.0.1:1"
        (tmp_path / "open").mkdir(mode=0o755)
        services.addresses["stack"] = f"unix:{tmp_path}/open/stack.sock"
        async with gateway(settings(tmp_path), services) as address, client(address) as session:
            async with session.get("/health") as answer:
                document = await answer.json()
            assert (answer.status, document["status"], document["code"]) == (503, "fail", "unavailable")
            # The cause, with the folder of the socket, is in the log.
            assert document["message"] == "applier: it does not answer; stack: it does not answer"
            async with session.get("/ping") as ping:
                assert ping.status == 204
