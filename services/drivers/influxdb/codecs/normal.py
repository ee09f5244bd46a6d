"""Normalises the content that was read as the parser does, and has the refusals that several kinds share."""

from typing import Any

from services.drivers.influxdb.codecs.codec import Content, Refused
from services.kinds.format.durations import parse_duration
from services.kinds.format.fields import Fields
from services.kinds.format.kind import Scope
from services.kinds.registry import KINDS

_SECOND = 10**9


def normalised(kind: str, content: Content) -> dict[str, Any]:
    """*content* as the parser would normalise it: all fields of the kind, and no others."""
    name = str(content.get("name") or "")
    return KINDS[kind].read(Fields(content, "spec", ("spec",)), Scope(name, name)).spec


def named(kind: str, content: Content) -> dict[str, Any]:
    """
    *content*, normalised; it must have a name.

    Raises:
        Refused: It has no name.
    """
    spec = normalised(kind, content)
    if not spec["name"]:
        raise Refused(f"a {kind} needs a name that is not empty")
    return spec


def refuse_interpolation(kind: str, name: str) -> None:
    """
    Refuse a name that the server would write into a script as an interpolation.

    Raises:
        Refused: The name has one.
    """
    if "${" in name:
        raise Refused(f"the name of a {kind} cannot have ${{ in it; choose a name other than {name[:80]!r}")


def refuse_schedule(kind: str, spec: Content) -> None:
    """
    Refuse a schedule of a check or rule that the server does not accept.

    Raises:
        Refused: ``every`` is not of whole seconds, or ``offset`` is negative or not below it.
    """
    every, offset = parse_duration(spec["every"]) or 0, parse_duration(spec["offset"]) or 0
    if every < _SECOND or every % _SECOND:
        raise Refused(f"every of a {kind} must be whole seconds, 1s at least; found {spec['every']!r}")
    if offset < 0 or offset >= every:
        raise Refused(f"offset of a {kind} must be from 0s to less than every; found {spec['offset']!r}")


def refuse_parts_of_seconds(kind: str, spec: Content, key: str) -> None:
    """
    Refuse a duration at *key* that is not in whole seconds.

    Raises:
        Refused: It is not.
    """
    if (parse_duration(spec[key]) or 0) % _SECOND:
        raise Refused(f"{key} of a {kind} must be whole seconds; found {spec[key]!r}")


def refuse_negative(kind: str, spec: Content, key: str) -> None:
    """
    Refuse a negative duration at *key*.

    Raises:
        Refused: It is negative.
    """
    if (parse_duration(spec[key]) or 0) < 0:
        raise Refused(f"{key} of a {kind} cannot be negative; found {spec[key]!r}")


def refuse_open_interpolation(kind: str, key: str, template: str) -> None:
    """
    Refuse a message template with an unclosed interpolation.

    Raises:
        Refused: There is one.
    """
    rest = template
    while "${" in rest:
        rest = rest.partition("${")[2]
        if "}" not in rest:
            raise Refused(f"a ${{ in {key} of a {kind} is not closed; write }} after it")
        rest = rest.partition("}")[2]
