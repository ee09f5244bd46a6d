"""Checks a Flux script without running it."""

from services.drivers.influxdb.codecs.codec import Refused
from services.kinds.influxdb.flux.literals import text_in
from services.kinds.influxdb.flux.scanner import Token, TokenKind, scan

_FAULTY = {
    TokenKind.UNFINISHED: "a string or regular expression in it is not closed",
    TokenKind.STRAY: "it has a character that has no place in Flux",
}

_ATTRIBUTE = "@"
"""Begins an attribute, such as ``@edition("2022.1")``: unknown to the parser of pkger, but valid Flux."""

_OPENING = (TokenKind.OPEN, TokenKind.TEXT_OPEN)
_CLOSING = (TokenKind.CLOSE, TokenKind.TEXT_CLOSE)


def tokens_of(script: str) -> list[Token]:
    """The tokens of a script without its comments."""
    return [token for token in scan(script) if token.kind is not TokenKind.COMMENT]


def refuse_faulty(kind: str, script: str) -> None:
    """
    Refuse a script that no server can parse.

    Raises:
        Refused: The script is faulty; the message says where.
    """
    depth = 0
    for token in tokens_of(script):
        if token.kind in _FAULTY and token.text != _ATTRIBUTE:
            line = script.count("\n", 0, token.start) + 1
            raise Refused(f"the query of a {kind} is faulty in line {line}: {_FAULTY[token.kind]}")
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if depth < 0:
            line = script.count("\n", 0, token.start) + 1
            raise Refused(f"the query of a {kind} is faulty in line {line}: {token.text} has no opening bracket")
    if depth:
        raise Refused(f"the query of a {kind} is faulty: a bracket is not closed")


def is_identifier(text: str) -> bool:
    """Whether *text* is an identifier of Flux."""
    match scan(text):
        case [token]:
            return token.kind is TokenKind.IDENTIFIER and token.text == text
        case _:
            return False


def compared_fields(script: str) -> list[str]:
    """The texts to which a script compares ``r._field`` by ``==``, in order."""
    tokens = tokens_of(script)
    fields: list[str] = []
    for position, token in enumerate(tokens):
        if token.text != "r":
            continue
        match [each.text for each in tokens[position + 1 : position + 4]]:
            case [".", "_field", "=="]:
                value = tokens[position + 4 : position + 5]
            case ["[", '"_field"', "]"] if [each.text for each in tokens[position + 4 : position + 5]] == ["=="]:
                value = tokens[position + 5 : position + 6]
            case _:
                continue
        if value and value[0].kind is TokenKind.TEXT:
            fields.append(text_in(value[0].text) or "")
    return fields
