"""Threshold checks and deadman checks."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused, is_unset
from services.drivers.influxdb.codecs.normal import (
    named,
    normalised,
    refuse_interpolation,
    refuse_negative,
    refuse_open_interpolation,
    refuse_schedule,
)
from services.drivers.influxdb.codecs.scripts import compared_fields, is_identifier, refuse_faulty

THRESHOLD, DEADMAN = "CheckThreshold", "CheckDeadman"

KINDS_BY_TYPE = {"threshold": THRESHOLD, "deadman": DEADMAN}
"""The kinds of checks by their ``type`` in the API; packages have no kind for type ``custom``."""

_TYPES = {kind: type_ for type_, kind in KINDS_BY_TYPE.items()}

_TEXTS = ("name", "description", "every", "status", "statusMessageTemplate")
_LENGTHS = ("staleTime", "timeSince")
_RANGES = {True: "inside_range", False: "outside_range"}
_QUERY_UNKNOWN_TO_SPECS = ("editMode", "name", "builderConfig")
_ADVANCED = "advanced"


def _prepare(content: Content, _references: References, kind: str) -> dict[str, Any]:
    spec = named(kind, content)
    refuse_interpolation(kind, spec["name"])
    refuse_schedule(kind, spec)
    refuse_open_interpolation(kind, "statusMessageTemplate", spec["statusMessageTemplate"])
    refuse_faulty(kind, spec["query"])
    for tag in spec["tags"]:
        if not tag["value"] or not is_identifier(tag["key"]):
            raise Refused(
                f"a tag of a {kind} needs a value, and a key that is a name in Flux, such as team_a; found"
                f" {tag['key'][:40]!r}"
            )
    if kind == THRESHOLD and len(fields := compared_fields(spec["query"])) != 1:
        raise Refused(
            f'the query of a {kind} must select one field: it needs r._field == "NAME" once; found it'
            f" {len(fields)} times"
        )
    for key in _LENGTHS if kind == DEADMAN else ():
        refuse_negative(kind, spec, key)
    return spec


def _write(spec: Content, _references: References, live: Body | None, kind: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": _TYPES[kind],
        **{key: spec[key] for key in _TEXTS},
        "query": _query(spec["query"], live),
        "tags": spec["tags"],
    }
    # The server refuses an empty offset.
    body |= {"offset": spec["offset"]} if spec["offset"] else {}
    if kind == THRESHOLD:
        return {**body, "thresholds": [_threshold(threshold) for threshold in spec["thresholds"]]}
    # The server fails with an internal error if they are missing.
    lengths = {key: spec[key] or "0s" for key in _LENGTHS}
    return {**body, **lengths, "level": spec["level"], "reportZero": spec["reportZero"]}


def _read(live: Body, kind: str) -> dict[str, Any]:
    content = {key: live.get(key) or "" for key in (*_TEXTS, "offset")}
    content |= {"query": (live.get("query") or {}).get("text") or "", "tags": live.get("tags") or []}
    if kind == THRESHOLD:
        thresholds = [_read_threshold(threshold) for threshold in live.get("thresholds") or ()]
        return normalised(kind, {**content, "thresholds": thresholds})
    content |= {key: live.get(key) or "" for key in _LENGTHS}
    return normalised(kind, {**content, "level": live.get("level") or "", "reportZero": bool(live.get("reportZero"))})


def _query(text: str, live: Body | None) -> dict[str, Any]:
    """The query; while its text is unchanged, also the settings of the query builder."""
    query = (live or {}).get("query") or {}
    if _text(query) == text:
        return {key: query[key] for key in ("text", *_QUERY_UNKNOWN_TO_SPECS) if key in query}
    return {"text": text, "editMode": _ADVANCED}


def _unexpressed(live: Body) -> list[str]:
    query = live.get("query") or {}
    # A query without a builder has the mode that the driver writes.
    shown = {key: query.get(key) for key in _QUERY_UNKNOWN_TO_SPECS if query.get(key) != _ADVANCED}
    return [f"query.{key}" for key, value in shown.items() if not is_unset(value)]


def _resets(spec: Content, live: Body) -> list[str]:
    is_changed = _text(live.get("query") or {}) != spec["query"]
    return [f"{field}, as the query changes" for field in _unexpressed(live)] if is_changed else []


def _text(query: Mapping[str, Any]) -> str:
    """The text of a query as specs have it."""
    return (query.get("text") or "").strip()


def _threshold(threshold: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"level": threshold["level"], "allValues": threshold["allValues"]}
    for within, type_ in _RANGES.items():
        if threshold["type"] == type_:
            return {**shown, "type": "range", "min": threshold["min"], "max": threshold["max"], "within": within}
    return {**shown, "type": threshold["type"], "value": threshold["value"]}


def _read_threshold(threshold: Mapping[str, Any]) -> dict[str, Any]:
    shown = {"level": threshold.get("level") or "", "allValues": bool(threshold.get("allValues"))}
    if threshold["type"] == "range":
        # The server leaves out a bound that is 0.
        ends = {key: threshold.get(key) or 0 for key in ("min", "max")}
        return {**shown, **ends, "type": _RANGES[bool(threshold.get("within"))]}
    return {**shown, "type": threshold["type"], "value": threshold.get("value") or 0}


CODECS = tuple(
    Codec(
        kind,
        "checks",
        partial(_prepare, kind=kind),
        partial(_write, kind=kind),
        partial(_read, kind=kind),
        replaces=True,
        unexpressed=_unexpressed,
        resets=_resets,
    )
    for kind in _TYPES
)
