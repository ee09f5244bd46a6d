"""The words of an expression."""

import re
from enum import Enum, auto
from typing import NamedTuple

from services.actions.templates.errors import TemplateCode, TemplateError
from services.actions.templates.values import LARGEST_INTEGER, Value

OPEN = "{{"
CLOSE = "}}"


class TokenType(Enum):
    """What a token is."""

    NAME = auto()
    LITERAL = auto()
    SYMBOL = auto()
    END = auto()


class Token(NamedTuple):
    """
    A word of an expression.

    Attributes:
        type: What it is.
        text: As written; that of a text literal without its quotes.
        value: The value of a literal; None for all others.
        position: Where it begins in the template, from 0.
    """

    type: TokenType
    text: str
    value: Value
    position: int

    @property
    def column(self) -> int:
        """Where it begins in the template, from 1."""
        return self.position + 1


_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<double>[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+))
    | (?P<integer>[0-9]+)
    | "(?P<double_quoted>(?:[^"\\]|\\.)*)"
    | '(?P<single_quoted>(?:[^'\\]|\\.)*)'
    | (?P<end>\}\})
    | (?P<symbol>\|\||&&|==|!=|<=|>=|[-+!?:.,()\[\]<>])
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))|\\", re.DOTALL)
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_LONGEST_INTEGER = len(str(LARGEST_INTEGER))

_QUOTES = "\"'"
_LONGEST_QUOTE = 20


def tokens_of(text: str, start: int) -> list[Token]:
    """
    Split an expression up to the ``}}`` behind it.

    Args:
        text: The template.
        start: Where the expression begins in it, from 0.

    Returns:
        The tokens, of which the last one is the end.

    Raises:
        TemplateError: A character belongs to no token, a text or the expression has no end, or a literal is wrong.
    """
    tokens = []
    position = start
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unknown_token(text, position, start)
        position = match.end()
        token = _token(match)
        tokens.append(token)
        if token.type is TokenType.END:
            return tokens


def _token(match: re.Match[str]) -> Token:
    group = match.lastgroup or ""
    text, position = match[group], match.start(group)
    match group:
        case "name" if text not in _WORDS:
            return Token(TokenType.NAME, text, None, position)
        case "name":
            return Token(TokenType.LITERAL, text, _WORDS[text], position)
        case "symbol":
            return Token(TokenType.SYMBOL, text, None, position)
        case "end":
            return Token(TokenType.END, text, None, position)
        case "integer":
            return Token(TokenType.LITERAL, text, _integer(text, position), position)
        case "double":
            return Token(TokenType.LITERAL, text, _double(text, position), position)
        case _:
            return Token(TokenType.LITERAL, text, _unescaped(text, position), position - 1)


def _integer(text: str, position: int) -> int:
    digits = text.lstrip("0") or "0"
    if len(digits) > _LONGEST_INTEGER or int(digits) > LARGEST_INTEGER:
        raise _syntax(position, f"an integer is at most {LARGEST_INTEGER}")
    return int(digits)


def _double(text: str, position: int) -> float:
    value = float(text)
    if value == float("inf"):
        raise _syntax(position, "the number does not fit into 64 bits")
    return value


def _unescaped(text: str, position: int) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in _ESCAPES:
            reason = rf"\{match[2]} means nothing in a text; there are \\ \" \' \n \r \t and \uXXXX"
            raise _syntax(position + match.start(), reason)
        return _ESCAPES[match[2]]

    value = _ESCAPE.sub(character, text)
    try:
        return value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _syntax(position, "the text has half of a surrogate pair") from None


def _unknown_token(text: str, position: int, start: int) -> TemplateError:
    rest = text[position:].lstrip(" \t\r\n")
    column = len(text) - len(rest)
    if not rest:
        return _syntax(start - len(OPEN), f'{OPEN} without {CLOSE}; literal braces are {OPEN} "{OPEN}" {CLOSE}')
    if rest[0] in _QUOTES:
        return _syntax(column, f"the text {rest[:_LONGEST_QUOTE]} has no end")
    return _syntax(column, f"{rest[0]!r} stands in no expression")


def _syntax(position: int, text: str) -> TemplateError:
    return TemplateError(TemplateCode.SYNTAX, position + 1, text)
