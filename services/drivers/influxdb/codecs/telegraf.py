"""Telegraf configurations."""

import tomllib
from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, is_unset
from services.drivers.influxdb.codecs.normal import named, normalised

_KIND = "Telegraf"


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    return named(_KIND, content)


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    texts = {key: spec[key] for key in ("name", "description", "config")}
    # With explicit buckets the server does not parse the configuration, which may fail.
    metadata = {"buckets": _buckets(spec["config"])} | (_own_metadata(live) if live else {})
    return {**texts, "metadata": metadata}


def _read(live: Body) -> dict[str, Any]:
    return normalised(_KIND, {key: live.get(key) or "" for key in ("name", "description", "config")})


def _unexpressed(live: Body) -> list[str]:
    return [f"metadata.{key}" for key, value in _own_metadata(live).items() if not is_unset(value)]


def _own_metadata(live: Body) -> dict[str, Any]:
    """The metadata that a user wrote: without ``buckets`` if these are the buckets of the configuration."""
    metadata = dict(live.get("metadata") or {})
    if (metadata.get("buckets") or []) == _buckets(live.get("config") or ""):
        metadata.pop("buckets", None)
    return metadata


def _buckets(config: str) -> list[str]:
    """The buckets that a configuration writes to, as the server would find them; none if it is not TOML."""
    try:
        outputs = tomllib.loads(config).get("outputs")
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    written = outputs.get("influxdb_v2") if isinstance(outputs, dict) else None
    entries = [written] if isinstance(written, dict) else written if isinstance(written, list) else []
    buckets = [entry.get("bucket") for entry in entries if isinstance(entry, dict)]
    return [bucket for bucket in buckets if isinstance(bucket, str)]


CODEC = Codec(_KIND, "telegrafs", _prepare, _write, _read, replaces=True, unexpressed=_unexpressed)
