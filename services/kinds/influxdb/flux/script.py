"""The statements of a Flux script, and the option records among them (docs/reference/package-format.md, "Queries")."""

from bisect import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.kinds.influxdb.flux.literals import NO_LITERAL, Literal, read_literal, text_in
from services.kinds.influxdb.flux.scanner import END_OF_OPERAND, OPERANDS, Token, TokenKind, scan


@dataclass(frozen=True, slots=True)
class Property:
    """
    An entry of a record.

    Attributes:
        key: The name before the colon; empty for an entry that is no property.
        quoted: Whether the name is quoted; such an entry is no parameter.
        start: Offset of the entry.
        key_end: Offset after its key.
        value_start: Offset of its value; None for an entry without a value, such as both of ``{a, b}``.
        end: Offset after the entry.
        literal: Its value, when it is a literal.
    """

    key: str
    quoted: bool
    start: int
    key_end: int
    value_start: int | None
    end: int
    literal: Literal


@dataclass(frozen=True, slots=True)
class RecordLiteral:
    """
    A record literal.

    Attributes:
        body_start: Offset at which its entries may begin: after the brace, or after ``v with``.
        base: The name of the record that it extends; empty when it extends none.
        properties: Its entries in order.
        commented: Whether its statement contains a comment.
    """

    body_start: int
    base: str
    properties: tuple[Property, ...]
    commented: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """
    A statement outside all brackets.

    Attributes:
        start: Offset of the statement.
        end: Offset after it, without comments that follow.
        keyword: The keyword it begins with; empty for an assignment or expression.
        option: The name in ``option name = ...``; empty in any other statement.
        record: The value of the option, when it is a record literal.
    """

    start: int
    end: int
    keyword: str
    option: str = ""
    record: RecordLiteral | None = None


def read_statements(text: str) -> tuple[Statement, ...]:
    """The statements of a script in order; of a faulty script the recognisable ones."""
    tokens = scan(text)
    comments = [token.start for token in tokens if token.kind is TokenKind.COMMENT]
    groups = _grouped(token for token in tokens if token.kind is not TokenKind.COMMENT)
    return tuple(_statement(group, comments) for group in groups)


def first_options(statements: Iterable[Statement], names: Sequence[str]) -> dict[str, Statement]:
    """The first ``option`` statement of each of *names*, as far as there is one."""
    options: dict[str, Statement] = {}
    for statement in statements:
        if statement.option in names:
            options.setdefault(statement.option, statement)
    return options


_CONTINUING = frozenset(["and", "else", "in", "or", "then"])
_STARTS = OPERANDS | {TokenKind.KEYWORD, TokenKind.TEXT_OPEN, TokenKind.UNFINISHED, TokenKind.STRAY}
_ENDS = END_OF_OPERAND | {TokenKind.STRAY}  # a statement after a stray semicolon is found


def _grouped(tokens: Iterable[Token]) -> list[list[Token]]:
    """
    The tokens of each statement.

    Flux has no separator: a statement ends where an expression is complete and the next token cannot continue it.
    """
    groups: list[list[Token]] = []
    for token in tokens:
        if not groups or (token.depth == 0 and _starts(token) and _complete(groups[-1])):
            groups.append([])
        groups[-1].append(token)
    return groups


def _starts(token: Token) -> bool:
    if token.kind is TokenKind.OPEN:
        return token.text == "{"
    return token.kind in _STARTS and token.text not in _CONTINUING


def _complete(tokens: Sequence[Token]) -> bool:
    match tokens:
        case [first, second] if first.text == "import" and second.kind is TokenKind.IDENTIFIER:
            return False
        case _:
            return tokens[-1].kind in _ENDS


def _statement(tokens: Sequence[Token], comments: Sequence[int]) -> Statement:
    first, start, end = tokens[0], tokens[0].start, tokens[-1].end
    keyword = first.text if first.kind is TokenKind.KEYWORD else ""
    match tokens:
        case [option, name, equals, *value] if (
            option.text == "option" and name.kind is TokenKind.IDENTIFIER and equals.text == "=" and value
        ):
            commented = bisect(comments, start) < bisect(comments, end)
            return Statement(start, end, keyword, name.text, _record(value, commented))
        case _:
            return Statement(start, end, keyword)


def _record(tokens: Sequence[Token], commented: bool) -> RecordLiteral | None:
    """The record, when *tokens* are one record literal as a whole."""
    opening, *inner = tokens
    if opening.text != "{" or not inner:
        return None
    closing = inner.pop()
    if (closing.text, closing.depth) != ("}", 0) or any(token.depth == 0 for token in inner):
        return None
    base, body_start = "", opening.end
    match inner:
        case [name, extended, *_] if extended.text == "with" and name.kind is TokenKind.IDENTIFIER:
            base, body_start, inner = name.text, extended.end, inner[2:]
    return RecordLiteral(body_start, base, tuple(_property(entry) for entry in _entries(inner)), commented)


def _entries(tokens: Iterable[Token]) -> list[list[Token]]:
    """The tokens of each entry; between two adjacent commas there is none."""
    entries: list[list[Token]] = [[]]
    for token in tokens:
        if token.depth == 1 and token.text == ",":
            entries.append([])
        else:
            entries[-1].append(token)
    return [entry for entry in entries if entry]


def _property(entry: Sequence[Token]) -> Property:
    key, end = entry[0], entry[-1].end
    colon, value = entry[1:2], entry[2:]
    quoted = key.kind is TokenKind.TEXT
    named = (quoted or key.kind is TokenKind.IDENTIFIER) and (not colon or colon[0].text == ":")
    if not named:
        return Property("", False, key.start, end, None, end, NO_LITERAL)
    name = (text_in(key.text) or "") if quoted else key.text
    literal = read_literal(value) if value else NO_LITERAL
    return Property(name, quoted, key.start, key.end, value[0].start if value else None, end, literal)
