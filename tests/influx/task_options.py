"""``option task`` of a script: its allowed content, and how a PATCH writes into it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.influx import durations, flux
from tests.influx.problem import Problem

_CRON_WORDS = {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}
_CRON_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_CRON_NAMES = re.compile(r"(?i)sun|mon|tue|wed|thu|fri|sat|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec")
_CRON_PART = re.compile(r"(?:\*|\?|(\d+)(?:-(\d+))?)(?:/(\d+))?")


@dataclass(frozen=True, slots=True)
class TaskOptions:
    """
    The values that the server reads from ``option task``.

    Attributes:
        every: As in the script, "" when there is a ``cron``.
        offset: In seconds.
    """

    name: str
    every: str
    cron: str
    offset: int


def task_options(script: str) -> TaskOptions:
    """
    The options of a script.

    Raises:
        flux.FluxError: The script has a syntax error.
    """
    found = flux.properties(_record(script))
    if "name" not in found:
        raise _invalid("missing required option: name")
    if not flux.is_text(found["name"]):
        raise _invalid("failed to parse field 'name' in task options")
    name = flux.unquoted(found["name"][0].text)
    if not name:
        raise _invalid("name required")
    if "every" in found and "cron" in found:
        raise _invalid("cannot use both cron and every in task options")
    if "every" not in found and "cron" not in found:
        raise _invalid("missing required option: cron or every")
    every = _every(found["every"]) if "every" in found else ""
    cron = _cron(found["cron"]) if "cron" in found else ""
    offset = _offset(found["offset"]) if "offset" in found else 0
    for key, most in (("concurrency", 100), ("retry", 10)):
        if key in found:
            _check_whole(key, found[key], most)
    return TaskOptions(name, every, cron, offset)


def rewritten(script: str, changes: Mapping[str, str]) -> str:
    """The script with other literals in its option; ``every`` and ``cron`` replace each other."""
    record = _record(script)
    found = flux.properties(record)
    written = {key: script[value[0].start : value[-1].end] for key, value in found.items()}
    for key, value in changes.items():
        other = {"every": "cron", "cron": "every"}.get(key)
        if other in written:
            written = {key if known == other else known: kept for known, kept in written.items()}
        written[key] = value
    text = ", ".join(f"{key}: {value}" for key, value in written.items())
    return f"{script[: record[0].start]}{{{text}}}{script[record[-1].end :]}"


def _record(script: str) -> Sequence[flux.Token]:
    records = list(flux.records(flux.tokens(script), "option", "task", "="))
    if not records:
        raise _invalid("no task options defined")
    if len(records) > 1:
        raise _invalid("multiple task options defined")
    return records[0]


def _invalid(reason: str) -> Problem:
    return Problem("invalid", f"invalid options: {reason}")


def _every(value: Sequence[flux.Token]) -> str:
    if [token.kind for token in value] != ["duration"]:
        raise _invalid("failed to parse field 'every' in task options")
    text = value[0].text
    length = durations.nanoseconds(text) or 0
    if length == 0:
        raise _invalid("must specify exactly one of either cron or every")
    if length < durations.SECOND:
        raise _invalid("every option must be at least 1 second")
    if length % durations.SECOND:
        raise _invalid("every option must be expressible as whole seconds")
    return text


def _cron(value: Sequence[flux.Token]) -> str:
    if not flux.is_text(value):
        raise _invalid("failed to parse field 'cron' in task options")
    text = flux.unquoted(value[0].text)
    if text in _CRON_WORDS:
        return text
    if text.startswith("@every ") and durations.nanoseconds(text.removeprefix("@every ")):
        return text
    parts = text.split()
    if len(parts) != 5 or not all(map(_is_cron_field, parts, _CRON_RANGES)):
        raise _invalid(f"cron invalid: failed to parse cron string '{text}'")
    return text


def _is_cron_field(text: str, bounds: tuple[int, int]) -> bool:
    for part in _CRON_NAMES.sub("1", text).split(","):
        match = _CRON_PART.fullmatch(part)
        if match is None or any(not bounds[0] <= int(number) <= bounds[1] for number in match.groups()[:2] if number):
            return False
    return True


def _offset(value: Sequence[flux.Token]) -> int:
    sign = -1 if value and value[0].text == "-" else 1
    rest = value[1:] if sign < 0 else value
    if [token.kind for token in rest] != ["duration"]:
        raise _invalid("failed to parse field 'offset' in task options")
    text = rest[0].text
    if durations.has_calendar_units(text):
        raise Problem("internal error", f'unexpected error parsing time: time: unknown unit in duration "{text}"')
    length = durations.nanoseconds(text) or 0
    if length % durations.SECOND:
        raise _invalid("offset option must be expressible as whole seconds")
    return sign * length // durations.SECOND


def _check_whole(key: str, value: Sequence[flux.Token], most: int) -> None:
    if [token.kind for token in value] != ["number"] or not value[0].text.isdigit():
        raise _invalid(f"failed to parse field '{key}' in task options")
    number = int(value[0].text)
    if number < 1:
        raise _invalid(f"{key} must be at least 1")
    if number > most:
        raise _invalid(f"{key} exceeded max of {most}")
