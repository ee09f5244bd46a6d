"""Slack endpoints (docs/reference/package-format.md, "Notification endpoints")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.field_table import Table
from services.kinds.format.fields import Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.influxdb import endpoint
from services.kinds.influxdb.endpoint import SecretField

_TOKEN = SecretField("token", "Token of the Slack app, for addresses that need one")

_FIELDS = Table(*endpoint.FIELDS, _TOKEN.field(), required=endpoint.REQUIRED)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    return endpoint.read(fields, scope, _FIELDS, (_TOKEN,), [])


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    further = {"url": spec["url"], "token": endpoint.shown(spec["token"])}
    return endpoint.summarise(spec, number, "slack", further)


KIND = endpoint.kind(
    "NotificationEndpointSlack",
    "A Slack channel or workflow that notification rules send to.",
    _FIELDS,
    _read,
    _summarise,
)
