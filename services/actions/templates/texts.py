"""Functions on texts and times. No function makes a text that is longer than texts may be."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote

from services.actions.templates.errors import OperationError, TemplateCode
from services.actions.templates.values import check_length, utf8

_WHITE_SPACE = " \t\n\r\v\f"
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}

_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(?:[Zz]|[-+]00:00)",
    re.ASCII,
)
_MICROSECOND_DIGITS = 6

_TIME_PARTS: dict[str, Callable[[datetime], str]] = {
    "Y": lambda time: f"{time.year:04}",
    "m": lambda time: f"{time.month:02}",
    "d": lambda time: f"{time.day:02}",
    "H": lambda time: f"{time.hour:02}",
    "M": lambda time: f"{time.minute:02}",
    "S": lambda time: f"{time.second:02}",
    "f": lambda time: f"{time.microsecond:06}",
    "j": lambda time: f"{time.timetuple().tm_yday:03}",
    "%": lambda _: "%",
}
_TIME_PART = re.compile("%(.?)", re.DOTALL)


def trimmed(text: str) -> str:
    """*text* without white space of ASCII at its ends."""
    return text.strip(_WHITE_SPACE)


def upper_ascii(text: str) -> str:
    """*text* with the letters a to z as capitals."""
    return text.translate(_UPPER)


def lower_ascii(text: str) -> str:
    """*text* with the capitals A to Z as small letters."""
    return text.translate(_LOWER)


def replaced(text: str, old: str, new: str) -> str:
    """
    *text* with *new* in each place of *old*.

    Raises:
        OperationError: *old* is empty, or the result is too long; it is not made then.
    """
    if not old:
        raise OperationError(TemplateCode.VALUE, "replace needs a text that is not empty")
    check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


def separated(text: str, separator: str) -> list[str]:
    """
    The parts of *text* between the places of *separator*.

    Raises:
        OperationError: *separator* is empty.
    """
    if not separator:
        raise OperationError(TemplateCode.VALUE, "split needs a separator that is not empty")
    return text.split(separator)


def part_of(text: str, start: int, end: int | None = None) -> str:
    """
    The characters from *start* up to *end*, or to the last one.

    Raises:
        OperationError: *text* has no such positions, or *end* is before *start*.
    """
    last = len(text) if end is None else end
    if not 0 <= start <= last <= len(text):
        reason = f"the positions of this text are 0 to {len(text)}, and these are {start} and {last}"
        raise OperationError(TemplateCode.VALUE, reason)
    return text[start:last]


def url_encoded(text: str) -> str:
    """*text* in UTF-8, with ``%XX`` for all bytes but ``A-Za-z0-9-._~``."""
    return quote(utf8(text), safe="")


def formatted_time(text: str, layout: str) -> str:
    """
    A time in another form.

    Args:
        text: The time, in RFC 3339 and UTC. Digits beyond microseconds do not count.
        layout: The form, with ``%Y %m %d %H %M %S %f %j %%``.

    Raises:
        OperationError: *text* is no such time, *layout* has another ``%``, or the result is too long.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise _no_time()
    fraction = (match[3] or "").ljust(_MICROSECOND_DIGITS, "0")[:_MICROSECOND_DIGITS]
    try:
        time = datetime.fromisoformat(f"{match[1]}T{match[2]}.{fraction}").replace(tzinfo=UTC)
    except ValueError:
        raise _no_time() from None
    # A part has at most six characters, for two of the layout.
    check_length(3 * len(layout))

    def part(match: re.Match[str]) -> str:
        if match[1] not in _TIME_PARTS:
            reason = f"%{match[1]} is no part of a time; there are %Y %m %d %H %M %S %f %j %%"
            raise OperationError(TemplateCode.VALUE, reason)
        return _TIME_PARTS[match[1]](time)

    return _TIME_PART.sub(part, layout)


def _no_time() -> OperationError:
    return OperationError(TemplateCode.VALUE, "the text is no time in UTC such as 2026-11-22T10:05:00Z")
