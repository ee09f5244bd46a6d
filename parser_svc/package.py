"""Parses sources into one package, or lists all violations of the package."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from parser_svc.document_cache import DocumentCache
from parser_svc.envelope import RawObject
from parser_svc.known_documents import KnownDocuments, KnownObject
from parser_svc.places import Places, pointers_of
from parser_svc.remarks import remarks_on
from parser_svc.sources import Source, read_sources
from parser_svc.validation import FieldElsewhere, Outcome, validate
from services.core.errors import RequestInvalid
from services.core.model import (
    Credential,
    Key,
    Location,
    Object,
    Package,
    PackageReference,
    Violation,
)
from services.kinds.diagnostics import DIAGNOSTICS, Code
from services.kinds.format.fields import Fault, Remark
from services.packages.manifest import Manifest
from services.settings import Bounds
from services.syntax.places import Pointer
from services.syntax.usage import stopped_clock

_Fault = tuple[int, Fault]
"""A fault and the position of its object."""

_Remark = tuple[int, Remark]
"""A remark and the position of its object."""

_Raw = RawObject | KnownObject

_CredentialField = tuple[int, Key, str]
"""A field of a spec that holds a credential, with the position and the key of its object."""


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """
    The options of a caller (docs/reference/package-format.md, "Options").

    Attributes:
        allow_empty: Whether a package without objects is valid.
        keep_valid_parts: Whether the result has a package of the valid objects even if there are violations.
        warn: Whether to look for warnings.
    """

    allow_empty: bool = False
    keep_valid_parts: bool = False
    warn: bool = True


_DEFAULTS = ParseOptions()


class LocatedManifest(NamedTuple):
    """A manifest, and its first character."""

    manifest: Manifest
    location: Location


@dataclass(frozen=True, slots=True)
class ParseResult:
    """
    The result of parsing sources.

    Attributes:
        package: The package; None if there are violations and ``keep_valid_parts`` is off.
        sources: Names of the sources that contribute objects, in order, whether there is a package or not.
        violations: All violations, by position of the object, then in the order of docs/reference/package-format.md,
            "Order of checks"; empty for a valid package.
        missing_env_refs: Environment keys that objects refer to and that have no supplied value, sorted.
        missing_secrets: All secret keys that objects refer to, sorted.
        unused_env_keys: Keys of supplied environment values that no object refers to, sorted.
        warnings: Content that breaks no rule but looks like a mistake; by position of the object.
        credentials: Credentials in specs, with their locations, by position of the object; ``warn`` has no influence.
        manifest: The manifest; None if there is none, or the package has none because of violations.
        package_references: The fields that name objects of other packages, by position of the object; empty if the
            package has no objects because of violations.
    """

    package: Package | None
    sources: tuple[str, ...]
    violations: tuple[Violation, ...]
    missing_env_refs: tuple[str, ...]
    missing_secrets: tuple[str, ...]
    unused_env_keys: tuple[str, ...]
    warnings: tuple[Violation, ...]
    credentials: tuple[Credential, ...]
    manifest: LocatedManifest | None = None
    package_references: tuple[PackageReference, ...] = ()


def parse(
    sources: Sequence[Source],
    env: Mapping[str, Any],
    options: ParseOptions = _DEFAULTS,
    bounds: Bounds | None = None,
    clock: Callable[[], float] = stopped_clock,
    cache: DocumentCache | None = None,
) -> ParseResult:
    """
    Parse sources as one package (docs/reference/package-format.md, "Several sources").

    Args:
        sources: One source or more.
        env: Supplied environment values by key; each may be any scalar, list or mapping.
        options: The options of the caller.
        bounds: The limits of all sources together; None: the default limits.
        clock: Returns seconds since an arbitrary start; the default one stands still, so time is not limited.
        cache: The objects of documents that were parsed before; None: each document is read. No result depends on it.

    Raises:
        RequestInvalid: There is no source.
        SourceUndecodable: A source cannot be decoded.
        SourceTooLarge: The sources exceed a bound.
    """
    if not sources:
        raise RequestInvalid("sources", "a package needs at least one source")
    known_documents = KnownDocuments(cache, options.warn, (bounds or Bounds()).depth) if cache else None
    raw_objects = read_sources(sources, bounds, clock, known_documents)
    # Only a package that is valid without the values gets them (docs/reference/package-format.md, "Resolution").
    outcome = validate(raw_objects, {})
    if env and not outcome.faults:
        outcome = validate(raw_objects, env)
    faults = _distinct(outcome)
    remarks = _remarks(raw_objects, outcome) if options.warn else []
    if known_documents:
        known_documents.keep(_cacheable(raw_objects, outcome, remarks))
    credential_fields = [
        (position, key, name) for position, (key, names) in sorted(outcome.credentials.items()) for name in names
    ]
    located = _located(sources, raw_objects, faults, remarks, credential_fields, outcome.package_references)
    violations = located.violations
    if not raw_objects and not options.allow_empty:
        reason = "the package has no objects; write at least one"
        code, location = Code.PACKAGE_EMPTY, Location(sources[0].name)
        violations = (Violation("Package", "resources", reason, location, code, DIAGNOSTICS[code].severity),)
    contributing = {raw.source for raw in raw_objects}
    names = tuple(source.name for number, source in enumerate(sources) if number in contributing)
    valid = options.keep_valid_parts or not violations
    lifecycles = {"": outcome.lifecycle} if outcome.lifecycle else {}
    return ParseResult(
        package=Package(outcome.objects, names, lifecycles) if valid else None,
        sources=names,
        violations=violations,
        missing_env_refs=tuple(sorted(key for key in outcome.env_keys if env.get(key) is None)),
        missing_secrets=tuple(sorted(outcome.secret_keys)),
        unused_env_keys=tuple(sorted(env.keys() - outcome.env_keys)),
        warnings=located.warnings,
        credentials=located.credentials,
        manifest=_manifest(raw_objects, outcome) if valid else None,
        package_references=located.package_references if valid else (),
    )


def _manifest(raw_objects: Sequence[_Raw], outcome: Outcome) -> LocatedManifest | None:
    if outcome.manifest is None:
        return None
    return LocatedManifest(outcome.manifest, raw_objects[outcome.manifest_position].location)


def _distinct(outcome: Outcome) -> list[_Fault]:
    """
    The faults in the order of the response; identical ones are reported once (docs/reference/package-format.md,
    "Violations").
    """
    distinct: dict[tuple[int, str, str], _Fault] = {}
    for position, faults in sorted(outcome.faults.items()):
        for fault in faults:
            distinct.setdefault((position, fault.path, fault.reason), (position, fault))
    return list(distinct.values())


def _cacheable(
    raw_objects: Sequence[_Raw], outcome: Outcome, remarks: Sequence[_Remark]
) -> Iterator[tuple[RawObject, Object]]:
    """The objects that have no violations or warnings in any package that has their labels."""
    remarked = {position for position, _ in remarks}
    for position, item in outcome.self_contained.items():
        raw = raw_objects[position]
        if position not in remarked and isinstance(raw, RawObject):
            yield raw, item


def _remarks(raw_objects: Sequence[_Raw], outcome: Outcome) -> list[_Remark]:
    return [
        (position, remark)
        for position, raw in enumerate(raw_objects)
        if isinstance(raw, RawObject)
        for remark in (*remarks_on(raw, position in outcome.unremarkable), *outcome.remarks.get(position, ()))
    ]


class _Located(NamedTuple):
    """The parts of a result that have locations."""

    violations: tuple[Violation, ...]
    warnings: tuple[Violation, ...]
    credentials: tuple[Credential, ...]
    package_references: tuple[PackageReference, ...]


def _located(
    sources: Sequence[Source],
    raw_objects: Sequence[_Raw],
    faults: Sequence[_Fault],
    remarks: Sequence[_Remark],
    credential_fields: Sequence[_CredentialField],
    fields_elsewhere: Sequence[FieldElsewhere],
) -> _Located:
    """Violations, warnings, credentials and references to other packages, each with its location."""
    of_interest: list[tuple[int, Pointer]] = [
        *pointers_of(faults),
        *((position, remark.pointer) for position, remark in remarks),
        *((position, ("spec", name)) for position, _, name in credential_fields),
        *((field.position, field.pointer) for field in fields_elsewhere),
    ]
    places = Places(sources, raw_objects, of_interest)

    def reference(field: FieldElsewhere) -> PackageReference:
        path = f"root[{field.position}].{field.path}"
        return PackageReference(field.key, path, *field.name, *places.span(field.position, field.pointer))

    violations = tuple(places.violation(position, fault) for position, fault in faults)
    warnings = tuple(
        places.warning(position, remark)
        for position, remark in remarks
        if remark.unless_written is None or places.text(position, remark.pointer) not in (None, remark.unless_written)
    )
    credentials = tuple(
        Credential(key, f"/{name}", places.location(position, ("spec", name)))
        for position, key, name in credential_fields
    )
    references = tuple(reference(field) for field in fields_elsewhere)
    return _Located(violations, warnings, credentials, references)
