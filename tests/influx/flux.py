"""
The part of Flux that the server checks: brackets, texts and their interpolations, ``option task``.

This is no parser. An error that it finds is one; but it accepts some scripts that the server refuses.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

DURATION = re.compile(r"(?:\d+(?:mo|ms|us|µs|ns|[ywdhms]))+")
KEYWORDS = frozenset(
    {"and", "or", "not", "import", "package", "return", "option", "if", "then", "else", "exists", "in"}
)

_PLAIN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>//[^\n]*)
    |(?P<time>\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d))?)
    |(?P<duration>(?:\d+(?:mo|ms|us|µs|ns|[ywdhms]))+(?!\w))
    |(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<word>[^\W\d]\w*)
    |(?P<operator>\|>|<-|=>|==|!=|<=|>=|=~|!~|[-+*/%^<>=,:.?;|@])""",
    re.VERBOSE,
)
_REGEX = re.compile(r"/(?![/*])(?:\\.|[^\\/\n])+/")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_NEEDS_OPERAND = frozenset(
    {"|>", "=>", "==", "!=", "<=", ">=", "=~", "!~", "+", "-", "*", "/", "%", "^", "<", ">", "=", "."}
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "$": "$"}


class FluxError(Exception):
    """The script has a syntax error."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a script, with its position and the number of brackets around it."""

    kind: str
    text: str
    start: int
    depth: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokens(script: str) -> list[Token]:
    """The tokens of a script, without white space and comments."""
    found, _ = _tokens(script, 0, "")
    for token, after in zip_longest(found, found[1:]):
        is_end = after is None or (after.kind == "bracket" and after.text in ")]}")
        if token.kind == "operator" and token.text in _NEEDS_OPERAND and is_end:
            raise FluxError(f"expected an expression after {token.text!r}")
    return found


def _tokens(script: str, place: int, closing: str) -> tuple[list[Token], int]:
    """The tokens up to the bracket that closes the open one, or to the end of the script."""
    found: list[Token] = []
    open_: list[str] = []
    while place < len(script):
        letter = script[place]
        if letter == closing and not open_:
            return found, place
        token = _token(script, place, len(open_), found)
        if token.kind == "bracket":
            if letter in _PAIRS:
                open_.append(_PAIRS[letter])
            elif not open_ or open_.pop() != letter:
                raise FluxError(f"unexpected {letter!r}")
            else:
                token = Token("bracket", letter, place, len(open_))
        if token.kind not in {"space", "comment"}:
            found.append(token)
        place = token.end
    if open_ or closing:
        raise FluxError(f"expected {(open_ or [closing])[-1]!r}, got the end")
    return found, place


def _token(script: str, place: int, depth: int, before: Sequence[Token]) -> Token:
    letter = script[place]
    if letter == '"':
        return Token("text", script[place : _end_of_text(script, place)], place, depth)
    if letter in "()[]{}":
        return Token("bracket", letter, place, depth)
    is_operand = before and (
        before[-1].kind in {"text", "regex", "time", "duration", "number"}
        or before[-1].text in {")", "]", "}"}
        or (before[-1].kind == "word" and before[-1].text not in KEYWORDS)
    )
    match = None if is_operand or letter != "/" else _REGEX.match(script, place)
    if match:
        return Token("regex", match[0], place, depth)
    match = _PLAIN.match(script, place)
    if match is None:
        raise FluxError(f"unexpected {letter!r}")
    return Token(match.lastgroup or "", match[0], place, depth)


def _end_of_text(script: str, start: int) -> int:
    place = start + 1
    while place < len(script):
        if script[place] == "\\":
            place += 2
        elif script.startswith("${", place):
            inner, place = _tokens(script, place + 2, "}")
            if not inner:
                raise FluxError("an interpolation is empty")
            place += 1
        elif script[place] == '"':
            return place + 1
        else:
            place += 1
    raise FluxError("a text does not end")


def unquoted(text: str) -> str:
    """The value of a text literal."""
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", _unescaped, text[1:-1], flags=re.DOTALL)


def quoted(value: str) -> str:
    """A text literal with this value; interpolations are not escaped, as in the server."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1][1:], 16)) if len(match[1]) == 3 else _ESCAPES.get(match[1], match[1])


def is_text(value: Sequence[Token]) -> bool:
    """Whether this is one text without interpolations."""
    return len(value) == 1 and value[0].kind == "text" and "${" not in value[0].text.replace("\\$", "")


def records(script: Sequence[Token], *beginning: str) -> Iterator[list[Token]]:
    """The records, brackets included, that follow this sequence at the top level, as in ``option task = {...}``."""
    size = len(beginning)
    for place in range(len(script) - size):
        here = script[place : place + size]
        if here[0].depth == 0 and tuple(token.text for token in here) == beginning and script[place + size].text == "{":
            depth = script[place + size].depth
            end = next(
                i for i, token in enumerate(script[place + size :]) if token.text == "}" and token.depth == depth
            )
            yield list(script[place + size : place + size + end + 1])


def properties(record: Sequence[Token]) -> dict[str, list[Token]]:
    """The values of a record by key."""
    found: dict[str, list[Token]] = {}
    depth = record[0].depth + 1
    key = ""
    value: list[Token] = []
    for token in [*record[1:-1], Token("operator", ",", record[-1].start, depth)]:
        if token.depth == depth and token.text == "," and token.kind == "operator":
            if key:
                found[key] = value
            key, value = "", []
        elif token.depth == depth and token.text == ":" and not key and len(value) == 1:
            key, value = unquoted(value[0].text) if value[0].kind == "text" else value[0].text, []
        else:
            value.append(token)
    return found


def fields(script: Sequence[Token]) -> list[str]:
    """The names to which a script compares ``_field`` of ``r``."""
    found = []
    for place, token in enumerate(script):
        if token.text != "r" or token.kind != "word":
            continue
        after = [each.text for each in script[place + 1 : place + 6]]
        if after[:3] == [".", "_field", "=="]:
            value = script[place + 4 : place + 5]
        elif after[:4] == ["[", '"_field"', "]", "=="]:
            value = script[place + 5 : place + 6]
        else:
            continue
        if is_text(value):
            found.append(unquoted(value[0].text))
    return found


def is_identifier(name: str) -> bool:
    return re.fullmatch(r"[^\W\d]\w*", name) is not None and name not in KEYWORDS
