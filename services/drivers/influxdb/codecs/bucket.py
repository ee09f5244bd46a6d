"""Buckets."""

from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused
from services.drivers.influxdb.codecs.normal import named, normalised

_KIND = "Bucket"

_LONGEST_RETENTION = 9_223_372_036
"""Seconds: the server counts nanoseconds in 64 bits."""

_SHARD_FIELD = "retentionRules[0].shardGroupDurationSeconds"

_SHARDS = ((15_552_000, 604_800), (172_800, 86_400), (0, 3_600))
"""Pairs of least retention and the shard length that the server chooses for it, in seconds."""


def _prepare(content: Content, _references: References) -> dict[str, Any]:
    spec = named(_KIND, content)
    name = spec["name"]
    if name.startswith("_"):
        raise Refused(
            f"bucket names that start with an underscore are reserved for the system; choose a name other than"
            f" {name[:80]!r}"
        )
    if '"' in name:
        raise Refused(f"the name of a bucket cannot have a double quote in it; choose a name other than {name[:80]!r}")
    for rule in spec["retentionRules"]:
        if not 3600 <= rule["everySeconds"] <= _LONGEST_RETENTION:
            raise Refused(
                f"a bucket keeps points for 3600 to {_LONGEST_RETENTION} seconds; found {rule['everySeconds']}"
            )
    if spec["schemaType"] not in {"", "implicit"}:
        raise Refused(f"this platform has no schemas of type {spec['schemaType'][:40]!r}; write implicit")
    if spec["measurementSchemas"]:
        raise Refused("this platform has no measurement schemas; leave measurementSchemas out")
    return {**spec, "schemaType": ""}


def _write(spec: Content, _references: References, live: Body | None) -> dict[str, Any]:
    seconds = _seconds(spec)
    rule = {"type": "expire", "everySeconds": seconds}
    # The server does not choose the shards for a new retention, and refuses shards longer than it.
    if live is not None and _seconds(_read(live)) != seconds:
        chosen = _chosen_shard(live)
        rule["shardGroupDurationSeconds"] = chosen if chosen and _fits(chosen, seconds) else _shard(seconds)
    return {"name": spec["name"], "description": spec["description"], "retentionRules": [rule]}


def _read(live: Body) -> dict[str, Any]:
    rules = [
        {"type": "expire", "everySeconds": rule["everySeconds"]}
        for rule in live.get("retentionRules") or ()
        if rule.get("everySeconds")
    ]
    texts = {"name": live["name"], "description": live.get("description") or ""}
    return normalised(_KIND, {**texts, "retentionRules": rules})


def _unexpressed(live: Body) -> list[str]:
    return [*([_SHARD_FIELD] if _chosen_shard(live) else []), *(["rp"] if live.get("rp") else [])]


def _resets(spec: Content, live: Body) -> list[str]:
    chosen, seconds = _chosen_shard(live), _seconds(spec)
    return [f"{_SHARD_FIELD}: {chosen} -> {_shard(seconds)}"] if chosen and not _fits(chosen, seconds) else []


def _chosen_shard(live: Body) -> int:
    """The shard length that a user chose; 0: it is the one that the server chooses for the retention."""
    rule: Body = next(iter(live.get("retentionRules") or ()), {})
    shard: int = rule.get("shardGroupDurationSeconds") or 0
    return shard if shard != _shard(rule.get("everySeconds") or 0) else 0


def _fits(shard: int, seconds: int) -> bool:
    return not seconds or shard <= seconds


def _seconds(spec: Content) -> int:
    """How long points are kept; 0: without end."""
    return next((rule["everySeconds"] for rule in spec["retentionRules"]), 0)


def _shard(seconds: int) -> int:
    return next(shard for least, shard in _SHARDS if (seconds or _LONGEST_RETENTION) >= least)


CODEC = Codec(_KIND, "buckets", _prepare, _write, _read, unexpressed=_unexpressed, resets=_resets)
