"""Notification endpoints: HTTP, Slack and PagerDuty."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused, is_unset
from services.drivers.influxdb.codecs.normal import named, normalised

HTTP, SLACK, PAGERDUTY = "NotificationEndpointHTTP", "NotificationEndpointSlack", "NotificationEndpointPagerDuty"

KINDS_BY_TYPE = {"http": HTTP, "slack": SLACK, "pagerduty": PAGERDUTY}
"""The kinds of endpoints by their ``type`` in the API; packages have no kind for its other types."""

TYPES = {kind: type_ for type_, kind in KINDS_BY_TYPE.items()}

_CREDENTIALS = {HTTP: ("token", "username", "password"), SLACK: ("token",), PAGERDUTY: ("routingKey",)}
_URL = {HTTP: "url", SLACK: "url", PAGERDUTY: "clientURL"}
_METHODS = ("GET", "POST", "PUT")
_NEEDED = {"none": (), "basic": ("username", "password"), "bearer": ("token",)}
"""The credentials that the server requires for each type of authentication."""

_UNKNOWN_TO_SPECS = ("headers", "contentTemplate")
_IN_SCRIPTS = ("name", "url", "type", "token", "username", "password", "routingKey")
"""Fields that the server copies into the scripts of rules with this endpoint, and does not update by itself."""

_SECRET = "secret: "  # noqa: S105 - the prefix of the key of a secret


def changes_scripts(before: Content, after: Content) -> bool:
    """Whether a change of an endpoint affects the scripts of its rules."""
    return any(before.get(key) != after.get(key) for key in _IN_SCRIPTS)


def _prepare(content: Content, _references: References, kind: str) -> dict[str, Any]:
    spec = named(kind, content)
    for key in _CREDENTIALS[kind]:
        if isinstance(spec[key], str) and spec[key]:
            raise Refused(f"/{key} of a {kind} names a secret, it does not hold one; write {{secretRef: {{key: KEY}}}}")
    if kind == HTTP and spec["method"] not in _METHODS:
        raise Refused(f"the method of a {kind} must be one of {', '.join(_METHODS)}; found {spec['method'][:40]!r}")
    if kind == HTTP and spec["type"] not in _NEEDED:
        raise Refused(f"the type of a {kind} must be one of {', '.join(_NEEDED)}; found {spec['type'][:40]!r}")
    needed = _NEEDED[spec["type"]] if kind == HTTP else ("routingKey",) if kind == PAGERDUTY else ()
    for key in needed:
        if not spec[key]:
            raise Refused(f"this {kind} needs a {key}; write {key}: {{secretRef: {{key: KEY}}}}")
    if kind != PAGERDUTY and not spec["url"]:
        raise Refused(f"a {kind} needs a url")
    return spec


def _write(spec: Content, _references: References, live: Body | None, kind: str) -> dict[str, Any]:
    kept = {key: live[key] for key in _UNKNOWN_TO_SPECS if live.get(key)} if live and kind == HTTP else {}
    body = {
        **kept,
        "type": TYPES[kind],
        "name": spec["name"],
        "description": spec["description"],
        "status": spec["status"],
        _URL[kind]: spec["url"],
        **{key: _sent(spec[key]) for key in _CREDENTIALS[kind]},
    }
    return body | ({"method": spec["method"], "authMethod": spec["type"]} if kind == HTTP else {})


def _read(live: Body, kind: str) -> dict[str, Any]:
    content = {
        "name": live["name"],
        "description": live.get("description") or "",
        "status": live["status"],
        "url": live.get(_URL[kind]) or "",
        **{key: _credential(live.get(key) or "") for key in _CREDENTIALS[kind]},
    }
    if kind == HTTP:
        content |= {"method": live["method"], "type": live["authMethod"]}
    return normalised(kind, content)


def _unexpressed(live: Body) -> list[str]:
    return [key for key in _UNKNOWN_TO_SPECS if not is_unset(live.get(key))]


def _sent(credential: str | Mapping[str, Any]) -> str:
    return _SECRET + credential["secretRef"]["key"] if isinstance(credential, Mapping) else ""


def _credential(text: str) -> str | dict[str, Any]:
    key = text.removeprefix(_SECRET)
    return {"secretRef": {"key": key}} if key and key != text else ""


CODECS = tuple(
    Codec(
        kind,
        "notificationEndpoints",
        partial(_prepare, kind=kind),
        partial(_write, kind=kind),
        partial(_read, kind=kind),
        replaces=True,
        unexpressed=_unexpressed if kind == HTTP else None,
    )
    for kind in TYPES
)
