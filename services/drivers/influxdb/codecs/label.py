"""Labels."""

from typing import Any

from services.core.model import LABEL
from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References
from services.drivers.influxdb.codecs.normal import named, normalised
from services.drivers.influxdb.codecs.texts import trimmed


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    # The server trims names, so it would store a name of white space as an empty one.
    return named(LABEL, {**content, "name": trimmed(str(content["name"]))})


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    properties = {key: spec[key] for key in ("color", "description")}
    if live is None:
        properties = {key: text for key, text in properties.items() if text}
    # A PATCH merges, and removes properties with an empty value; other properties stay.
    return {"name": spec["name"], "properties": properties}


def _read(live: Body) -> dict[str, Any]:
    properties = live.get("properties") or {}
    return normalised(LABEL, {**properties, "name": live["name"]})


def _unexpressed(live: Body) -> list[str]:
    return [f"properties.{key}" for key in sorted(live.get("properties") or {}) if key not in ("color", "description")]


CODEC = Codec(LABEL, "labels", _prepare, _write, _read, unexpressed=_unexpressed)
