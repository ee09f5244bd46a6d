"""Recorded requests of InfluxDB's clients: sends them and compares their answers."""

import gzip
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import yaml

FILE = Path(__file__).with_name("cases.jsonl")
"""A copy of the recordings, so that the tests run without other files."""

Framing = Callable[[bytes], Iterator[bytes]]
"""Cuts a body into the chunks that are sent."""

_VARIABLE = re.compile(r"\$\{(\w+)\}")

_ABSENT = object()


def in_one_piece(body: bytes) -> Iterator[bytes]:
    yield body


def byte_by_byte(body: bytes) -> Iterator[bytes]:
    return (body[place : place + 1] for place in range(len(body)))


def inside_characters(body: bytes) -> Iterator[bytes]:
    """Each piece begins inside a character of several bytes, if there is one, or else inside a word."""
    middles = [place for place, byte in enumerate(body) if byte & 0b1100_0000 == 0b1000_0000]
    places = [0, *(middles or range(7, len(body), 997)), len(body)]
    return (body[start:end] for start, end in pairwise(places) if start < end)


class Scenario:
    """
    Sends cases in order, with the values that earlier cases save.

    Attributes:
        saved: Values of variables.
        path: Path of the last request.
        status: Status of the last answer.
        text: Body of the last answer.
    """

    def __init__(self, client: aiohttp.ClientSession, saved: Mapping[str, Any], framing: Framing) -> None:
        self._client, self._framing = client, framing
        self.saved: dict[str, Any] = dict(saved)
        self.path, self.status, self.text = "", 0, ""

    async def play(self, case: Mapping[str, Any]) -> list[str]:
        """Send a case; returns the differences of its answer."""
        request = self._filled(case["request"])
        headers = {key: text for key, text in request.get("headers", {}).items() if key != "Transfer-Encoding"}
        is_chunked = "Transfer-Encoding" in request.get("headers", {})
        body: bytes | None = None
        if "text" in request:
            body = request["text"].encode()
        elif "body" in request:
            body = json.dumps(request["body"], ensure_ascii=False).encode()
        if request.get("gzip"):
            body, headers["Content-Encoding"] = gzip.compress(body or b""), "gzip"
        async with self._client.request(
            request["method"],
            request["path"],
            params=[tuple(pair) for pair in request.get("query", [])],
            headers=headers,
            data=self._pieces(body) if is_chunked and body is not None else body,
            allow_redirects=False,
        ) as response:
            text = await response.text()
            self.path, self.status, self.text = request["path"], response.status, text
            expected = self._filled(case["expect"])
            statuses = expected["status"] if isinstance(expected["status"], list) else [expected["status"]]
            if response.status not in statuses:
                return [f"status {response.status}, not {expected['status']}: {text[:500]}"]
            wrong = [
                f"{name}: {response.headers.get(name)!r} is not {matcher!r}"
                for name, matcher in expected.get("headers", {}).items()
                if not self._matches(matcher, response.headers.get(name, _ABSENT), None)
            ]
        return wrong + self._wrong_body(case, expected.get("body", {}), text)

    def _wrong_body(self, case: Mapping[str, Any], expected: Mapping[str, Any], text: str) -> list[str]:
        if matcher := next((each for each in expected.values() if str(each).startswith("?yaml:")), None):
            documents = list(yaml.safe_load_all(text))
            return [] if len(documents) == int(matcher.partition(":")[2]) else [f"{len(documents)} YAML documents"]
        document = json.loads(text) if text else None
        wrong = [
            f"{pointer}: {json.dumps(found, default=str)[:300]} is not {matcher!r}"
            for pointer, matcher in expected.items()
            if not self._matches(matcher, found := at(document, pointer), document)
        ]
        for name, pointer in case.get("save", {}).items():
            place = pointer.removeprefix("hex:")
            value = at(document, place)
            if value is _ABSENT:
                continue
            self.saved[name] = f"{value:016x}" if place != pointer and isinstance(value, int) else value
        return wrong

    async def _pieces(self, body: bytes) -> AsyncIterator[bytes]:
        for piece in self._framing(body):
            yield piece

    def _filled(self, value: Any) -> Any:
        """*value* with its variables replaced; a text that is one variable gets the type of its value."""
        if isinstance(value, dict):
            return {self._filled(key): self._filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if not isinstance(value, str):
            return value
        whole = _VARIABLE.fullmatch(value)
        return self._saved(whole) if whole else _VARIABLE.sub(lambda found: str(self._saved(found)), value)

    def _saved(self, variable: re.Match[str]) -> Any:
        # If an earlier case failed to save the variable, only cases that use it fail, too.
        return self.saved.get(variable[1], f"no-{variable[1]}")

    def _matches(self, matcher: Any, value: Any, document: Any) -> bool:
        if not isinstance(matcher, str):
            return type(matcher) is type(value) and matcher == value
        if matcher.startswith("~"):
            return isinstance(value, str) and re.search(matcher[1:], value) is not None
        if matcher.startswith("=="):
            return bool(value == at(document, matcher[2:]))
        if matcher.startswith("#="):
            return isinstance(value, list) and len(value) == len(at(document, matcher[2:]))
        return _is_like(matcher, value) if matcher.startswith("?") else value == matcher


def _is_like(matcher: str, value: Any) -> bool:
    name, _, number = matcher[1:].partition(":")
    match name:
        case "text":
            return isinstance(value, str) and value != ""
        case "object":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list) and (not number or len(value) == int(number))
        case "id":
            return isinstance(value, str) and re.fullmatch("(?!0{16})[0-9a-f]{16}", value) is not None
        case "uint" | "uint+":
            return type(value) is int and value >= (name == "uint+")
        case "time":
            return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
        case "absent":
            return value is _ABSENT
    raise AssertionError(matcher)


def at(document: Any, pointer: str) -> Any:
    """The value at a pointer; ``_ABSENT`` when there is none."""
    found = document
    for escaped in pointer.split("/")[1:]:
        step = escaped.replace("~1", "/").replace("~0", "~")
        if step.startswith("[") and isinstance(found, list):
            key, _, wanted = step[1:-1].partition("=")
            found = next((each for each in found if str(each.get(key)) == wanted), _ABSENT)
        elif isinstance(found, list):
            found = found[int(step)] if -len(found) <= int(step) < len(found) else _ABSENT
        elif isinstance(found, dict):
            found = found.get(step, _ABSENT)
        else:
            return _ABSENT
        if found is _ABSENT:
            return _ABSENT
    return found


def read_cases() -> list[dict[str, Any]]:
    """All recorded cases, in order."""
    return [json.loads(line) for line in FILE.read_text().splitlines()]
