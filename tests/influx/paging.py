"""Limits and offsets of lists."""

from collections.abc import Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

from tests.influx.call import Call
from tests.influx.problem import Problem

Item = TypeVar("Item")

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def limit_of(call: Call, default: int = 20, most: int = 100) -> int:
    """How many items a page has; a limit out of range is refused, not clamped."""
    is_descending(call)
    call.query_id("after")
    limit = _whole(call, "limit", default)
    if not 1 <= limit <= most:
        raise Problem("invalid", f"limit must be between 1 and {most}")
    return limit


def is_descending(call: Call) -> bool:
    sent = call.query.get("descending", "")
    if sent not in {"", *_TRUE, *_FALSE}:
        raise Problem("invalid", "descending is invalid")
    return sent in _TRUE


def page(items: Sequence[Item], call: Call) -> Sequence[Item]:
    """The page for limit and offset of *call*. Deletions shift it, as it depends on the current list."""
    limit, offset = limit_of(call), max(_whole(call, "offset", 0), 0)
    ordered = items[::-1] if is_descending(call) else items
    return ordered[offset : offset + limit]


def links(path: str, call: Call, count: int, filters: Mapping[str, str | Sequence[str]]) -> dict[str, str]:
    """
    ``self``, ``prev`` and ``next`` of a list.

    ``next`` is present whenever the list has as many items as the limit, even if nothing follows. For lists that
    ignore limit and offset it therefore never ends.
    """
    limit, offset = limit_of(call), max(_whole(call, "offset", 0), 0)
    found = {"self": _at(path, call, filters, limit, offset)}
    if offset > 0:
        found["prev"] = _at(path, call, filters, limit, max(offset - limit, 0))
    if count >= limit:
        found["next"] = _at(path, call, filters, limit, offset + limit)
    return found


def _at(path: str, call: Call, filters: Mapping[str, str | Sequence[str]], limit: int, offset: int) -> str:
    descending = "true" if is_descending(call) else "false"
    sent = {name: value for name, value in filters.items() if value}
    query = {"descending": descending, "limit": str(limit), "offset": str(offset), **sent}
    return f"{path}?{urlencode(dict(sorted(query.items())), doseq=True)}"


def _whole(call: Call, name: str, default: int) -> int:
    sent = call.query.get(name, "")
    if not sent:
        return default
    try:
        return int(sent)
    except ValueError as error:
        raise Problem("invalid", f"{name} is invalid") from error
