"""
Answers the recorded cases of versioned packages by the code of the product.

The program beside the cases compares all of them:
``../shared/golden/dependencies/compare.py --only ranges -- python tests/packages/golden_adapter.py``; ``repository``
likewise.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from planner_svc.repositories.reader import RepositorySource
from services.core.errors import RepositoryInvalid
from services.packages.ranges import Range
from services.packages.versions import ParseProblem, Version
from tests.packages.resolving import as_json, resolved


def _match(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"matches": Range.parse(request["range"]).matches(Version.parse(request["version"]))}


def _sort(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"versions": list(map(str, sorted(map(Version.parse, request["versions"]))))}


def _canonical(request: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": str(Version.parse(request["version"]))}


def _repository(request: Mapping[str, Any]) -> dict[str, Any]:
    reader = RepositorySource(folders=None).reader("main", request["url"])
    try:
        asyncio.run(reader.version(request["read"]["name"], Version.parse(request["read"]["version"])))
    except RepositoryInvalid as invalid:
        return {"error": {"code": invalid.metadata["fault"], "file": invalid.metadata["file"]}}
    return {"ok": True}


def _resolve(request: Mapping[str, Any]) -> dict[str, Any]:
    return as_json(resolved(request))


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "match": _match,
    "sort": _sort,
    "canonical": _canonical,
    "repository": _repository,
    "resolve": _resolve,
}
"""By the ``op`` of a request."""


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request of the recorded cases."""
    try:
        return _ANSWERS[request["op"]](request)
    except ParseProblem as problem:
        return {"error": str(problem), "position": problem.position}


if __name__ == "__main__":
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(answer(json.loads(line))), flush=True)
