"""
The script of a task: the query of the spec, with an option statement from which the server takes name and schedule.

For every query, ``query_in`` returns exactly the query that ``written`` put into the script. Options of a task that
specs do not have, such as ``concurrency``, are in the option statement only, unless the query has one of its own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.kinds.influxdb.flux.expressions import quoted
from services.kinds.influxdb.flux.literals import Literal
from services.kinds.influxdb.flux.scanner import Token, scan
from services.kinds.influxdb.flux.script import Property, Statement, first_options, read_statements

_KEPT = "// pkger:option "
"""
Begins the comment that stores the option statement of the query, which the option statement of the driver replaces.
"""

_HEADS = ("import", "package")

_IN_SPEC = frozenset(("name", "cron", "every", "offset"))
"""The options of a task that are fields of its spec."""

_WHITE_SPACE = re.compile(r"[ \t\n\v\f\r]*")


def written(spec: Mapping[str, Any], live: str = "") -> str:
    """The script of a task with *spec*; it keeps the options that only the script *live* before an update has."""
    query = spec["query"]
    statements = read_statements(query)
    own = _option(statements)
    statement = _statement(spec, further_options(live) | _further(query, own))
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
    kept, end = _replaced(script, own)
    if kept is not None:
        return script[: own.start] + _updated(kept, _further(script, own)) + script[end:]
    gap = _WHITE_SPACE.match(script, own.end)
    return script[: own.start] + script[gap.end() if gap else own.end :]


def further_options(script: str) -> dict[str, str]:
    """The options of a task that the spec read from *script* does not have: their entries by name."""
    own = _option(read_statements(script))
    if own is None:
        return {}
    kept, _ = _replaced(script, own)
    expressed = {} if kept is None else _further(kept, _option(read_statements(kept)))
    return {name: entry for name, entry in _further(script, own).items() if name not in expressed}


def counts_in(query: str) -> dict[str, Literal]:
    """The options ``concurrency`` and ``retry`` of a *query* with an option statement of its own."""
    own = _option(read_statements(query))
    return {entry.key: entry.literal for entry in _entries(own) if entry.key in ("concurrency", "retry")}


def _further(script: str, own: Statement | None) -> dict[str, str]:
    """The options in a statement of *script* that are no fields of the spec."""
    return {entry.key: script[entry.start : entry.end] for entry in _entries(own)}


def _entries(own: Statement | None) -> list[Property]:
    properties = own.record.properties if own and own.record else ()
    return [entry for entry in properties if entry.value_start is not None and entry.key not in _IN_SPEC]


def _updated(kept: str, live: Mapping[str, str]) -> str:
    """The statement of the query with the *live* values of its further options, which somebody may have changed."""
    own = _option(read_statements(kept))
    further = _further(kept, own)
    if all(live.get(name) == entry for name, entry in further.items()):
        return kept
    properties = own.record.properties if own and own.record else ()
    entries = [
        live.get(entry.key, "") if entry.key in further else kept[entry.start : entry.end] for entry in properties
    ]
    return kept[: properties[0].start] + ", ".join(filter(None, entries)) + kept[properties[-1].end :]


def _replaced(script: str, own: Statement) -> tuple[str | None, int]:
    """
    The option statement of the query, stored in a comment after the driver's *own* statement that replaces it, and the
    end of both; None: there is no such comment.
    """
    behind = next((token for token in scan(script) if token.start >= own.end), None)
    if behind and behind.text.startswith(_KEPT) and not script[own.end : behind.start].strip(" "):
        kept = _kept(behind.text.removeprefix(_KEPT))
        return kept, behind.end + script.startswith("\n", behind.end)
    return None, own.end


def _statement(spec: Mapping[str, Any], further: Mapping[str, str]) -> str:
    parts = [f"name: {_literal(spec['name'])}"]
    parts += [f"cron: {_literal(spec['cron'])}"] if spec["cron"] else []
    parts += [f"{key}: {spec[key]}" for key in ("every", "offset") if spec[key]]
    parts += further.values()
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
