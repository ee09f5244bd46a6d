"""
Writes values into the option records of a Flux script (docs/reference/package-format.md, "Parameter values"); the rest
stays unchanged.
"""

from collections.abc import Mapping, Sequence

from services.kinds.influxdb.flux.expressions import quoted
from services.kinds.influxdb.flux.scanner import TokenKind, scan
from services.kinds.influxdb.flux.script import Property, RecordLiteral, Statement, first_options

_COLUMNS = 100
_ENTRIES_IN_LINE = 4
_INDENT = "    "


def rewritten(text: str, statements: Sequence[Statement], values: Mapping[str, Mapping[str, str]]) -> str:
    """
    A script with other values in its option records, and with an empty line after options and imports.

    Args:
        text: The script.
        statements: Its statements, as read from *text*.
        values: For each option the expression of each property that changes; new properties come last, in this order.
            A property with a quoted key stays as it is.
    """
    changes = {
        statement.start: _option(text, statement, statement.record, values[name])
        for name, statement in first_options(statements, tuple(values)).items()
        if statement.record
    }
    parts = [text[: statements[0].start]]
    for position, statement in enumerate(statements):
        parts.append(changes.get(statement.start, text[statement.start : statement.end]))
        if position + 1 < len(statements):
            following = statements[position + 1]
            gap = text[statement.end : following.start]
            parts.append(_spaced(gap) if _stands_apart(statement, following) else gap)
    parts.append(text[statements[-1].end :])
    return "".join(parts).rstrip() + "\n"


def _stands_apart(statement: Statement, following: Statement) -> bool:
    return statement.keyword == "option" or (statement.keyword == "import" and following.keyword != "import")


def _spaced(gap: str) -> str:
    """The text between two statements, with one empty line; a comment at the end of the first line stays there."""
    line, _, rest = gap.partition("\n")
    return f"{line.rstrip()}\n\n{rest.lstrip()}"


def _option(text: str, statement: Statement, record: RecordLiteral, values: Mapping[str, str]) -> str:
    """The whole ``option`` statement with its new values."""
    keys = {entry.key for entry in record.properties}
    new_entries = [f"{_key(key)}: {value}" for key, value in values.items() if key not in keys]
    if record.commented:
        return _spliced(text, statement, record, values, new_entries)
    entries = [_entry(text, entry, _new_value(entry, values)) for entry in record.properties] + new_entries
    head = f"option {statement.option} = {{" + (f"{record.base} with" if record.base else "")
    line = head + (" " if record.base else "") + ", ".join(entries) + "}"
    if len(entries) <= _ENTRIES_IN_LINE and len(line) <= _COLUMNS and "\n" not in line:
        return line
    return "\n".join([head, *(f"{_INDENT}{entry}," for entry in entries), "}"])


def _new_value(entry: Property, values: Mapping[str, str]) -> str | None:
    return None if entry.quoted else values.get(entry.key)


def _entry(text: str, entry: Property, value: str | None) -> str:
    if value is None:
        return text[entry.start : entry.end]
    return f"{text[entry.start : entry.key_end]}: {value}"


def _spliced(
    text: str, statement: Statement, record: RecordLiteral, values: Mapping[str, str], new_entries: Sequence[str]
) -> str:
    """The statement with its new values in the layout of the source."""
    parts, position = [], statement.start
    for entry in record.properties:
        if (value := _new_value(entry, values)) is None:
            continue
        if entry.value_start is None:
            parts += [text[position : entry.key_end], f": {value}"]
        else:
            parts += [text[position : entry.value_start], value]
        position = entry.end
    if new_entries:
        last = record.properties[-1].end if record.properties else record.body_start
        lead = ", " if record.properties else " "
        parts += [text[position:last], lead, ", ".join(new_entries)]
        position = last
    return "".join([*parts, text[position : statement.end]])


def _key(name: str) -> str:
    """The name of a new property: in quotes when it is no identifier."""
    match scan(name):
        case [token] if token.kind is TokenKind.IDENTIFIER and token.text == name:
            return name
        case _:
            return quoted(name)
