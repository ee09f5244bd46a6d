"""Packages of a scenario as text, and the names, descriptions and secrets that they lead to on the platform."""

import json
from collections.abc import Iterable
from typing import Any

from tests.simulation.scenario import Item

_COLUMNS = [{"name": "time", "type": "timestamp"}, {"name": "value", "type": "field", "dataType": "float"}]


def text_of(items: Iterable[Item], prefix: str) -> str:
    """The package as JSON text."""
    return json.dumps(objects_of(items, prefix))


def objects_of(items: Iterable[Item], prefix: str) -> list[dict[str, Any]]:
    """The objects of the package as JSON values."""
    return [_object(item, prefix) for item in items]


def secret_of(stack: str) -> str:
    """The value of each secret that clients of *stack* send."""
    return f"of {stack}"


def display_name(name: str, prefix: str, *, renamed: bool = False) -> str:
    """The display name of the resource of an object."""
    return f"{prefix}{name}{' anew' if renamed else ''}"


def description(version: int) -> str:
    """The description of an object; versions of an object differ by it alone."""
    return f"version {version}"


def _object(item: Item, prefix: str) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": display_name(item.name, prefix, renamed=item.renamed),
        "description": description(item.version),
    }
    if item.brief:
        spec["retentionRules"] = [{"type": "expire", "everySeconds": 3600}]
    match item.kind:
        case "Bucket" if item.explicit:
            measurement = {"name": "m", "columns": _COLUMNS}
            spec |= {"schemaType": "explicit", "measurementSchemas": [measurement]}
        case "Variable":
            spec |= {"type": "constant", "values": ["a"]}
        case "Task":
            spec |= {"every": "1h", "query": "buckets()"}
        case "NotificationEndpointHTTP":
            spec |= {"url": "https://example.com", "method": "GET", "type": "none"}
        case "NotificationEndpointSlack":
            spec |= {"url": "https://example.com"}
        case "NotificationRule":
            spec |= {"endpointName": "hook", "every": "10m", "statusRules": [{"currentLevel": "CRIT"}]}
    if item.labels:
        spec["associations"] = [{"kind": "Label", "name": label} for label in item.labels]
    return {
        "apiVersion": "influxdata.com/v2alpha1",
        "kind": item.kind,
        "metadata": {"name": item.name},
        "spec": spec,
    }
