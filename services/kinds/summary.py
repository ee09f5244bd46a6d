"""The summary document of a package (docs/reference/package-format.md, "Summary"), as parsed or as planned."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any

from services.core.model import LABEL, Key, Object
from services.kinds.format.kind import Kind, Referred
from services.kinds.registry import KINDS

_PLACES = {name: place for place, name in enumerate(KINDS)}
"""The place of each kind in the registry."""

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
        objects: All objects of the package, with labels and referenced objects. The summary leaves out what is in
            another package.
        ids: Hexadecimal ids of the resources that exist; others count as unknown.
        mapping_status: For a planned package, the status of each label mapping; None for a parsed one: all are new.
            Label mappings are sorted by meta name in a planned package, by display name in a parsed one. Only a parsed
            one lists families such as endpoints by kind.
        missing_env_refs: Environment keys without a value.
        missing_secrets: Secret keys without a value.
        left_out: Skipped objects that objects of the summary may refer to.
    """
    numbers = id_numbers(ids)
    labels = {item.key: item for item in objects if item.key.kind == LABEL}
    label_entries = {key: _entry(item, numbers) for key, item in labels.items()}
    document: dict[str, Any] = {name: [] for name in sorted({kind.summary_key for kind in KINDS.values()})}
    named = {(KINDS[item.key.kind].family, item.key.name): item for item in (*left_out, *objects)}
    for item in sorted(objects, key=_place_among_planned if mapping_status else _place_among_parsed):
        kind = KINDS[item.key.kind]
        if item.key in labels:
            document[kind.summary_key].append(label_entries[item.key])
            continue
        entry = _entry(item, numbers)
        if kind.labelled:
            entry["labelAssociations"] = [label_entries[label] for label in item.associations if label in labels]
        if kind.summarise_uses:
            entry |= kind.summarise_uses(_referred(item, kind, named, numbers))
        document[kind.summary_key].append(entry)
    document["labelMappings"] = _label_mappings(objects, labels, numbers, mapping_status)
    document["missingEnvRefs"] = sorted(missing_env_refs)
    document["missingSecrets"] = sorted(missing_secrets)
    return document


def planned_summary(
    objects: Sequence[Object],
    skipped: Collection[Key],
    ids: Mapping[Key, str],
    attached: Collection[tuple[Key, Key]],
    missing_env_refs: Iterable[str],
    missing_secrets: Iterable[str],
) -> dict[str, Any]:
    """
    Summarise the objects of a package that a plan applies.

    Args:
        objects: All objects of the package.
        skipped: Keys of the objects that the plan skips.
        ids: Ids of the resources that exist, also of skipped objects that others refer to.
        attached: The associations that exist already, as pairs of object and label.
        missing_env_refs: Environment keys without a value.
        missing_secrets: Secret keys without a value.
    """
    return summary_document(
        [_without(item, skipped) for item in objects if item.key not in skipped],
        ids=ids,
        mapping_status=lambda resource, label: "exists" if (resource, label) in attached else "new",
        missing_env_refs=missing_env_refs,
        missing_secrets=missing_secrets,
        left_out=[item for item in objects if item.key in skipped],
    )


def _without(item: Object, skipped: Collection[Key]) -> Object:
    """*item* without skipped labels."""
    if not skipped:
        return item
    labels = tuple(label for label in item.associations if label not in skipped)
    return item if labels == item.associations else item._replace(associations=labels)


def _place_among_planned(item: Object) -> str:
    return item.key.name


def _place_among_parsed(item: Object) -> tuple[int, str]:
    kind = item.key.kind
    return (_PLACES[kind] if KINDS[kind].listed_by_kind else 0), item.key.name


def _referred(
    item: Object, kind: Kind, named: Mapping[tuple[str, str], Object], numbers: Mapping[tuple[str, str], int]
) -> dict[str, Referred]:
    """The objects that *item* refers to, by field; *named* has the objects of the package by family and name."""
    objects: dict[str, Referred] = {}
    for field, family in kind.uses.items():
        if used := named.get((family, item.spec.value[field])):
            number = numbers.get(used.key, 0)
            objects[field] = Referred(used.key, number, KINDS[used.key.kind].summarise(used.spec.value, number))
    return objects


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
            if label in labels
        ]
    name = "resourceTemplateMetaName" if status else "resourceName"
    return sorted(mappings, key=itemgetter("resourceType", name, "labelName"))


def id_numbers(ids: Mapping[Key, str]) -> dict[tuple[str, str], int]:
    """The ids as numbers for summaries, by kind and name, without those that are no hexadecimal numbers of 64 bits."""
    numbers: dict[tuple[str, str], int] = {}
    for key, resource_id in ids.items():
        with suppress(ValueError):
            number = int(resource_id, 16)
            # JSON with longer numbers could not be written.
            if 0 <= number < 2**64:
                numbers[key] = number
    return numbers
