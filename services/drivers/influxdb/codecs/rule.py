"""Notification rules."""

from typing import Any

from services.core.model import Reference
from services.drivers.influxdb.codecs.codec import Body, Codec, Content, References, Refused, is_unset
from services.drivers.influxdb.codecs.endpoint import HTTP, SLACK, TYPES
from services.drivers.influxdb.codecs.normal import (
    named,
    normalised,
    refuse_interpolation,
    refuse_open_interpolation,
    refuse_schedule,
)

_KIND = "NotificationRule"

ENDPOINT = "/endpointName"
"""The pointer of the reference to the endpoint."""

_UNKNOWN_TO_SPECS = ("runbookLink", "limit", "limitEvery", "sleepUntil")


def endpoint_of(references: References) -> Reference | None:
    """The reference of a rule to its endpoint; its id may be empty in plans."""
    return next((reference for reference in references if reference.pointer == ENDPOINT), None)


def _prepare(content: Content, references: References) -> dict[str, Any]:
    spec = named(_KIND, content)
    refuse_interpolation(_KIND, spec["name"])
    refuse_schedule(_KIND, spec)
    for rule in spec["tagRules"]:
        if not rule["key"] or not rule["value"]:
            raise Refused("a tag rule needs a key and a value that are not empty")
    endpoint = endpoint_of(references)
    if endpoint and endpoint.kind == HTTP:
        spec["messageTemplate"] = ""
    elif endpoint and not spec["messageTemplate"]:
        raise Refused(f"a rule for a {endpoint.kind} needs a messageTemplate that is not empty")
    if endpoint and endpoint.kind != SLACK:
        spec["channel"] = ""
    refuse_open_interpolation(_KIND, "messageTemplate", spec["messageTemplate"])
    # The name of the endpoint in the package is not stored; the reference is.
    return {**spec, "endpointName": ""}


def _write(spec: Content, references: References, live: Body | None) -> dict[str, Any]:
    kept = {key: live[key] for key in _UNKNOWN_TO_SPECS if live.get(key)} if live else {}
    endpoint = endpoint_of(references)
    kind = endpoint.kind if endpoint else HTTP
    body: dict[str, Any] = {
        **kept,
        "type": TYPES.get(kind, "http"),
        "endpointID": endpoint.id if endpoint else "",
        **{key: spec[key] for key in ("name", "description", "every", "status")},
        "statusRules": [
            {"currentLevel": rule["currentLevel"], "previousLevel": rule["previousLevel"] or None}
            for rule in spec["statusRules"]
        ],
        "tagRules": spec["tagRules"],
    }
    # The server refuses an empty offset.
    body |= {"offset": spec["offset"]} if spec["offset"] else {}
    body |= {"messageTemplate": spec["messageTemplate"]} if kind != HTTP else {}
    return body | ({"channel": spec["channel"]} if kind == SLACK else {})


def _read(live: Body) -> dict[str, Any]:
    texts = ("name", "description", "every", "offset", "status", "messageTemplate", "channel")
    status_rules = [
        {"currentLevel": rule.get("currentLevel") or "", "previousLevel": rule.get("previousLevel") or ""}
        for rule in live.get("statusRules") or ()
    ]
    content = {key: live.get(key) or "" for key in texts}
    content |= {"statusRules": status_rules, "tagRules": live.get("tagRules") or []}
    return {**normalised(_KIND, content), "endpointName": ""}


def _unexpressed(live: Body) -> list[str]:
    return [key for key in _UNKNOWN_TO_SPECS if not is_unset(live.get(key))]


CODEC = Codec(_KIND, "notificationRules", _prepare, _write, _read, replaces=True, unexpressed=_unexpressed)
