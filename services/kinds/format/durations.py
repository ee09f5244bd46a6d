"""Durations as packages write them and as summaries print them (docs/reference/package-format.md, "Durations")."""

import re

_NANOSECONDS = {"w": 604_800_000_000_000, "d": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000}
_NANOSECONDS |= {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "µs": 1_000, "ns": 1}

_PART = r"0*([0-9]{1,19})(y|mo|w|d|h|ms|m|s|us|µs|ns)"
_DURATION = re.compile(rf"-?(?:{_PART})*")
_PARTS = re.compile(_PART)

_CALENDAR_PART = re.compile(r"[1-9][0-9]*(?:y|mo)")

_GO_PART = r"(?:0*([0-9]{1,19})(?:\.([0-9]*))?|\.([0-9]+))(h|ms|m|s|us|µs|μs|ns)"
_GO_DURATION = re.compile(rf"[-+]?(?:0|(?:{_GO_PART})+)")
_GO_PARTS = re.compile(_GO_PART)
_FRACTION_DIGITS = 19
"""Digits after the point that can make a difference: an hour has fewer nanoseconds."""

_SECOND, _MINUTE, _HOUR = _NANOSECONDS["s"], _NANOSECONDS["m"], _NANOSECONDS["h"]


def parse_duration(text: str) -> int | None:
    """
    Nanoseconds of a duration such as ``1h30m``; 0 for the empty text.

    Months are 365.25/12/7 weeks, years twelve months, both in whole weeks.

    Returns:
        None when *text* is no duration, or one beyond 64 bits.
    """
    if not _DURATION.fullmatch(text):
        return None
    total = sum(_length(int(digits), unit) for digits, unit in _PARTS.findall(text))
    if total >= 2**63:
        return None
    return -total if text.startswith("-") else total


def parse_go_duration(text: str) -> int | None:
    """
    Nanoseconds of a duration as Go reads it: decimals with ``h m s ms us ns`` and a sign before all, such as ``1.5h``.

    Returns:
        None when *text* is no such duration, or one beyond 64 bits. ``1d`` is none.
    """
    if not _GO_DURATION.fullmatch(text):
        return None
    total = 0
    for whole, fraction, bare_fraction, unit in _GO_PARTS.findall(text):
        length = _NANOSECONDS["us" if unit == "μs" else unit]
        digits = (fraction or bare_fraction)[:_FRACTION_DIGITS]
        total += int(whole or 0) * length + int(digits or 0) * length // 10 ** len(digits)
    total = -total if text.startswith("-") else total
    return total if -(2**63) <= total < 2**63 else None


def flux_duration(text: str) -> str | None:
    """
    The duration *text* as Flux writes it, with the units it has: ``007d`` is ``7d``.

    Returns:
        None when *text* is no duration, or has no number.
    """
    parts = _PARTS.findall(text)
    if not parts or parse_duration(text) is None:
        return None
    sign = "-" if text.startswith("-") else ""
    return sign + "".join(f"{int(digits)}{unit.replace('µ', 'u')}" for digits, unit in parts)


def calendar_duration(text: str) -> str | None:
    """
    The duration *text* as Flux writes it, if it has months or years, which differ in length.

    Returns:
        Such as ``1mo`` or ``1y6mo``; None when *text* has neither, or is no duration.
    """
    written = flux_duration(text)
    return written if written and _CALENDAR_PART.search(written) else None


def canonical_duration(nanoseconds: int) -> str:
    """
    The form of a duration in specs: the form of Go, but without fractions, which packages cannot write.

    Returns:
        Such as ``1h30m0s`` or ``1s500ms``; empty for 0.
    """
    if nanoseconds == 0:
        return ""
    whole, rest = divmod(abs(nanoseconds), _SECOND)
    text = _clock(whole) if whole else ""
    for unit in ("ms", "us", "ns"):
        count, rest = divmod(rest, _NANOSECONDS[unit])
        text += f"{count}{unit}" if count else ""
    return f"-{text}" if nanoseconds < 0 else text


def schedule_duration(text: str) -> str:
    """The form of a duration in specs where months and years are kept as such; empty for zero, and for no duration."""
    return calendar_duration(text) or canonical_duration(parse_duration(text) or 0)


def go_duration(nanoseconds: int) -> str:
    """A duration as Go prints it: ``0s``, ``1.5ms``, ``1h30m0s``, ``1.5s``."""
    if nanoseconds == 0:
        return "0s"
    sign, size = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if size < _SECOND:
        unit = "ns" if size < 1_000 else "µs" if size < 1_000_000 else "ms"
        return f"{sign}{_decimal(size, _NANOSECONDS[unit])}{unit}"
    whole, rest = divmod(size, _SECOND)
    if not rest:
        return sign + _clock(whole)
    # Only the seconds carry the fraction; they are the last number of the clock.
    head, seconds = re.fullmatch(r"(.*?)(\d+)s", _clock(whole)).groups()  # type: ignore[union-attr]
    return f"{sign}{head}{_decimal(int(seconds) * _SECOND + rest, _SECOND)}s"


def _length(count: int, unit: str) -> int:
    if unit in ("mo", "y"):
        months = count * (12 if unit == "y" else 1)
        return months * 36525 // (12 * 7 * 100) * _NANOSECONDS["w"]
    return count * _NANOSECONDS[unit]


def _clock(seconds: int) -> str:
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minute}m{second}s"
    return f"{minute}m{second}s" if minute else f"{second}s"


def _decimal(count: int, unit: int) -> str:
    """``count / unit`` as an exact decimal; *unit* is a power of ten."""
    whole, rest = divmod(count, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}"
