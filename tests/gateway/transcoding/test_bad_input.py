"""Bytes that no HTTP library sends: each gets an error in the form of this API, and none causes a defect."""

from services.gateway.transcoding.problems import PROBLEM_SCHEMA
from tests.gateway.gateway import TOKEN
from tests.gateway.raw import RawAnswer, request, send
from tests.gateway.transcoding.api import BASE, Api

JSON = b"Content-Type: application/json\r\n"

ROWS = [
    ("GET", "/stacks?names=%FF", b"", b"", "query"),
    ("GET", "/stacks?names=%ED%A0%80", b"", b"", "query"),
    ("GET", "/stacks/%FF", b"", b"", "path"),
    ("DELETE", "/platforms/embedded/orgs/default/stacks/%C3", b"", b"", "path"),
    ("GET", "/stacks/0a:watch", b"Last-Event-ID: \xff\xfe\r\n", b"", "Last-Event-ID"),
    ("GET", "/operations/0/events", b"Last-Event-ID: -1\r\n", b"", "Last-Event-ID"),
    ("POST", "/stacks", JSON + b"Idempotency-Key: \xff\xfe\r\n", b"{}", "Idempotency-Key"),
    ("POST", "/stacks", JSON, b'{"name": "\\ud800"}', "body"),
    ("POST", "/stacks", JSON, b'{"name": "\xff"}', "body"),
    ("POST", "/stacks", JSON, b'{"name": "\\u0000"}', "name"),
    ("POST", "/stacks", JSON, b'{"policy": {"a": 1e999}}', "body"),
    ("POST", "/stacks", JSON, b'{"policy": %s}' % (b'{"a":' * 500 + b"1" + b"}" * 500), "policy.a"),
    ("POST", "/packages:apply", JSON, b"[" * 10_000, "body"),
    ("DELETE", "/stacks/0a", JSON, b"{}", "body"),
    ("POST", "/packages:parse", JSON, b'{"view": [%s]}' % b",".join([b"1"] * 10_001), "view"),
    ("GET", "/stacks?page_size=1001", b"", b"", "page_size"),
]


async def sent(api: Api, method: str, target: str, headers: bytes, body: bytes) -> RawAnswer:
    """The answer to a request with additional headers."""
    head, _, rest = request(method, f"{BASE}{target}", body, token=TOKEN).partition(b"\r\n")
    return await send(api.address, head + b"\r\n" + headers + rest)


async def test_each_error_names_the_field(api: Api) -> None:
    for method, target, headers, body, field in ROWS:
        answer = await sent(api, method, target, headers, body)
        assert (answer.status, list(answer.document)) == (400, PROBLEM_SCHEMA["required"]), (target, body[:50])
        assert answer.document["metadata"]["field"] == field
    assert (await api.call("StackService_ListStacks")).document["stacks"] == []


async def test_headers_without_a_meaning_are_ignored(api: Api) -> None:
    for header in (b"If-None-Match: \xff", b"If-None-Match: ,W/", b"Accept: \xff;q=\xfe", b"Last-Event-ID: 5"):
        assert (await sent(api, "GET", "/stacks", header + b"\r\n", b"")).status == 200
