"""Removes permitted differences between answers of the gateway and recorded ones, before they are compared."""

import json
import re
from collections.abc import Mapping
from typing import Any

from parser_svc.package import parse
from parser_svc.sources import Encoding, Source
from services.core.model import Object
from services.kinds.registry import FAMILY_NAMES, family_of

Document = dict[str, Any]

_ENDPOINT = FAMILY_NAMES["NotificationEndpoint"]

_TIMES = ("cron", "every", "offset")

_FLAT = {
    "checks": ("kind", "templateMetaName", "envReferences", "labelAssociations", "check", "status"),
    "notificationEndpoints": ("kind", "templateMetaName", "envReferences", "labelAssociations", "notificationEndpoint"),
}
"""Members of entries without those of the embedded object, which our entries repeat (docs/http.md)."""


def comparable(body: Any, step: Mapping[str, Any]) -> Any:
    """
    An answer without the differences of pkger that docs/http.md and docs/export.md describe.

    Args:
        body: The answer, of the gateway or recorded.
        step: The step of a scenario that it answers.
    """
    if isinstance(body, list):
        return _package(body, keeps_names=bool(step["request"]["body"].get("stackID")))
    if isinstance(body, dict) and isinstance(body.get("summary"), dict):
        return {**body, "summary": _summary(body["summary"], step["request"]["body"]), "diff": _diff(body["diff"])}
    return body


def _summary(summary: Document, asked: Mapping[str, Any]) -> Document:
    found = {**summary}
    for name, members in _FLAT.items():
        found[name] = [{key: value for key, value in entry.items() if key in members} for entry in summary[name]]
    for name in {"missingEnvRefs", "missingSecrets"} & summary.keys():
        found[name] = summary[name] or []
    if asked.get("dryRun") and "missingSecrets" in found:
        # In our answers, the secrets in a dry run are not missing.
        found["missingSecrets"] = [key for key in found["missingSecrets"] if key not in (asked.get("secrets") or {})]
    return found


def _diff(diff: Document) -> Document:
    return {**diff, **{name: list(map(_entry, entries)) for name, entries in diff.items() if name != "labelMappings"}}


def _entry(entry: Document) -> Document:
    found = {key: value for key, value in entry.items() if key not in ("new", "old")}
    sides = {side: entry[side] for side in ("new", "old") if entry.get(side) is not None}
    if entry["stateStatus"] == "remove":
        # Our entry has no new side, and the kind of the resource.
        del found["kind"]
        sides.pop("new", None)
    for side, value in sides.items():
        found[side] = {key: each for key, each in value.items() if each != "" or key not in _TIMES}
    return found


def _package(objects: list[Document], keeps_names: bool) -> list[Document]:
    """
    A package in the normal form of the parser; unchanged if it is invalid.

    Args:
        objects: The objects.
        keeps_names: Whether names of objects come from the stack; other names follow from the display names.
    """
    shown: dict[tuple[str, str], str] = {}
    for entry in objects:
        family, name = key = family_of(entry["kind"]), entry["metadata"]["name"]
        display = entry["spec"].get("name", name)
        shown[key] = name if keeps_names and not _is_generated(name, display) else f"{family} {display}"
    # Replaced, as names of objects may have no blanks and no capitals.
    plain = {key: f"n-{number}" for number, key in enumerate(shown)}
    text = json.dumps([_renamed(entry, plain) for entry in objects])
    parsed = parse([Source("export", text, Encoding.JSON)], {}).package
    if parsed is None:
        return objects
    names_by_plain = {plain[key]: name for key, name in shown.items()}
    return sorted(
        (_normal(each, names_by_plain) for each in parsed.objects), key=lambda each: json.dumps(each, sort_keys=True)
    )


def _is_generated(name: str, display: str) -> bool:
    """Whether a name is generated: InfluxDB writes such names in angle brackets, pkger with a hash at the end."""
    return name.startswith("<") or re.fullmatch(rf"{re.escape(display.lower())}-[a-z2-7]{{8}}", name) is not None


def _renamed(entry: Document, names: Mapping[tuple[str, str], str]) -> Document:
    spec = {"name": entry["metadata"]["name"], **entry["spec"]}
    if "associations" in spec:
        spec["associations"] = [
            {**each, "name": names.get((family_of(each["kind"]), each["name"]), each["name"])}
            for each in spec["associations"]
        ]
    if "endpointName" in spec:
        spec["endpointName"] = names.get((_ENDPOINT, spec["endpointName"]), spec["endpointName"])
    name = names[family_of(entry["kind"]), entry["metadata"]["name"]]
    return {**entry, "metadata": {"name": name}, "spec": spec}


def _normal(item: Object, names_by_plain: Mapping[str, str]) -> Document:
    spec = {**item.spec.value}
    if "endpointName" in spec:
        spec["endpointName"] = names_by_plain.get(spec["endpointName"], spec["endpointName"])
    if item.key.kind == "Task":
        # A server formats scripts again, with other brackets and commas of no meaning.
        spec["query"] = re.sub(r"[\s(),]", "", spec["query"])
    if "charts" in spec:
        spec["charts"] = sorted(spec["charts"], key=lambda chart: (chart["xPos"], chart["yPos"]))
    labels = sorted(names_by_plain.get(label.name, label.name) for label in item.associations)
    return {"kind": item.key.kind, "name": names_by_plain[item.key.name], "labels": labels, "spec": spec}
