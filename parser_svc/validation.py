"""
Validates the objects of a package together: identity, uniqueness, fields, associations
(docs/reference/package-format.md, "Objects").
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from parser_svc.envelope import RawObject
from parser_svc.known_documents import KnownObject
from services.actions.definitions import DefinitionKind
from services.core.model import LABEL, EnvReference, Key, Object, WrittenValue
from services.kinds.diagnostics import Code
from services.kinds.format.canonical import canonical_text, spec_of
from services.kinds.format.fields import Elsewhere, Fault, Fields, Pointer, Remark, Rewrite
from services.kinds.format.kind import Kind, ReadResult, Scope
from services.kinds.format.names import LONGEST_META_NAME, is_meta_name
from services.kinds.format.package_names import NameElsewhere, fault_elsewhere, name_elsewhere
from services.kinds.format.references import ReferenceSpec, UsedReference, read_reference
from services.kinds.format.shapes import nearest
from services.kinds.policy_reading import read_policy
from services.kinds.registry import ACCEPTED, FAMILY_NAMES, KINDS, REFERABLE_FAMILIES
from services.kinds.schema import API_VERSIONS, plain_spec
from services.packages.lifecycle import API_VERSION as LIFECYCLE_API_VERSION
from services.packages.lifecycle import KIND as LIFECYCLE_KIND
from services.packages.lifecycle import is_lifecycle, read_lifecycle
from services.packages.manifest import API_VERSION as MANIFEST_API_VERSION
from services.packages.manifest import KIND as MANIFEST_KIND
from services.packages.manifest import Manifest, ManifestReading, is_manifest, read_manifest

_ACCEPTED = sorted(ACCEPTED)
_DEFINITION_KINDS = frozenset(DefinitionKind)
_KINDS_ABOUT_PACKAGES = (MANIFEST_KIND, LIFECYCLE_KIND)
_KINDS_LISTED = ", ".join(sorted(KINDS))
_SHOWN_NAMES = 5
"""How many names a reason lists at most."""

_LIFECYCLE = ("metadata", "lifecycle")
"""The pointer to the policy of an object."""

_Place = tuple[str, Pointer, NameElsewhere]
"""Path and pointer of a field that names an object of another package, and the name."""

_UNKNOWN_NAME = "unknown"
"""Stands for a display name that is not known; no rule of a kind refuses it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    The result of a validation.

    Attributes:
        objects: All objects that have an identity, with or without other faults, in the order of the package.
        faults: The faults of each object that has any, by its position, in the order of
            docs/reference/package-format.md, "Order of checks".
        env_keys: Environment keys that objects refer to.
        secret_keys: Secret keys that objects refer to.
        remarks: Remarks of kinds on objects, by position.
        unremarkable: Positions of objects whose specs the tables of their kinds have no remarks on.
        credentials: Keys of objects that hold credentials, each with the fields of its spec, by position.
        self_contained: Objects without faults and remarks that depend only on their documents and on the presence of
            their labels, not on values, secrets or other objects; by position, without objects known before.
        manifest: The manifest; None if the package has none, or it has faults.
        manifest_position: The position of the manifest; -1: the package has none.
        lifecycle: The ``Lifecycle`` document, as canonical JSON; empty if the package has none, or it has faults.
        package_references: The fields without faults that name objects of other packages, by position of the object.
    """

    objects: tuple[Object, ...]
    faults: Mapping[int, Sequence[Fault]]
    env_keys: frozenset[str]
    secret_keys: frozenset[str]
    remarks: Mapping[int, Sequence[Remark]]
    unremarkable: Set[int]
    credentials: Mapping[int, tuple[Key, Sequence[str]]]
    self_contained: Mapping[int, Object]
    manifest: Manifest | None
    manifest_position: int
    lifecycle: str
    package_references: Sequence["FieldElsewhere"]


class FieldElsewhere(NamedTuple):
    """
    A field that names an object of another package.

    Attributes:
        position: The position of the object that has it.
        key: The key of this object.
        path: The path of the field.
        pointer: The pointer to it.
        name: The name in it.
    """

    position: int
    key: Key
    path: str
    pointer: Pointer
    name: NameElsewhere


class _Named(NamedTuple):
    """
    An object whose kind and API version are right.

    Attributes:
        position: Its position in the package.
        raw: Its content.
        kind: Its kind.
        meta: Its ``metadata.name`` as written.
        display: Its ``spec.name`` as written.
        name: Its resolved ``metadata.name``.
        display_name: Its resolved ``spec.name``, else ``name``; empty: unknown, because ``name`` is invalid.
        fault: The fault of an invalid ``name``. The object is checked, but it is not part of the package.
    """

    position: int
    raw: RawObject | KnownObject
    kind: Kind
    meta: ReferenceSpec
    display: ReferenceSpec
    name: str
    display_name: str
    fault: Fault | None = None


class _Labels:
    """
    The labels that associations can name.

    A label with an invalid name is one of them, so that its name is reported once, and not again at each association.
    """

    def __init__(self, labels: Iterable[_Named]) -> None:
        self.by_name = {label.name: label for label in labels}
        self.invalid = {name for name, label in self.by_name.items() if label.fault}
        self.by_value = {name for name, label in self.by_name.items() if label.meta.is_one}
        self.by_display_name = {label.display_name: label for label in self.by_name.values() if not label.fault}
        names = sorted(self.by_name)
        self.shown = (
            ", ".join(name[:80] for name in names[:_SHOWN_NAMES]) + (" ..." if names[_SHOWN_NAMES:] else "") or "none"
        )

    def are_literal(self, keys: Iterable[Key]) -> bool:
        """Whether the package has the labels *keys*, under names that no environment value can change."""
        return all(key.name in self.by_name and key.name not in self.by_value for key in keys)

    def attached(self, associations: Sequence[Mapping[str, Any]]) -> Sequence[Key] | None:
        """The labels of *associations*, which their table has read; None: a label is unknown or occurs twice."""
        if not associations:
            return ()
        names = {entry["name"] for entry in associations}
        if len(names) < len(associations) or not names <= self.by_name.keys():
            return None
        return [Key(LABEL, name) for name in sorted(names)]


@dataclass(slots=True)
class _Findings:
    faults: dict[int, list[Fault]] = field(default_factory=dict)
    objects: dict[int, Object] = field(default_factory=dict)
    remarks: dict[int, Sequence[Remark]] = field(default_factory=dict)
    unremarkable: set[int] = field(default_factory=set)
    credentials: dict[int, tuple[Key, Sequence[str]]] = field(default_factory=dict)
    references: list[ReferenceSpec] = field(default_factory=list)
    self_contained: dict[int, Object] = field(default_factory=dict)
    package_references: list[FieldElsewhere] = field(default_factory=list)


def validate(raw_objects: Sequence[RawObject | KnownObject], env: Mapping[str, Any]) -> Outcome:
    """
    Validate all objects as one package.

    Args:
        raw_objects: The objects; a position in a path is a position in this list.
        env: Supplied environment values by key; any tree.
    """
    findings = _Findings()
    manifest_position, reading = _read_manifest(raw_objects, findings)
    lifecycle = _read_lifecycle(raw_objects, findings)
    named: dict[str, list[_Named]] = {name: [] for name in KINDS}
    for position, raw in enumerate(raw_objects):
        identity = _identify_known(position, raw) if isinstance(raw, KnownObject) else _identify(position, raw, env)
        if isinstance(identity, Fault):
            findings.faults[position] = [identity]
        elif identity:
            named[identity.kind.name].append(identity)
            if identity.fault:
                findings.faults[position] = [identity.fault]
    unique = _unique(named, findings)
    labels = _Labels(item for item in unique if item.kind.name == LABEL and item.name)
    objects: dict[str, dict[str, Key]] = {family: {} for family in REFERABLE_FAMILIES}
    for item in unique:
        if item.kind.family in objects and item.name:
            objects[item.kind.family][item.name] = Key(item.kind.name, item.name)
    for item in unique:
        if isinstance(item.raw, KnownObject) and labels.are_literal(item.raw.cached.associations):
            findings.objects[item.position] = item.raw.object()
            continue
        raw = item.raw.read() if isinstance(item.raw, KnownObject) else item.raw
        display_name, required = item.display_name or _UNKNOWN_NAME, reading.required if reading else None
        scope = Scope(item.name, display_name, raw.api_version, env, objects, required=required)
        _read(item, raw, labels, scope, findings)
    return Outcome(
        objects=tuple(item for _, item in sorted(findings.objects.items(), key=lambda entry: entry[0])),
        faults=findings.faults,
        env_keys=frozenset(reference.env_key for reference in findings.references if reference.env_key),
        secret_keys=frozenset(reference.secret_key for reference in findings.references if reference.secret_key),
        remarks=findings.remarks,
        unremarkable=findings.unremarkable,
        credentials=findings.credentials,
        self_contained=findings.self_contained,
        manifest=reading.manifest if reading else None,
        manifest_position=manifest_position,
        lifecycle=lifecycle,
        package_references=sorted(findings.package_references, key=lambda reference: reference.position),
    )


def _read_manifest(
    raw_objects: Sequence[RawObject | KnownObject], findings: _Findings
) -> tuple[int, ManifestReading | None]:
    """The position of the manifest, and the manifest; -1 and None if the package has none."""
    positions = [place for place, raw in enumerate(raw_objects) if is_manifest(raw.kind, raw.api_version)]
    if not positions:
        return -1, None
    first, *others = positions
    for position in others:
        reason = f"a package has one manifest, and root[{first}] is it; remove one of them"
        related = (Elsewhere(first, (), f"root[{first}] is the manifest"),)
        fault = Fault(Code.MANIFEST_REPEATED, "kind", reason, ("kind",), first, related=related)
        findings.faults[position] = [fault]
    raw = raw_objects[first]
    assert isinstance(raw, RawObject)  # noqa: S101 - manifests are not cached
    reading = read_manifest(raw.api_version, raw.metadata, raw.spec, first)
    if reading.faults:
        findings.faults[first] = [*reading.faults]
    return first, reading


def _read_lifecycle(raw_objects: Sequence[RawObject | KnownObject], findings: _Findings) -> str:
    """The ``Lifecycle`` document, as canonical JSON; empty if the package has none, or it has faults."""
    positions = [place for place, raw in enumerate(raw_objects) if is_lifecycle(raw.kind, raw.api_version)]
    if not positions:
        return ""
    first, *others = positions
    for position in others:
        reason = f"a package has one {LIFECYCLE_KIND} document, and root[{first}] is it; remove one of them"
        related = (Elsewhere(first, (), f"root[{first}] is the {LIFECYCLE_KIND} document"),)
        fault = Fault(Code.LIFECYCLE_REPEATED, "kind", reason, ("kind",), first, related=related)
        findings.faults[position] = [fault]
    raw = raw_objects[first]
    assert isinstance(raw, RawObject)  # noqa: S101 - these documents are not cached
    reading = read_lifecycle(raw.api_version, raw.metadata, raw.spec, raw.unknown_keys)
    if reading.faults:
        findings.faults[first] = [*reading.faults]
    return reading.text


def _identify_known(position: int, raw: KnownObject) -> _Named:
    """The result of steps 1 to 3 for an object that passed them before; its names are not references."""
    name, display_name = raw.cached.key.name, raw.cached.display_name
    return _Named(position, raw, KINDS[raw.kind], ReferenceSpec(name), ReferenceSpec(display_name), name, display_name)


def _identify(position: int, raw: RawObject, env: Mapping[str, Any]) -> _Named | Fault | None:
    """
    Steps 1 to 3 of docs/reference/package-format.md, "Order of checks".

    Returns:
        The object; the fault that ends its check; or None for an object that is ignored.
    """
    if raw.kind in FAMILY_NAMES or _is_about_package(raw):
        return None
    if raw.other_format:
        return Fault(Code.OTHER_FORMAT, "kind", raw.other_format, ("kind",))
    if raw.kind not in KINDS:
        return _wrong_kind(raw.kind, raw.api_version)
    if raw.api_version not in API_VERSIONS:
        problem = f"found {raw.api_version[:60]!r}" if raw.api_version else "it is missing"
        reason = f"apiVersion must be {' or '.join(API_VERSIONS)}; {problem}"
        meant = raw.api_version.strip().lower()
        rewrite = Rewrite(meant) if meant in API_VERSIONS else None
        return Fault(Code.API_VERSION_INVALID, "apiVersion", reason, ("apiVersion",), rewrite=rewrite)
    meta, display = read_reference(raw.metadata.get("name")), read_reference(raw.spec.get("name"))
    name, fault = meta.resolved(env), _invalid_name(meta, env)
    display_name = display.resolved(env) or ("" if fault else name)
    return _Named(position, raw, KINDS[raw.kind], meta, display, name, display_name, fault)


def _is_about_package(raw: RawObject) -> bool:
    """Whether it is no object: the manifest of the package, or its ``Lifecycle`` document."""
    return is_manifest(raw.kind, raw.api_version) or is_lifecycle(raw.kind, raw.api_version)


def _invalid_name(meta: ReferenceSpec, env: Mapping[str, Any]) -> Fault | None:
    """The fault of an invalid ``metadata.name``."""
    name = meta.resolved(env)
    # Both the text of the package and the value that replaces it must be valid names.
    for candidate in (meta.resolved({}), name):
        if not is_meta_name(candidate):
            origin = (
                "" if candidate is not name or not meta.env_key else f", the environment value {meta.env_key[:60]!r}"
            )
            reason = (
                f"metadata.name must be 1 to {LONGEST_META_NAME} lower-case letters, digits, - or _, "
                f"with a letter or digit first and last; found {candidate[:80]!r}{origin}"
            )
            return Fault(Code.NAME_INVALID, "metadata.name", reason, ("metadata", "name"))
    return None


def _wrong_kind(kind: str, api_version: str) -> Fault:
    if not kind:
        return Fault(Code.KIND_MISSING, "kind", f"kind is missing; write one of {_KINDS_LISTED}", ("kind",))
    if kind == MANIFEST_KIND:
        problem = f"found {api_version[:60]!r}" if api_version else "it is missing"
        reason = f"a {MANIFEST_KIND} is a manifest, and its apiVersion must be {MANIFEST_API_VERSION}; {problem}"
        return Fault(Code.UNKNOWN_KIND, "kind", reason, ("kind",))
    if kind == LIFECYCLE_KIND:
        problem = f"found {api_version[:60]!r}" if api_version else "it is missing"
        reason = f"the apiVersion of a {LIFECYCLE_KIND} document must be {LIFECYCLE_API_VERSION}; {problem}"
        return Fault(Code.UNKNOWN_KIND, "kind", reason, ("kind",))
    if kind in _DEFINITION_KINDS:
        reason = f"a {kind} is a definition; a source has definitions or objects of a package, not both"
        return Fault(Code.UNKNOWN_KIND, "kind", reason, ("kind",))
    alike = nearest(kind.strip(), _KINDS_ABOUT_PACKAGES if api_version == MANIFEST_API_VERSION else _ACCEPTED)
    reason = f"there is no kind {kind[:60]!r}; write " + (alike or f"one of {_KINDS_LISTED}")
    return Fault(Code.UNKNOWN_KIND, "kind", reason, ("kind",), rewrite=Rewrite(alike) if alike else None)


def _unique(named: Mapping[str, Sequence[_Named]], findings: _Findings) -> list[_Named]:
    """
    Step 4: the objects to check further, kind by kind in the order of the table.

    An object whose name an earlier object of its family has is not among them, unless its ``metadata.name`` is invalid.
    """
    unique = []
    meta_names: dict[tuple[str, str], int] = {}
    display_names: dict[tuple[str, str], int] = {}
    for item in (item for kind in KINDS for item in named[kind]):
        meta, display = (item.kind.family, item.name), (item.kind.family, item.display_name)
        taken = None
        if meta in meta_names and not item.fault:
            taken = _taken(item, ("metadata", "name"), item.name, meta_names[meta])
        else:
            # An object that is dropped for its display name still occupies its metadata.name
            # (docs/reference/package-format.md, "Unique names").
            meta_names[meta] = item.position
            if item.kind.unique_display_name and item.display_name and display in display_names:
                taken = _taken(item, ("spec", "name"), item.display_name, display_names[display])
            else:
                display_names[display] = item.position
        if taken:
            findings.faults.setdefault(item.position, []).append(taken)
        if not taken or item.fault:
            unique.append(item)
    return unique


def _taken(item: _Named, pointer: tuple[str, str], name: str, first: int) -> Fault:
    path = ".".join(pointer)
    related = (Elsewhere(first, pointer, f"root[{first}] has this name"),)
    reason = f"choose another name: {name[:80]!r} is taken among the {item.kind.resource_type} by root[{first}]"
    return Fault(Code.NAME_TAKEN, path, reason, pointer, first, related=related)


def _read(item: _Named, raw: RawObject, labels: _Labels, scope: Scope, findings: _Findings) -> None:
    """Steps 5 and 6."""
    fields, kind = Fields(raw.spec, "spec", ("spec",)), item.kind
    attached: Sequence[Key] | None = None
    association_faults: Sequence[Fault] = ()
    elsewhere: Sequence[_Place] = ()
    takes_labels_by_value = False
    if (values := plain_spec(kind.name)(raw.spec)) is not None:
        findings.unremarkable.add(item.position)
        attached = labels.attached(values.pop("associations", ()))
        scope = scope._replace(values=values)
    if attached is None:
        attached, association_faults, elsewhere = (
            _associations(fields, labels, scope) if kind.labelled else ((), (), ())
        )
        takes_labels_by_value = _refers_to_labels(fields)
    takes_invalid_labels = not labels.invalid.isdisjoint(key.name for key in attached)
    if takes_invalid_labels:
        attached = [key for key in attached if key.name not in labels.invalid]
    reading = kind.read(fields, scope)
    policy = read_policy(raw.metadata.get("lifecycle"), "metadata.lifecycle", _LIFECYCLE, has_rules=False)
    faults = [*policy.faults, *reading.faults, *association_faults]
    if faults:
        findings.faults.setdefault(item.position, []).extend(faults)
    if reading.remarks:
        findings.remarks[item.position] = reading.remarks
    key = Key(kind.name, item.name)
    if scope.required is not None:
        elsewhere = [*elsewhere, *_uses_elsewhere(kind, reading, {fault.path for fault in faults})]
        findings.package_references += [FieldElsewhere(item.position, key, *place) for place in elsewhere]
    if kind.holds_credentials and (credentials := kind.fields.written_out(raw.spec)):
        findings.credentials[item.position] = key, credentials
    uses = _uses(item, reading, attached, labels)
    findings.references += [use.reference for use in uses if use.registered]
    if item.fault:
        return
    written = _written(item, reading)
    package_object = findings.objects[item.position] = Object(
        key,
        raw.api_version,
        spec_of(reading.spec),
        tuple(attached),
        _env_references(kind, uses, scope.env) if uses else (),
        written,
        raw.location,
        canonical_text(policy.policy) if policy.policy and not policy.faults else "",
    )
    depends = uses or written or elsewhere or kind.uses or kind.holds_credentials
    depends = depends or takes_labels_by_value or takes_invalid_labels
    if not (depends or faults or reading.remarks):
        findings.self_contained[item.position] = package_object


def _uses(item: _Named, reading: ReadResult, attached: Sequence[Key], labels: _Labels) -> list[UsedReference]:
    """
    The references of an object to values and secrets: in its own names, in the names of its labels, and in its spec.
    """
    uses = []
    if item.meta.is_one or item.display.is_one or reading.named_by:
        uses += [
            UsedReference(item.meta, "metadata.name"),
            reading.named_by or UsedReference(item.display, "spec.name"),
        ]
    if labels.by_value:
        # Not registered: the label itself reports a missing value.
        uses += [
            UsedReference(labels.by_name[key.name].meta, f"spec.associations[{position}].name", registered=False)
            for position, key in enumerate(attached)
            if key.name in labels.by_value
        ]
    uses += reading.references
    return [use for use in uses if use.reference.is_one]


def _env_references(kind: Kind, uses: Sequence[UsedReference], env: Mapping[str, Any]) -> tuple[EnvReference, ...]:
    listed = [use.listed(env) for use in uses if use.reference.env_key and use.resource_field]
    if kind.references_by_key:
        listed.sort(key=lambda reference: reference.env_key)
    return tuple(listed)


def _written(item: _Named, reading: ReadResult) -> tuple[WrittenValue, ...]:
    """The values that rendering writes instead of the values in the spec."""
    if not (item.meta.is_one or item.display.is_one or reading.written):
        return ()
    names = {"/metadata/name": item.meta, "/spec/name": item.display}
    values = {pointer: reference.written() for pointer, reference in names.items() if reference.is_one}
    values |= {f"/spec{pointer}": value for pointer, value in reading.written.items()}
    return tuple(WrittenValue(pointer, canonical_text(value)) for pointer, value in sorted(values.items()))


def _uses_elsewhere(kind: Kind, reading: ReadResult, faulty: Set[str]) -> Iterator[_Place]:
    """The fields in ``Kind.uses`` that name an object of another package, without *faulty* paths."""
    for name in kind.uses:
        elsewhere = name_elsewhere(reading.spec.get(name, ""))
        if elsewhere and f"spec.{name}" not in faulty:
            yield f"spec.{name}", ("spec", name), elsewhere


def _associations(fields: Fields, labels: _Labels, scope: Scope) -> tuple[list[Key], list[Fault], list[_Place]]:
    """
    The labels of an object, sorted, the faults of its associations (docs/reference/package-format.md, "Associations"),
    and the associations with labels of other packages.
    """
    attached: set[str] = set()
    faults = []
    elsewhere: list[_Place] = []
    required = scope.required
    for entry in fields.mappings("associations"):
        # The paths of associations lack the element "spec" (docs/reference/package-format.md, "Oddities", P7).
        path = entry.path.removeprefix("spec.")
        kind, name = entry.text("kind"), read_reference(entry.value.get("name")).resolved(scope.env)
        pointer = (*entry.pointer, "name")
        if kind not in ACCEPTED:
            problem = f"found {kind[:60]!r}" if kind else "it is missing"
            reason = f"the kind of an association must be Label; {problem}"
            rewrite = Rewrite(LABEL) if nearest(kind, _ACCEPTED) == LABEL else None
            faults.append(
                Fault(Code.ASSOCIATION_KIND_INVALID, f"{path}.kind", reason, (*entry.pointer, "kind"), rewrite=rewrite)
            )
        elif kind != LABEL:
            continue
        elif name in attached:
            reason = f"the label {name!r} is associated twice; leave one out"
            faults.append(Fault(Code.LABEL_REPEATED, path, reason, pointer))
        elif name in labels.by_name:
            attached.add(name)
        elif required is not None and (other := name_elsewhere(name)):
            fault = fault_elsewhere(other, entry.value.get("name") == name, required, path, pointer)
            if fault:
                faults.append(fault)
            else:
                attached.add(name)
                elsewhere.append((path, pointer, other))
        else:
            faults.append(_unknown_label(path, pointer, name, entry.value.get("name") == name, labels))
    return [Key(LABEL, name) for name in sorted(attached)], faults, elsewhere


def _refers_to_labels(fields: Fields) -> bool:
    """Whether an association takes the name of its label from an environment value."""
    return any(
        isinstance(entry, dict) and isinstance(entry.get("name"), dict) for entry in fields.items("associations")
    )


def _unknown_label(path: str, pointer: tuple[str | int, ...], name: str, is_literal: bool, labels: _Labels) -> Fault:
    """
    The fault of an association with a label that the package does not have.

    Args:
        path: The path of the association.
        pointer: The pointer to the name in the association.
        name: The name in the association; empty: it has none.
        is_literal: Whether the source has the name itself, not a reference.
        labels: The labels of the package.
    """
    if not name:
        reason = "the association names no label; write the metadata.name of one as its name"
        return Fault(Code.LABEL_NOT_FOUND, path, reason, pointer)
    if label := labels.by_display_name.get(name):
        reason = f"associations name a label by its metadata.name: write {label.name[:80]!r}, not {name[:80]!r}"
        related = (Elsewhere(label.position, ("metadata", "name"), "this label is meant"),)
        rewrite = Rewrite(label.name) if is_literal else None
        return Fault(Code.LABEL_NOT_FOUND, path, reason, pointer, rewrite=rewrite, related=related)
    reason = f"the package has no label with the metadata.name {name[:80]!r}; it has {labels.shown}"
    return Fault(Code.LABEL_NOT_FOUND, path, reason, pointer)
