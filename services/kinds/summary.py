"""The summary document of a package (packages.md 10), as parsed or as planned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from services.core.model import Key, Object
from services.kinds import endpoint
from services.kinds.table import KINDS

_LISTS = (
    "buckets",
    "checks",
    "dashboards",
    "labels",
    "notificationEndpoints",
    "notificationRules",
    "summaryTask",
    "telegrafConfigs",
    "variables",
)
"""The lists of a summary."""

_ENDPOINT_TYPES = {
    "NotificationEndpointHTTP": "http",
    "NotificationEndpointPagerDuty": "pagerduty",
    "NotificationEndpointSlack": "slack",
}

MappingStatus = Callable[[Key, Key], str]
"""The status, ``new`` or ``exists``, of the mapping of an object (first) to a label (second)."""


def summary_document(
    objects: Sequence[Object],
    ids: Mapping[Key, str],
    mapping_status: MappingStatus | None = None,
    missing_env_refs: Iterable[str] = (),
    missing_secrets: Iterable[str] = (),
    left_out: Sequence[Object] = (),
) -> dict[str, Any]:
    """
    Summarise a package.

    Args:
        objects: All objects of the package, labels and endpoints included.
        ids: Hexadecimal ids of the resources that exist; others count as unknown.
        mapping_status: For a planned package, the status of each label mapping; None for a parsed one: all are new.
            Label mappings of a planned package are sorted by meta name, those of a parsed one by display name;
            endpoints of a parsed one by kind first.
        missing_env_refs: Environment keys without a value.
        missing_secrets: Secret keys without a value.
        left_out: Further objects that those of the summary may refer to.
    """
    numbers = id_numbers(ids)
    labels = {item.key: item for item in objects if not KINDS[item.key.kind].labelled}
    label_entries = {key: _entry(item, numbers) for key, item in labels.items()}
    document: dict[str, Any] = {name: [] for name in _LISTS}
    endpoints = {
        item.key.name: item.key for item in (*left_out, *objects) if KINDS[item.key.kind].family == endpoint.FAMILY
    }
    for item in sorted(objects, key=lambda item: item.key.name):
        kind = KINDS[item.key.kind]
        if item.key in labels:
            document[kind.summary_key].append(label_entries[item.key])
            continue
        entry = _entry(item, numbers)
        entry["labelAssociations"] = [label_entries[label] for label in item.associations]
        if "endpointName" in kind.uses:
            entry |= _endpoint_of(item, endpoints, numbers)
        document[kind.summary_key].append(entry)
    if not mapping_status:
        document["notificationEndpoints"].sort(key=lambda entry: list(_ENDPOINT_TYPES).index(entry["kind"]))
    document["labelMappings"] = _label_mappings(objects, labels, numbers, mapping_status)
    document["missingEnvRefs"] = sorted(missing_env_refs)
    document["missingSecrets"] = sorted(missing_secrets)
    return document


def _endpoint_of(rule: Object, endpoints: Mapping[str, Key], numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """What the entry of a rule tells of its endpoint."""
    used = endpoints.get(rule.spec.value["endpointName"])
    return {
        "endpointID": numbers.get(used, 0) if used else 0,
        "endpointTemplateMetaName": used.name if used else "",
        "endpointType": _ENDPOINT_TYPES[used.kind] if used else "",
    }


def _entry(item: Object, numbers: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    return {
        "kind": item.key.kind,
        "templateMetaName": item.key.name,
        "envReferences": [
            {
                "resourceField": reference.resource_field,
                "envRefKey": reference.env_key,
                "valueType": reference.value_type,
                "value": reference.value,
                "defaultValue": reference.default,
            }
            for reference in item.env_references
        ],
        **KINDS[item.key.kind].summarise(item.spec.value, numbers.get(item.key, 0)),
    }


def _label_mappings(
    objects: Sequence[Object],
    labels: Mapping[Key, Object],
    numbers: Mapping[tuple[str, str], int],
    status: MappingStatus | None,
) -> list[dict[str, Any]]:
    mappings: list[dict[str, Any]] = []
    label_halves = {
        key: {
            "labelTemplateMetaName": key.name,
            "labelName": label.spec.display_name,
            "labelID": numbers.get(key, 0),
        }
        for key, label in labels.items()
    }
    for item in objects:
        resource_half = {
            "resourceID": numbers.get(item.key, 0),
            "resourceTemplateMetaName": item.key.name,
            "resourceName": item.spec.display_name,
            "resourceType": KINDS[item.key.kind].resource_type,
        }
        mappings += [
            {"status": status(item.key, label) if status else "new", **resource_half, **label_halves[label]}
            for label in item.associations
        ]
    name = "resourceTemplateMetaName" if status else "resourceName"
    return sorted(mappings, key=itemgetter("resourceType", name, "labelName"))


def id_numbers(ids: Mapping[Key, str]) -> dict[tuple[str, str], int]:
    """The ids, by kind and name, as the numbers that summaries show; without those that are no hexadecimal numbers."""
    numbers: dict[tuple[str, str], int] = {}
    for key, remote_id in ids.items():
        with suppress(ValueError):
            numbers[key] = int(remote_id, 16)
    return numbers
