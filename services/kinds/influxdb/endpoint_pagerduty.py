"""PagerDuty endpoints (docs/reference/package-format.md, "Notification endpoints")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.field_table import Table
from services.kinds.format.fields import Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.influxdb import endpoint
from services.kinds.influxdb.endpoint import SecretField

_ROUTING_KEY = SecretField("routingKey", "Routing key of the PagerDuty service")

_FIELDS = Table(*endpoint.FIELDS, _ROUTING_KEY.field(), required=(*endpoint.REQUIRED, _ROUTING_KEY.key))


def _read(fields: Fields, scope: Scope) -> ReadResult:
    faults = _ROUTING_KEY.fault(fields, "a PagerDuty endpoint")
    return endpoint.read(fields, scope, _FIELDS, (_ROUTING_KEY,), faults)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    further = {"clientURL": spec["url"], "routingKey": endpoint.shown(spec["routingKey"])}
    return endpoint.summarise(spec, number, "pagerduty", further)


KIND = endpoint.kind(
    "NotificationEndpointPagerDuty", "A PagerDuty service that notification rules send to.", _FIELDS, _read, _summarise
)
