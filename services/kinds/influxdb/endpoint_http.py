"""HTTP endpoints (docs/reference/package-format.md, "Notification endpoints")."""

from collections.abc import Mapping
from typing import Any

from services.kinds.format.field_table import Field, Table
from services.kinds.format.fields import Fault, Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.format.shapes import Fold, Text
from services.kinds.influxdb import endpoint
from services.kinds.influxdb.endpoint import SecretField

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
_TOKEN = SecretField("token", "Token of the type bearer")
_USERNAME = SecretField("username", "User of the type basic")
_PASSWORD = SecretField("password", "Password of the type basic")
_CREDENTIALS = {"none": (), "basic": (_PASSWORD, _USERNAME), "bearer": (_TOKEN,)}
"""The credentials that each type of authentication needs, in the order of the faults."""

_FIELDS = Table(
    *endpoint.FIELDS,
    Field("method", Text(words=_METHODS, fold=Fold.UPPER, required=True), "Method of the requests."),
    Field("type", Text(words=tuple(_CREDENTIALS), fold=Fold.LOWER, required=True), "How requests authenticate."),
    *(credential.field() for credential in (_TOKEN, _USERNAME, _PASSWORD)),
    required=(*endpoint.REQUIRED, "method", "type"),
)


def _read(fields: Fields, scope: Scope) -> ReadResult:
    values = _FIELDS.read(fields.value)
    faults: list[Fault] = _FIELDS.field_faults(fields, values, "method")
    for credential in _CREDENTIALS.get(values["type"], ()):
        faults += credential.fault(fields, f"an endpoint of type {values['type']}")
    faults += _FIELDS.field_faults(fields, values, "type")
    return endpoint.read(fields, scope, _FIELDS, (_TOKEN, _USERNAME, _PASSWORD), faults)


def _write(spec: Mapping[str, Any]) -> dict[str, Any]:
    # An empty credential is written too: without it the endpoint would break a rule.
    needed = _CREDENTIALS.get(str(spec.get("type")), ())
    return {credential.key: spec.get(credential.key, "") for credential in needed} | _FIELDS.written(spec)


def _summarise(spec: Mapping[str, Any], number: int) -> dict[str, Any]:
    used = {credential.key for credential in _CREDENTIALS.get(spec["type"], ())}
    further = {
        "url": spec["url"],
        **{key: endpoint.shown(spec[key]) if key in used else "" for key in ("token", "username", "password")},
        "authMethod": spec["type"],
        "method": spec["method"],
        "contentTemplate": "",
    }
    return endpoint.summarise(spec, number, "http", further)


KIND = endpoint.kind(
    "NotificationEndpointHTTP",
    "An HTTP server that notification rules send to.",
    _FIELDS,
    _read,
    _summarise,
    write=_write,
)
