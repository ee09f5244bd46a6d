"""The tokens of a Flux script: enough to distinguish strings, regular expressions, comments and brackets."""

import re
from enum import StrEnum, auto
from typing import NamedTuple


class TokenKind(StrEnum):
    """
    The type of a token.

    A string with interpolations is several tokens: ``"a${`` is TEXT_OPEN, ``}b${`` TEXT_MIDDLE and ``}c"`` TEXT_CLOSE,
    with the tokens of the expressions between them. UNFINISHED is a string or regular expression without end. STRAY is
    a character that Flux does not allow.
    """

    COMMENT = auto()
    KEYWORD = auto()
    IDENTIFIER = auto()
    INTEGER = auto()
    FLOAT = auto()
    DURATION = auto()
    TIME = auto()
    REGEX = auto()
    TEXT = auto()
    TEXT_OPEN = auto()
    TEXT_MIDDLE = auto()
    TEXT_CLOSE = auto()
    OPEN = auto()
    CLOSE = auto()
    OPERATOR = auto()
    UNFINISHED = auto()
    STRAY = auto()


class Token(NamedTuple):
    """
    One token of a script.

    Attributes:
        kind: Its type.
        start: Its offset in the script.
        text: Its text.
        depth: Number of open brackets and interpolations around it, without one that it opens or closes itself.
    """

    kind: TokenKind
    start: int
    text: str
    depth: int

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.start + len(self.text)


_NUMBERS = frozenset([TokenKind.INTEGER, TokenKind.FLOAT, TokenKind.DURATION, TokenKind.TIME])

OPERANDS = _NUMBERS | {TokenKind.IDENTIFIER, TokenKind.TEXT, TokenKind.REGEX}
"""Names and literals: expressions by themselves."""

END_OF_OPERAND = OPERANDS | {TokenKind.TEXT_CLOSE, TokenKind.CLOSE}
"""Tokens after which an expression may be complete: a slash divides, a name begins the next statement."""

_TOKEN = re.compile(
    r"""
    [ \t\n\v\f\r\ufeff]*+
    (?:(?P<COMMENT>//[^\n]*+)
    | (?P<KEYWORD>(?:and|builtin|else|empty|exists|if|import|in|not|option|or|package|return|test(?:case)?|then)\b)
    | (?P<IDENTIFIER>[^\W\d]\w*+)
    | (?P<TIME>[0-9]{4}-[0-9]{2}-[0-9]{2}
        (?:T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*+)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?)
    | (?P<DURATION>(?:[0-9]++(?:y|mo|w|d|h|ms|m|s|us|µs|ns))+)
    | (?P<FLOAT>[0-9]++\.[0-9]*+|\.[0-9]++)
    | (?P<INTEGER>[0-9]++)
    | (?P<quote>")
    | (?P<slash>/)
    | (?P<OPEN>[(\[{])
    | (?P<CLOSE>[)\]}])
    | (?P<OPERATOR>\|>|=>|<-|=~|!~|[=!<>]=|[-+*%^=<>:,.?])
    | (?P<STRAY>.)
    | (?P<end>))
    """,
    re.VERBOSE | re.DOTALL,
)
# A dollar consumes the next character, as in Flux: in "$\" the backslash is no escape and the string ends.
_TEXT = re.compile(r'(?:[^"\\$]++|\\.|\$[^{"])*(?:\$(?="))?', re.DOTALL)
_REGEX = re.compile(r"/(?:[^/\\]++|\\.)+/", re.DOTALL)

_KINDS = {kind.name: kind for kind in TokenKind if kind.name in _TOKEN.groupindex}
_OPENING = frozenset([TokenKind.OPEN, TokenKind.TEXT_OPEN, TokenKind.TEXT_MIDDLE])
_CLOSING = frozenset([TokenKind.CLOSE, TokenKind.TEXT_CLOSE, TokenKind.TEXT_MIDDLE])


def scan(text: str) -> list[Token]:
    """
    Split a script into tokens with white space between them.

    Any text is accepted: unclosed strings, regular expressions and brackets end with the text, and a closing bracket
    closes the innermost one of any type. The time is linear in the length of the text.
    """
    tokens: list[Token] = []
    interpolations: list[bool] = []  # for each open bracket whether it opens an interpolation
    position, after_operand = 0, False
    while match := _TOKEN.match(text, position):
        group = match.lastgroup or "end"
        start, position = match.span(group)
        kind = _KINDS.get(group)
        if kind is None:
            if group == "end":
                break
            if group == "quote":
                kind, position = _text(text, position, TokenKind.TEXT, TokenKind.TEXT_OPEN)
            else:
                kind, position = (TokenKind.OPERATOR, position) if after_operand else _regex(text, start)
        elif kind is TokenKind.CLOSE and interpolations and interpolations[-1]:
            kind = TokenKind.STRAY
            if text[start] == "}":
                kind, position = _text(text, position, TokenKind.TEXT_CLOSE, TokenKind.TEXT_MIDDLE)
        if kind in _CLOSING and interpolations:
            interpolations.pop()
        tokens.append(Token(kind, start, text[start:position], len(interpolations)))
        if kind in _OPENING:
            interpolations.append(kind is not TokenKind.OPEN)
        if kind is not TokenKind.COMMENT:
            after_operand = kind in END_OF_OPERAND
    return tokens


def _text(text: str, position: int, closed: TokenKind, interpolated: TokenKind) -> tuple[TokenKind, int]:
    """Kind and end of the part of a string that continues at *position*."""
    match = _TEXT.match(text, position)
    assert match is not None  # noqa: S101 - it also matches the empty text
    end = match.end()
    if text.startswith('"', end):
        return closed, end + 1
    if text.startswith("${", end):
        return interpolated, end + 2
    return TokenKind.UNFINISHED, len(text)


def _regex(text: str, start: int) -> tuple[TokenKind, int]:
    """Kind and end of the regular expression that begins at *start*."""
    match = _REGEX.match(text, start)
    return (TokenKind.REGEX, match.end()) if match else (TokenKind.UNFINISHED, len(text))
