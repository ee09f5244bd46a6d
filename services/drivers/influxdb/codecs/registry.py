"""The codecs by kind, and the kind of a resource."""

from collections.abc import Mapping

from services.drivers.influxdb.codecs import (
    bucket,
    check,
    dashboard,
    endpoint,
    foreign,
    label,
    rule,
    task,
    telegraf,
    variable,
)
from services.drivers.influxdb.codecs.codec import Body, Codec

CODECS: Mapping[str, Codec] = {
    codec.kind: codec
    for codec in (
        label.CODEC,
        bucket.CODEC,
        variable.CODEC,
        *check.CODECS,
        *endpoint.CODECS,
        rule.CODEC,
        task.CODEC,
        telegraf.CODEC,
        dashboard.CODEC,
        *foreign.CODECS,
    )
}

_BY_TYPE = {
    "checks": {**check.KINDS_BY_TYPE, "custom": foreign.CUSTOM_CHECK},
    "notificationEndpoints": {**endpoint.KINDS_BY_TYPE, "telegram": foreign.TELEGRAM},
}

_ONLY = {codec.collection: codec.kind for codec in CODECS.values() if codec.collection not in _BY_TYPE}


def kind_of(collection: str, body: Body) -> str:
    """The kind of a resource of a *collection*; empty if it has none: one of an unknown type, a system bucket."""
    if collection in _BY_TYPE:
        return _BY_TYPE[collection].get(body.get("type", ""), "")
    if collection == "buckets" and body.get("type") == "system":
        return ""
    return _ONLY[collection]
