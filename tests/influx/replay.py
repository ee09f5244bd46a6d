"""
Replays scenarios of ``scenarios.jsonl``: requests, and the expected answers of a server.

One JSON object a line: ``name``, ``about``, ``steps``. A step has ``method``, ``path``, ``query``, ``body`` or ``raw``,
``headers``, ``token`` (the operator's if absent), ``repeat`` (with ``${i}``; only the status is compared), ``save``
(variables from the answer, by JSON pointer), ``lists`` (pointers of lists to ``set`` or ``count``), ``ignore`` (keys at
the top of the answer, as pointers), and the expected ``status`` and ``answer``. In expected texts ``${name}`` is a
variable, and ``<id>``, ``<time>``, ``<user>`` stand for any such text. Links and messages of errors are compared only
if the expected answer has them.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

WILDCARDS = {
    "<id>": "[0-9a-f]{16}",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)",
    "<user>": ".+",
}
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_PIECE = re.compile(r"\$\{\w+\}|" + "|".join(WILDCARDS))


class Replay:
    """One server, and the variables of the current scenario."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self._session, self._url, self._token = session, url, token
        self._variables: dict[str, str] = {}

    async def run(self, scenario: Mapping[str, Any]) -> list[str]:
        """The differences of the first step that has any, in a new organization for the scenario."""
        unique = secrets.token_hex(4)
        name = f"org-{unique}"
        _, org = await self._send({"method": "POST", "path": "/api/v2/orgs", "body": {"name": name}})
        self._variables = {"unique": unique, "org_name": name, "org": org["id"]}
        for number, step in enumerate(scenario["steps"], 1):
            found = [
                f"step {number} {step['method']} {step['path']}: {difference}" for difference in await self._step(step)
            ]
            if found:
                return found
        return []

    async def _step(self, step: Mapping[str, Any]) -> list[str]:
        for count in range(1, step.get("repeat", 0) + 1):
            self._variables["i"] = str(count)
            status, _ = await self._send(step)
            if status != step["status"]:
                return [f"status {status} instead of {step['status']}"]
        if "repeat" in step:
            return []
        status, answer = await self._send(step)
        if status != step["status"]:
            return [f"status {status} instead of {step['status']}: {json.dumps(answer)[:300]}"]
        for variable, pointer in step.get("save", {}).items():
            self._variables[variable] = _at(answer, pointer)
        for pointer, how in step.get("lists", {}).items():
            _reorder(answer, step["answer"], pointer, how)
        for pointer in step.get("ignore", ()):
            del answer[pointer.removeprefix("/")]
        return list(self._differences("", step["answer"], answer))

    async def _send(self, step: Mapping[str, Any]) -> tuple[int, Any]:
        path = quote(self._filled(step["path"]), safe="/%")
        query = [
            (key, each)
            for key, value in self._filled(step.get("query", {})).items()
            for each in (value if isinstance(value, list) else [value])
        ]
        token = self._filled(step.get("token", self._token))
        headers = {"Authorization": f"Token {token}"} if token else {}
        content = json.dumps(self._filled(step["body"])) if "body" in step else self._filled(step.get("raw", ""))
        async with self._session.request(
            step["method"],
            URL(self._url + path, encoded=True).with_query(query),
            data=content.encode(),
            headers={**headers, **step.get("headers", {})},
        ) as response:
            text = await response.text()
        try:
            return response.status, json.loads(text) if text.strip() else None
        except ValueError:
            return response.status, {"<text>": text}

    def _filled(self, value: Any) -> Any:
        """The value with its variables replaced; unknown ones belong to Flux."""
        if isinstance(value, dict):
            return {self._filled(key): self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if not isinstance(value, str):
            return value
        return _VARIABLE.sub(lambda found: self._variables.get(found[1], found[0]), value)

    def _differences(self, path: str, expected: Any, actual: Any) -> Iterator[str]:
        if isinstance(expected, dict) and isinstance(actual, dict):
            unasked = {"links", "message"} - expected.keys()
            for key in sorted((expected.keys() | actual.keys()) - unasked):
                if key not in expected or key not in actual:
                    yield f"{path}/{key} is {'missing' if key in expected else 'unexpected'}"
                else:
                    yield from self._differences(f"{path}/{key}", expected[key], actual[key])
        elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
            for place, (left, right) in enumerate(zip(expected, actual, strict=True)):
                yield from self._differences(f"{path}/{place}", left, right)
        elif isinstance(expected, str) and isinstance(actual, str):
            if not re.fullmatch(self._pattern(expected), actual, re.DOTALL):
                yield f"{path or '/'} is {actual!r} instead of {expected!r}"
        elif isinstance(expected, bool) != isinstance(actual, bool) or expected != actual:
            yield f"{path or '/'} is {json.dumps(actual)[:300]} instead of {json.dumps(expected)[:300]}"

    def _pattern(self, expected: str) -> str:
        """The expected text as a regular expression."""
        pieces = zip(_PIECE.split(expected), [*_PIECE.findall(expected), ""], strict=True)
        return "".join(re.escape(plain) + self._piece(piece) for plain, piece in pieces)

    def _piece(self, piece: str) -> str:
        return WILDCARDS.get(piece) or re.escape(self._filled(piece))


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _reorder(answer: Any, expected: Any, pointer: str, how: str) -> None:
    """Make a list comparable: by its length, or sorted by the names of its items."""
    *holder, last = pointer.split("/")
    for place, value in enumerate((answer, expected)):
        found = _at(value, "/".join(holder))
        items: Sequence[Any] = found[last]
        if how == "count":
            found[last] = f"<{len(items)} items>" if place == 0 else items
        else:
            found[last] = sorted(items, key=lambda item: str(item.get("name", "") if isinstance(item, dict) else item))
