"""The values of literal expressions in option records (docs/reference/package-format.md, "Parameter types")."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from services.kinds.format.durations import calendar_duration, go_duration, parse_duration, schedule_duration
from services.kinds.influxdb.flux.scanner import Token, TokenKind

NOW = "now()"
"""The time of the query, in Flux and in packages."""


@dataclass(frozen=True, slots=True)
class Literal:
    """
    The value of an expression.

    Attributes:
        value_type: ``string``, ``integer``, ``float``, ``duration`` or ``time``. Empty if there is none: for an
            expression that only has a value, such as ``-5``, and for one that is no literal.
        value: A duration is its nanoseconds, a negative one its text, a time its RFC 3339 text. None: no value.
        duration: A duration, negative or not, as specs have it: in hours and below, or with its months and years.
    """

    value_type: str = ""
    value: str | int | float | None = None
    duration: str | None = None


NO_LITERAL = Literal()
"""An expression that is no literal."""


def read_literal(tokens: Sequence[Token]) -> Literal:
    """The literal of the expression *tokens*."""
    match tokens:
        case [token]:
            return _literal(token)
        case [minus, token] if minus.text == "-":
            return _negative(_literal(token))
        case [now, opening, closing] if (now.text, opening.text, closing.text) == ("now", "(", ")"):
            return Literal("", NOW)
        case _:
            return NO_LITERAL


def text_in(literal: str) -> str | None:
    """The text of a string *literal* with quotes; None when it has an invalid escape."""
    inner = literal[1:-1]
    if "\\" not in inner:
        return inner
    if not _ESCAPED.fullmatch(inner):
        return None
    return _ESCAPES.sub(lambda match: _unescaped(match.group()), inner)


def full_time(text: str) -> str | None:
    """
    The RFC 3339 text of a date, or of a time with an offset, without needless digits.

    Returns:
        Such as ``2020-01-01T00:00:00Z`` for ``2020-01-01``; None when *text* is no time that exists.
    """
    match = _TIME.fullmatch(text)
    if not match:
        return None
    day, clock, fraction, offset = match.groups()
    try:
        date.fromisoformat(day)
    except ValueError:
        return None
    digits = (fraction or "")[:_NANOSECOND_DIGITS].rstrip("0")
    zone = "Z" if offset in (None, "+00:00", "-00:00") else offset
    return f"{day}T{clock or '00:00:00'}{'.' if digits else ''}{digits}{zone}"


_ESCAPED = re.compile(r'(?:[^\\]++|\\(?:[nrt\\"]|\$\{|x[0-9a-fA-F]{2}))*')
_ESCAPES = re.compile(r"(?:\\x[0-9a-fA-F]{2})+|\\.", re.DOTALL)
_SIMPLE_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}

_MINUTES = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = re.compile(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T({_MINUTES}:[0-5][0-9])(?:\.([0-9]+))?(Z|[-+]{_MINUTES}))?")
_NANOSECOND_DIGITS = 9
_MAX_INTEGER_DIGITS = 19


def _literal(token: Token) -> Literal:
    match token.kind:
        case TokenKind.TEXT:
            text = text_in(token.text)
            return NO_LITERAL if text is None else Literal("string", text)
        case TokenKind.INTEGER:
            digits = token.text.lstrip("0") or "0"
            fits = len(digits) <= _MAX_INTEGER_DIGITS and int(digits) < 2**63
            return Literal("integer", int(digits)) if fits else NO_LITERAL
        case TokenKind.FLOAT:
            number = float(token.text)
            return Literal("float", number) if math.isfinite(number) else NO_LITERAL
        case TokenKind.DURATION:
            nanoseconds = parse_duration(token.text)
            duration = None if nanoseconds is None else schedule_duration(token.text) or "0s"
            return Literal("duration", nanoseconds, duration)
        case TokenKind.TIME:
            time = full_time(token.text)
            return NO_LITERAL if time is None else Literal("time", time)
        case _:
            return NO_LITERAL


def _negative(literal: Literal) -> Literal:
    """The negative of a literal: a value without a type (docs/reference/package-format.md, "Oddities", P16)."""
    if literal.duration is not None and isinstance(literal.value, int):
        negative = f"-{literal.duration}" if literal.value else literal.duration
        return Literal("", calendar_duration(negative) or go_duration(-literal.value), negative)
    if isinstance(literal.value, (int, float)):
        return Literal("", -literal.value)
    return NO_LITERAL


def _unescaped(escape: str) -> str:
    if escape.startswith("\\x"):
        return bytes.fromhex(escape.replace("\\x", "")).decode(errors="replace")
    return _SIMPLE_ESCAPES.get(escape, escape[1:])
