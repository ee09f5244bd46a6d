"""Queries of checks and views, with the state of the query builder, which the server always adds."""

from collections.abc import Mapping
from typing import Any

from tests.influx import gojson


def _filled(shape: gojson.Shape) -> gojson.Shape:
    """A list that is empty when absent or null."""
    read = gojson.listing(shape)
    return lambda value: read(value) or []


_TAG = gojson.struct(key=gojson.text, values=_filled(gojson.text), aggregateFunctionType=gojson.text)

BUILDER = gojson.struct(
    buckets=_filled(gojson.text),
    tags=_filled(_TAG),
    functions=_filled(gojson.struct(name=gojson.text)),
    aggregateWindow=gojson.struct(period=gojson.text, fillValues=gojson.flag),
)

QUERY = gojson.struct(text=gojson.text, editMode=gojson.text, name=gojson.text, builderConfig=BUILDER)

LEVELS = ("UNKNOWN", "OK", "INFO", "WARN", "CRIT", "ANY")


def level(value: Any) -> str:
    """A level in upper case; an unknown one becomes ``UNKNOWN``."""
    sent = gojson.text(value).upper()
    return sent if sent in LEVELS else "UNKNOWN"


def typed(shapes: Mapping[str, gojson.Shape]) -> gojson.Shape:
    """The shape of the object's ``type``."""

    def read(value: Any) -> Any:
        name = _TYPE(value)["type"]
        if name not in shapes:
            raise gojson.BadJson(f"invalid type {name}")
        return shapes[name](value)

    return read


_TYPE = gojson.struct(type=gojson.text)
