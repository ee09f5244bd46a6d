"""Finds the handler of a method and a path, or the answer of the server if there is none."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from tests.influx.call import TEXT, Answer, Handler, refusal
from tests.influx.problem import Problem

Route = tuple[str, str, Handler]
"""Method, path with placeholders such as ``/api/v2/labels/{id}``, handler."""

NEWER = {"orgs", "buckets", "labels", "dashboards", "authorizations", "setup"}
"""Resources whose handlers answer unknown paths with a plain text, and other methods with no body."""

_Path = tuple[str, ...]


class Router:
    """All routes, by resource."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._paths: dict[tuple[str, int], dict[_Path, dict[str, Handler]]] = defaultdict(dict)
        for method, path, handler in routes:
            pattern = tuple(path.strip("/").split("/"))
            self._paths[_key(pattern)].setdefault(pattern, {})[method] = handler

    def find(self, method: str, raw_path: str) -> tuple[Handler, dict[str, str]] | Answer:
        """
        The handler with its parameters, or the answer if there is none.

        A path with an encoded slash is not decoded at all, as in the server.
        """
        path = tuple(raw_path.strip("/").split("/"))
        if "%2f" not in raw_path.lower():
            path = tuple(unquote(part) for part in path)
        found = list(self._matches(path))
        for params, methods in found:
            if method in methods:
                return methods[method], params
        is_newer = path[:2] == ("api", "v2") and len(path) > 2 and path[2] in NEWER
        if found:
            allowed = sorted({*(method for _, methods in found for method in methods), "OPTIONS"})
            return Answer(405) if is_newer else _not_allowed(", ".join(allowed))
        if is_newer:
            return Answer(404, b"404 page not found\n", TEXT)
        return refusal(Problem("not found", "path not found"))

    def _matches(self, path: _Path) -> Iterator[tuple[dict[str, str], dict[str, Handler]]]:
        for pattern, methods in self._paths.get(_key(path), {}).items():
            pairs = list(zip(pattern, path, strict=True))
            if all(part == sent or (part.startswith("{") and sent) for part, sent in pairs):
                yield {part[1:-1]: sent for part, sent in pairs if part.startswith("{")}, methods


def _key(path: _Path) -> tuple[str, int]:
    return path[2] if len(path) > 2 else "", len(path)


def _not_allowed(allowed: str) -> Answer:
    found = refusal(Problem("method not allowed", f"allow: {allowed}"))
    return Answer(found.status, found.body, found.content_type, {**found.headers, "Allow": allowed})
