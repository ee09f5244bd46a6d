"""What our answers may have otherwise than the recorded ones: both are made equal there, before they are compared."""

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
"""What entries have beside the members of the embedded object, which ours have twice (docs/http.md)."""


def comparable(body: Any, step: Mapping[str, Any]) -> Any:
    """
    An answer, ours or a recorded one, without what docs/http-api.md and docs/export.md say of ours alone.

    Args:
        body: The answer.
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
        # Secrets that a dry run is given are not missing with us.
        found["missingSecrets"] = [key for key in found["missingSecrets"] if key not in (asked.get("secrets") or {})]
    return found


def _diff(diff: Document) -> Document:
    return {**diff, **{name: list(map(_entry, entries)) for name, entries in diff.items() if name != "labelMappings"}}


def _entry(entry: Document) -> Document:
    found = {key: value for key, value in entry.items() if key not in ("new", "old")}
    sides = {side: entry[side] for side in ("new", "old") if entry.get(side) is not None}
    if entry["stateStatus"] == "remove":
        # Ours has no new side, and says of which kind the resource is.
        del found["kind"]
        sides.pop("new", None)
    for side, value in sides.items():
        found[side] = {key: each for key, each in value.items() if each != "" or key not in _TIMES}
    return found


def _package(objects: list[Document], keeps_names: bool) -> list[Document]:
    """
    What a package says, in the normal form of our parser; as it stands where it is none.

    Args:
        objects: The objects.
        keeps_names: Whether their names are those of the stack; all others follow from what they name.
    """
    shown: dict[tuple[str, str], str] = {}
    for entry in objects:
        family, name = key = family_of(entry["kind"]), entry["metadata"]["name"]
        display = entry["spec"].get("name", name)
        shown[key] = name if keeps_names and not _is_generated(name, display) else f"{family} {display}"
    # Names of objects have no blanks and no capitals.
    plain = {key: f"n-{number}" for number, key in enumerate(shown)}
    text = json.dumps([_renamed(entry, plain) for entry in objects])
    parsed = parse([Source("export", text, Encoding.JSON)], {}).package
    if parsed is None:
        return objects
    words = {plain[key]: name for key, name in shown.items()}
    return sorted((_told(each, words) for each in parsed.objects), key=lambda each: json.dumps(each, sort_keys=True))


def _is_generated(name: str, display: str) -> bool:
    """Whether no stack has the name: the program writes such names with brackets, ours end with a hash."""
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


def _told(item: Object, words: Mapping[str, str]) -> Document:
    spec = {**item.spec.value}
    if "endpointName" in spec:
        spec["endpointName"] = words.get(spec["endpointName"], spec["endpointName"])
    if item.key.kind == "Task":
        # A server prints scripts anew, with brackets and commas that mean nothing.
        spec["query"] = re.sub(r"[\s(),]", "", spec["query"])
    if "charts" in spec:
        spec["charts"] = sorted(spec["charts"], key=lambda chart: (chart["xPos"], chart["yPos"]))
    labels = sorted(words.get(label.name, label.name) for label in item.associations)
    return {"kind": item.key.kind, "name": words[item.key.name], "labels": labels, "spec": spec}
