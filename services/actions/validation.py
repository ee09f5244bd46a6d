"""The one validator of definitions: all documents of a source together, with all their faults."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from services.actions.action_sets import Blueprints, read_action_set
from services.actions.blueprints import BlueprintReading, read_blueprint
from services.actions.definitions import (
    API_VERSION,
    ActionSet,
    Blueprint,
    ConfigMap,
    DeclaredInputs,
    Definition,
    DefinitionKind,
    inputs_of,
)
from services.actions.reading import JsonPlace, Report, quoted, shown
from services.actions.signatures import SignatureTable
from services.core.model import DEEPEST_SPEC
from services.kinds.diagnostics import Code
from services.kinds.format.canonical import canonical_text
from services.kinds.format.fields import Elsewhere, Fault, Rewrite
from services.kinds.format.shapes import nearest
from services.kinds.registry import ACCEPTED

LARGEST_DEFINITION = 256 * 1024
"""Bytes of the canonical JSON text of one document."""

_KINDS = tuple(DefinitionKind)
_ENVELOPE_FIELDS = ("apiVersion", "kind", "metadata", "spec")
_METADATA_FIELDS = ("name", "labels")
_PACKAGE_KINDS = ACCEPTED | {"Package", "Lifecycle"}
"""The kinds of objects of packages, manifests included."""

_CONFIG_MAP_FIELDS = ("data",)


StoredBlueprints = Mapping[str, Blueprint | None]
"""Blueprints by name; None: there is one of that name, and its actions are not known here."""

NONE_STORED: StoredBlueprints = MappingProxyType({})


class ValidationOutcome(NamedTuple):
    """
    The result of a validation.

    Attributes:
        definitions: The definition of each document; None: it has faults.
        faults: The faults of each document that has any, by its position.
    """

    definitions: tuple[Definition | None, ...]
    faults: Mapping[int, tuple[Fault, ...]]


class _Envelope(NamedTuple):
    """
    A document whose kind is that of a definition.

    Attributes:
        kind: Its kind.
        name: Its name as written; empty if it is missing or no text.
        labels: Its labels.
        spec: Its spec; None: it is missing.
        report: The faults of the document.
    """

    kind: DefinitionKind
    name: str
    labels: Mapping[str, str]
    spec: JsonPlace | None
    report: Report


def validate(
    documents: Sequence[Any], table: SignatureTable, stored: StoredBlueprints | None = NONE_STORED
) -> ValidationOutcome:
    """
    Validate the documents of one source together.

    Args:
        documents: JSON values, as ``plain`` makes them of YAML; one that is null is no definition either.
        table: The functions that phases may call.
        stored: Further blueprints that action sets may name; one of the source replaces that of its name. None: there
            may be any, so that what action sets pass to them is not checked.
    """
    reports = [Report(position) for position in range(len(documents))]
    envelopes = [_envelope(document, report) for document, report in zip(documents, reports, strict=True)]
    _check_names_once([envelope for envelope in envelopes if envelope])
    blueprints = {
        position: read_blueprint(envelope.spec, table, envelope.report)
        for position, envelope in enumerate(envelopes)
        if envelope and envelope.spec and envelope.kind is DefinitionKind.BLUEPRINT
    }
    inputs = _inputs_by_blueprint(envelopes, blueprints, stored or {})
    all_blueprints = Blueprints(inputs, are_all=stored is not None)
    definitions = [
        _definition(envelope, blueprints.get(position), all_blueprints) if envelope else None
        for position, envelope in enumerate(envelopes)
    ]
    return ValidationOutcome(
        tuple(None if report.faults else each for each, report in zip(definitions, reports, strict=True)),
        {report.position: report.faults for report in reports if report.faults},
    )


def _inputs_by_blueprint(
    envelopes: Sequence[_Envelope | None], readings: Mapping[int, BlueprintReading], stored: StoredBlueprints
) -> dict[str, Mapping[str, DeclaredInputs] | None]:
    """What the actions of all blueprints want; the first blueprint of a source with a name has it."""
    blueprints = {
        name: {action: inputs_of(each) for action, each in blueprint.actions.items()} if blueprint else None
        for name, blueprint in stored.items()
    }
    own: dict[str, Mapping[str, DeclaredInputs] | None] = {}
    for position, envelope in enumerate(envelopes):
        if envelope and envelope.kind is DefinitionKind.BLUEPRINT and envelope.name:
            reading = readings.get(position)
            own.setdefault(envelope.name, reading.inputs if reading else None)
    return blueprints | own


def _definition(envelope: _Envelope, reading: BlueprintReading | None, blueprints: Blueprints) -> Definition | None:
    """The definition of a document, complete only if its report is empty; None: it has no spec."""
    if envelope.spec is None:
        return None
    match envelope.kind:
        case DefinitionKind.ACTION_SET:
            spec = read_action_set(envelope.spec, blueprints, envelope.report)
            return ActionSet(envelope.name, *spec, labels=envelope.labels)
        case DefinitionKind.CONFIG_MAP:
            return ConfigMap(envelope.name, _config_map_data(envelope.spec, envelope.report), envelope.labels)
        case DefinitionKind.BLUEPRINT if reading:
            return Blueprint(envelope.name, reading.actions, reading.description, envelope.labels)
    return None


def _config_map_data(spec: JsonPlace, report: Report) -> Mapping[str, str]:
    fields = report.fields(spec, _CONFIG_MAP_FIELDS, "the spec of a config map")
    if fields is not None and "data" not in fields:
        report.missing(spec.member("data"), "a config map needs data, a mapping from names to texts")
    return report.text_map((fields or {}).get("data"), "a text") or {}


def _envelope(document: Any, report: Report) -> _Envelope | None:
    """The envelope of a document; None: nothing more is said of it."""
    root = JsonPlace(document, ())
    kind = _kind(root, report)
    if kind is None or not _is_small(document, report):
        return None
    fields = report.fields(root, _ENVELOPE_FIELDS, "a definition") or {}
    _check_api_version(root, report)
    name, labels = _metadata(root, kind, report)
    if "spec" not in fields:
        report.missing(root.member("spec"), f"a {kind} needs a spec")
    return _Envelope(kind, name, labels, fields.get("spec"), report)


def _kind(root: JsonPlace, report: Report) -> DefinitionKind | None:
    place = root.member("kind")
    word = place.value
    if isinstance(word, str) and word in _KINDS:
        return DefinitionKind(word)
    choices = f"write one of {', '.join(_KINDS)}"
    if not isinstance(root.value, dict):
        reason = f"a definition is a mapping with {', '.join(_ENVELOPE_FIELDS)}, found {shown(root.value)}"
        report.add(place, Code.KIND_MISSING, reason)
    elif word is None or word == "":
        report.add(place, Code.KIND_MISSING, f"kind is missing; {choices}")
    elif isinstance(word, str) and word in _PACKAGE_KINDS:
        reason = f"a {word} is an object of a package; a source has definitions or objects of a package, not both"
        report.add(place, Code.UNKNOWN_KIND, reason)
    else:
        meant = nearest(word.strip(), _KINDS) if isinstance(word, str) else ""
        kind = quoted(word) if isinstance(word, str) else f"that is {shown(word)}"
        reason = f"there is no kind {kind}; {f'write {meant}' if meant else choices}"
        report.add(place, Code.UNKNOWN_KIND, reason, Rewrite(meant) if meant else None)
        _check_api_version(root, report)
    return None


def _is_small(document: Any, report: Report) -> bool:
    spec = JsonPlace(document, ()).member("spec")
    try:
        size = len(canonical_text(document).encode())
    except TypeError:
        reason = f"the definition has more than {DEEPEST_SPEC} levels of lists and mappings; write it with fewer"
        report.add(spec, Code.DEFINITION_TOO_LARGE, reason)
        return False
    if size > LARGEST_DEFINITION:
        reason = f"the definition has {size:,} bytes as JSON; at most {LARGEST_DEFINITION:,} are accepted"
        report.add(spec, Code.DEFINITION_TOO_LARGE, reason)
    return size <= LARGEST_DEFINITION


def _check_api_version(root: JsonPlace, report: Report) -> None:
    place = root.member("apiVersion")
    if place.value != API_VERSION:
        problem = "it is missing" if place.value is None else f"found {shown(place.value)}"
        reason = f"the apiVersion of a definition must be {API_VERSION}; {problem}"
        report.add(place, Code.API_VERSION_INVALID, reason, None if place.value is None else Rewrite(API_VERSION))


def _metadata(root: JsonPlace, kind: DefinitionKind, report: Report) -> tuple[str, Mapping[str, str]]:
    """Name and labels; the name as written, also if it has a fault."""
    place = root.member("metadata")
    fields = {} if place.value is None else report.fields(place, _METADATA_FIELDS, "metadata")
    if fields is None:
        return "", {}
    name = place.member("name")
    if "name" in fields or kind is not DefinitionKind.ACTION_SET:
        report.definition_name(name, "metadata.name")
    return name.value if isinstance(name.value, str) else "", _labels(fields.get("labels"), report)


def _labels(place: JsonPlace | None, report: Report) -> Mapping[str, str]:
    if place is None:
        return {}
    if not isinstance(place.value, dict):
        report.add_wrong_type(place, "a mapping of texts")
        return {}
    texts = {key: report.text(entry) for key, entry in place.entries().items()}
    return {key: text for key, text in texts.items() if text is not None}


def _check_names_once(envelopes: Sequence[_Envelope]) -> None:
    """Report each name that an earlier definition of its kind has."""
    first_positions: dict[tuple[str, str], int] = {}
    for envelope in envelopes:
        position = envelope.report.position
        first = first_positions.setdefault((envelope.kind, envelope.name), position)
        if first != position and envelope.name:
            related = (Elsewhere(first, ("metadata", "name"), f"root[{first}] has this name"),)
            reason = f"choose another name: {quoted(envelope.name)} is the name of the {envelope.kind} root[{first}]"
            place = JsonPlace(envelope.name, ("metadata", "name"))
            envelope.report.add(place, Code.NAME_TAKEN, reason, related=related, first=first)
