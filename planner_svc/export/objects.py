"""The objects of an export: the chosen resources as package text, each compared with the resource it is made from."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from planner_svc.export.request import NamedResource
from planner_svc.export.selection import Chosen, Warned
from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.core.model import LABEL, Key, PlatformTraits, Resource, ResourceKey, Spec
from services.kinds.comparing import differences
from services.kinds.format.canonical import canonical_text, checked_spec, spec_of
from services.kinds.format.fields import Fields
from services.kinds.format.kind import ReadResult, Scope
from services.kinds.registry import EXPORT_ORDER, KINDS
from services.kinds.schema import API_VERSIONS
from services.syntax.writer import Writer

_SHOWN_PATHS = 3


@dataclass(slots=True)
class Exported:
    """
    A package made from resources.

    Attributes:
        lifecycle: The text of the Lifecycle document before them; empty: there is none.
        documents: The text of each object, in the order of kinds and then of names.
        kinds: The kind of each.
        warnings: Warnings about resources that are left out, or that the package does not reproduce exactly.
        secret_keys: Keys of the secrets that it refers to.
    """

    lifecycle: str = ""
    documents: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    secret_keys: set[str] = field(default_factory=set)


class WrittenObject(NamedTuple):
    """
    The object of one resource.

    Attributes:
        resource: The resource.
        key: The object.
        spec: Its spec as the parser would make it; as the platform has it, if packages cannot express it exactly.
        fields: The spec as a source has it.
        labels: The names of its labels, sorted.
        secret_keys: Keys of the secrets that it refers to.
        lifecycle: Its policy, as canonical JSON; empty: it has none.
    """

    resource: Resource
    key: Key
    spec: Spec
    fields: Mapping[str, Any]
    labels: Sequence[str]
    secret_keys: frozenset[str]
    lifecycle: str = ""

    def document(self) -> dict[str, Any]:
        """The object as a source has it."""
        spec = dict(self.fields)
        if self.labels:
            spec["associations"] = [{"kind": LABEL, "name": label} for label in self.labels]
        return {
            "apiVersion": API_VERSIONS[0],
            "kind": self.key.kind,
            "metadata": {"name": self.key.name}
            | ({"lifecycle": orjson.loads(self.lifecycle)} if self.lifecycle else {}),
            "spec": dict(sorted(spec.items())),
        }


class _LeftOut(Exception):
    """A resource cannot be written; the message says why."""


@dataclass(slots=True)
class _Package:
    """
    The objects that are written so far.

    Attributes:
        names: The metadata.name of each resource.
        keys: The objects by family and metadata.name.
        shown: The resource of each unique display name, by family and name.
        written: The resources that are written.
    """

    names: Mapping[ResourceKey, str]
    keys: dict[str, dict[str, Key]] = field(default_factory=dict)
    shown: dict[tuple[str, str], Resource] = field(default_factory=dict)
    written: set[ResourceKey] = field(default_factory=set)


def export_objects(
    chosen: Iterable[Chosen],
    names: Mapping[ResourceKey, str],
    platform: PlatformTraits,
    writer: Writer,
    lifecycles: Mapping[ResourceKey, str] = MappingProxyType({}),
) -> Exported:
    """
    Write *chosen* resources as the objects of one package.

    Args:
        chosen: The resources, with all that they refer to and all their labels.
        names: The metadata.name of each.
        platform: The platform; specs that it treats as equal give no warning.
        writer: Writes each object.
        lifecycles: The policies of the objects of those resources that have one.

    Raises:
        RequestInvalid: A new display name is invalid or taken.
    """
    exported = Exported()
    documents: list[tuple[int, str, str, str]] = []
    for each in written_objects(chosen, names, platform, exported.warnings, lifecycles):
        exported.secret_keys |= each.secret_keys
        # Written at once, as the text takes less memory than the value that it is made from.
        document = writer.document(each.document())
        documents.append((EXPORT_ORDER[each.key.kind], each.key.name, each.key.kind, document))
    for _, _, kind, text in sorted(documents):
        exported.documents.append(text)
        exported.kinds.append(kind)
    return exported


def written_objects(
    chosen: Iterable[Chosen],
    names: Mapping[ResourceKey, str],
    platform: PlatformTraits,
    warnings: list[Warned],
    lifecycles: Mapping[ResourceKey, str] = MappingProxyType({}),
) -> Iterator[WrittenObject]:
    """
    The objects of *chosen* resources, one by one, in an order in which each comes after those that it refers to.

    Args:
        chosen: As for ``export_objects``.
        names: As for ``export_objects``.
        platform: As for ``export_objects``.
        warnings: Gets the warnings about them.
        lifecycles: As for ``export_objects``.

    Raises:
        RequestInvalid: A new display name is invalid or taken.
    """
    package = _Package(names)
    # Resources that others refer to come first: if one is left out, so are those that refer to it.
    for each in sorted(chosen, key=lambda item: _order(item, names)):
        resource = each.resource
        try:
            written = _written(each, names[resource.kind, resource.id], package, platform, warnings)
            yield written._replace(lifecycle=lifecycles.get((resource.kind, resource.id), ""))
        except _LeftOut as reason:
            warnings.append(_warned(resource, f"{reason}, so it is left out", str(reason)))


def _order(chosen: Chosen, names: Mapping[ResourceKey, str]) -> tuple[bool, bool, bool, str, str]:
    """
    A sort key: labels first, then kinds without references.

    Within these, resources that keep their display name precede those that get a new one, so that a new name that is
    taken is the one that is refused.
    """
    resource = chosen.resource
    kind = KINDS[resource.kind]
    name = names[resource.kind, resource.id]
    return resource.kind != LABEL, bool(kind.uses), chosen.renaming is not None, resource.kind, name


def _written(
    chosen: Chosen, name: str, package: _Package, platform: PlatformTraits, warnings: list[Warned]
) -> WrittenObject:
    """
    The object of a resource.

    Raises:
        _LeftOut: It cannot be written.
        RequestInvalid: It cannot have its new name.
    """
    resource = chosen.resource
    kind = KINDS[resource.kind]
    spec = _spec(chosen, package)
    written = kind.written(spec.value)
    if paths := [*kind.fields.written_out(written), *platform.kinds[resource.kind].written_secrets(spec)]:
        raise _LeftOut(f"it holds a credential at {paths[0].lstrip('/')} instead of naming a secret")
    if spec.display_name != name:
        written["name"] = spec.display_name
    scope = Scope(name, spec.display_name, API_VERSIONS[0], objects=package.keys)
    reading = kind.read(Fields(written, "spec", ("spec",)), scope)
    _refuse_faults(chosen, reading)
    _reserve_display_name(chosen, spec.display_name, package)
    package.keys.setdefault(kind.family, {})[name] = Key(resource.kind, name)
    package.written.add((resource.kind, resource.id))
    if canonical_text(reading.spec) != spec.text:
        sets = platform.kinds[resource.kind].set_paths
        paths = [change.path for change in differences(resource.kind, spec, resource.kind, spec_of(reading.spec), sets)]
        if paths:
            shown = ", ".join(paths[:_SHOWN_PATHS]) + (" ..." if paths[_SHOWN_PATHS:] else "")
            text = f"a package cannot express {shown} exactly, so a plan of the package will show a difference there"
            warnings.append(_warned(resource, text))
        else:
            spec = spec_of(reading.spec)
    if masked(spec.text) != spec.text:
        fields = [key for key, value in written.items() if masked(canonical_text(value)) != canonical_text(value)]
        text = f"the package holds a credential as text, in an address in {', '.join(sorted(fields))}; keep it private"
        warnings.append(_warned(resource, text))
    for what in resource.unexpressed:
        warnings.append(_warned(resource, f"packages cannot express {what}, which is left out"))
    labels = sorted(package.names[LABEL, id_] for id_ in chosen.label_ids if (LABEL, id_) in package.written)
    secret_keys = frozenset(use.reference.secret_key for use in reading.references if use.reference.secret_key)
    key = Key(resource.kind, name)
    return WrittenObject(resource, key, spec, written, labels if kind.labelled else (), secret_keys)


def _spec(chosen: Chosen, package: _Package) -> Spec:
    """
    The spec of a resource in the package: its live spec, with its new display name and the names that it refers to.

    Raises:
        _LeftOut: The spec cannot be read, or a reference leads to no exported resource.
    """
    resource = chosen.resource
    try:
        # Read here, as the resource would cache the value until the end of the export.
        value = checked_spec(resource.spec.text).value
    except (ValueError, TypeError) as error:
        raise _LeftOut(f"it cannot be read: {error}") from None
    referred = {each.pointer: (each.kind, each.id) for each in resource.references}
    changed: dict[str, Any] = {}
    for used in KINDS[resource.kind].uses:
        other = referred.get(f"/{used}")
        if other is None:
            raise _LeftOut(f"its {used} refers to no resource")
        if other not in package.written:
            raise _LeftOut(f"the resource of its {used} is left out")
        changed[used] = package.names[other]
    if chosen.renaming:
        changed["name"] = chosen.renaming.new_name
    elif value.get("name") != resource.spec.display_name:
        changed["name"] = resource.spec.display_name
    if all(value.get(key) == word for key, word in changed.items()):
        return Spec(resource.spec.text, resource.spec.display_name, value)
    return spec_of({**value, **changed})


def _refuse_faults(chosen: Chosen, reading: ReadResult) -> None:
    """
    Refuse a resource that breaks a rule of packages.

    Raises:
        _LeftOut: Its own content breaks the rule.
        RequestInvalid: Its new display name breaks the rule.
    """
    for fault in reading.faults:
        if chosen.renaming and fault.path == "spec.name":
            raise RequestInvalid(_field(chosen.renaming), fault.reason)
        raise _LeftOut(f"it breaks a rule of packages ({fault.path}: {fault.reason})")


def _reserve_display_name(chosen: Chosen, display_name: str, package: _Package) -> None:
    """
    Reserve a display name for its object, if the kind demands unique ones.

    Raises:
        _LeftOut: Another object has it.
        RequestInvalid: It is a new name, and another object has it.
    """
    kind = KINDS[chosen.resource.kind]
    if not kind.unique_display_name:
        return
    first = package.shown.setdefault((kind.family, display_name), chosen.resource)
    if first is chosen.resource:
        return
    taken = f"{first.kind} {first.id} has the name {display_name!r}, which only one object of a package can have"
    if chosen.renaming:
        raise RequestInvalid(_field(chosen.renaming), taken)
    raise _LeftOut(taken)


def _field(named: NamedResource) -> str:
    return f"resources[{named.position}].new_name"


def _warned(resource: Resource, text: str, obstacle: str = "") -> Warned:
    shown = resource.spec.display_name
    return Warned(resource.kind, shown, resource.id, f"{resource.kind} {shown!r}: {text}", obstacle)


def in_order(warnings: Sequence[Warned]) -> list[Warned]:
    """The warnings in the order of the response."""
    return sorted(warnings, key=lambda each: (each.kind, each.display_name, each.id, each.text))
