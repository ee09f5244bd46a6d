"""
The script of a task: the query of the spec, with an option statement from which the server takes name and schedule.

For every query, ``query_in`` returns exactly the query that ``written`` put into the script.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.kinds.influxdb.flux.expressions import quoted
from services.kinds.influxdb.flux.scanner import Token, scan
from services.kinds.influxdb.flux.script import Statement, first_options, read_statements

_KEPT = "// pkger:option "
"""Begins the comment that stores the option statement of the query, which the one of the driver replaces."""

_HEADS = ("import", "package")

_WHITE_SPACE = re.compile(r"[ \t\n\v\f\r]*")


def written(spec: Mapping[str, Any]) -> str:
    """The script of a task with *spec*."""
    query, statement = spec["query"], _statement(spec)
    statements = read_statements(query)
    own = _option(statements)
    if own is None:
        place = _place(scan(query), statements, query)
        if place is None:
            return f"{query}\n\n{statement}"
        return f"{query[:place]}{statement}\n\n{query[place:]}"
    kept = json.dumps(query[own.start : own.end], ensure_ascii=False)
    return f"{query[: own.start]}{statement} {_KEPT}{kept}\n{query[own.end :]}"


def query_in(script: str) -> str:
    """The query of a script that the driver wrote; for any other script, the script without its option statement."""
    own = _option(read_statements(script))
    if own is None:
        return script
    behind = next((token for token in scan(script) if token.start >= own.end), None)
    if behind and behind.text.startswith(_KEPT) and not script[own.end : behind.start].strip(" "):
        kept = _kept(behind.text.removeprefix(_KEPT))
        if kept is not None:
            end = behind.end + script.startswith("\n", behind.end)
            return script[: own.start] + kept + script[end:]
    gap = _WHITE_SPACE.match(script, own.end)
    return script[: own.start] + script[gap.end() if gap else own.end :]


def _statement(spec: Mapping[str, Any]) -> str:
    parts = [f"name: {_literal(spec['name'])}"]
    parts += [f"cron: {_literal(spec['cron'])}"] if spec["cron"] else []
    parts += [f"{key}: {spec[key]}" for key in ("every", "offset") if spec[key]]
    return f"option task = {{{', '.join(parts)}}}"


def _literal(text: str) -> str:
    return quoted(text).replace("\n", "\\n").replace("\t", "\\t")


def _option(statements: Sequence[Statement]) -> Statement | None:
    return first_options(statements, ("task",)).get("task")


def _place(tokens: Sequence[Token], statements: Sequence[Statement], query: str) -> int | None:
    """Where the option statement is inserted: before the first token in a line below all imports; None: at the end."""
    head = max((statement.end for statement in statements if statement.keyword in _HEADS), default=0)
    for token in tokens:
        if token.start >= head and (head == 0 or "\n" in query[head : token.start]):
            return token.start
    return None


def _kept(text: str) -> str | None:
    """The statement in a comment; None: it has none."""
    try:
        kept = json.loads(text)
    except ValueError:
        return None
    return kept if isinstance(kept, str) else None
