"""
A package as the text that revisions retain: a line of canonical JSON for each installed package, sorted by name, then
one for each Lifecycle document, sorted by package, then one for each object, sorted by key.

It contains the applied objects only: no environment values, no positions in sources, and nothing that can be computed
from the objects. Equal packages have equal texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from services.core.model import LABEL, Key, Object, Spec, WrittenValue
from services.kinds.format.canonical import canonical_text
from services.packages.installed import InstalledPackage, PackageOrigin, versions_in
from services.packages.manifest import Requirement
from services.packages.ranges import Range
from services.packages.versions import Version


class Declaration(NamedTuple):
    """
    What one package declares of an object that several packages declare alike, or that names such an object.

    Attributes:
        key: The full name that the object has in this package.
        labels: The full names of the labels that the package declares, sorted; of a label that several packages
            declare, the one that this package names.
        lifecycle: The policy in ``metadata.lifecycle`` in this package, as canonical JSON; empty: it has none.
    """

    key: Key
    labels: tuple[Key, ...]
    lifecycle: str = ""


@dataclass(frozen=True, slots=True)
class KeptPackage:
    """
    The package of a revision.

    Attributes:
        objects: The objects, with unique keys, sorted by key.
        untouched: Keys of objects that the stack had and the apply skipped, without a wanted state. Some of them are in
            *objects*, as other objects refer to them.
        packages: The installed packages, sorted by name; none in a stack without packages.
        declarations: The declarations of objects that several packages declare, or that name such objects, by key.
        lifecycles: The Lifecycle documents, as ``Package`` has them.
    """

    objects: tuple[Object, ...]
    untouched: frozenset[Key] = frozenset()
    packages: tuple[InstalledPackage, ...] = ()
    declarations: Mapping[Key, tuple[Declaration, ...]] = field(default_factory=dict)
    lifecycles: Mapping[str, str] = field(default_factory=dict)

    @property
    def applied(self) -> dict[Key, Object]:
        """The objects that a stack has at this revision, by key."""
        return {item.key: item for item in self.objects if item.key not in self.untouched}


NOTHING_KEPT = KeptPackage(())
"""The package of a stack without a revision, and of one without objects."""


def package_text(package: KeptPackage) -> str:
    """Write *package*; its objects may come in any order."""
    object_lines = {
        item.key: _line(item, item.key in package.untouched, package.declarations.get(item.key, ()))
        for item in package.objects
    }
    lines = object_lines | {key: canonical_text(_of_key(key, True)) for key in package.untouched - object_lines.keys()}
    installed = [canonical_text(_installed(each)) for each in sorted(package.packages, key=lambda each: each.name)]
    documents = [_document_line(name, package.lifecycles[name]) for name in sorted(package.lifecycles)]
    return "".join(f"{line}\n" for line in (*installed, *documents, *(lines[key] for key in sorted(lines))))


def read_package(text: str) -> KeptPackage:
    """Read what ``package_text`` wrote."""
    objects: list[Object] = []
    packages: list[InstalledPackage] = []
    untouched: set[Key] = set()
    declarations: dict[Key, tuple[Declaration, ...]] = {}
    lifecycles: dict[str, str] = {}
    # Not splitlines: other line breaks may stand unescaped in JSON text.
    for line in text.split("\n")[:-1]:
        value = orjson.loads(line)
        if "package" in value:
            packages.append(_package(value))
            continue
        if "document" in value:
            lifecycles[value["of"]] = canonical_text(value["document"])
            continue
        key = Key(value["kind"], value["name"])
        if value.get("untouched"):
            untouched.add(key)
        if "spec" in value:
            objects.append(_object(key, value))
        if "declared" in value:
            declarations[key] = tuple(
                Declaration(Key(key.kind, name), tuple(Key(LABEL, label) for label in labels), *lifecycle)
                for name, labels, *lifecycle in value["declared"]
            )
    return KeptPackage(tuple(objects), frozenset(untouched), tuple(packages), declarations, lifecycles)


def _line(item: Object, is_untouched: bool, declarations: Sequence[Declaration]) -> str:
    fields = _of_key(item.key, is_untouched) | {"apiVersion": item.api_version}
    if declarations:
        fields["declared"] = [_declared(each) for each in declarations]
    if item.associations:
        fields["associations"] = [label.name for label in item.associations]
    if item.written:
        fields["written"] = [[each.pointer, each.text] for each in item.written]
    if item.lifecycle:
        fields["lifecycle"] = orjson.loads(item.lifecycle)
    # The text of a spec is canonical already; reading it again would take most of the time of a large plan.
    return f'{canonical_text(fields)[:-1]},"spec":{item.spec.text}}}'


def _declared(declaration: Declaration) -> list[object]:
    labels = [label.name for label in declaration.labels]
    return [declaration.key.name, labels, *([declaration.lifecycle] if declaration.lifecycle else [])]


def _document_line(package: str, document: str) -> str:
    return f'{{"document":{document},"of":{canonical_text(package)}}}'


def _installed(package: InstalledPackage) -> dict[str, object]:
    fields: dict[str, object] = {
        "package": package.name,
        "version": package.version.text,
        "origin": package.origin.value,
        "digest": package.digest,
        "content": package.content_digest,
    }
    if package.repository is not None:
        fields["repository"] = package.repository
    if package.requested is not None:
        fields["requested"] = str(package.requested)
    fields |= {"pinned": True} if package.is_pinned else {}
    fields |= {"suspended": True} if package.is_suspended else {}
    if package.requires:
        fields["requires"] = [
            {"name": each.name} if each.range is None else {"name": each.name, "version": str(each.range)}
            for each in package.requires
        ]
    return fields


def _package(value: dict[str, Any]) -> InstalledPackage:
    return InstalledPackage(
        value["package"],
        Version.parse(value["version"]),
        value.get("repository"),
        PackageOrigin(value["origin"]),
        value.get("pinned", False),
        value.get("suspended", False),
        versions_in(value.get("requested", "")),
        tuple(
            Requirement(each["name"], Range.parse(each["version"]) if "version" in each else None)
            for each in value.get("requires", ())
        ),
        value["digest"],
        value["content"],
    )


def _of_key(key: Key, is_untouched: bool) -> dict[str, object]:
    fields: dict[str, object] = {"kind": key.kind, "name": key.name}
    return fields | {"untouched": True} if is_untouched else fields


def _object(key: Key, value: dict[str, object]) -> Object:
    spec, associations, written = value["spec"], value.get("associations", ()), value.get("written", ())
    assert isinstance(spec, dict)  # noqa: S101 - ``_line`` wrote it
    assert isinstance(associations, list | tuple)  # noqa: S101 - ``_line`` wrote it
    assert isinstance(written, list | tuple)  # noqa: S101 - ``_line`` wrote it
    return Object(
        key,
        str(value["apiVersion"]),
        Spec(canonical_text(spec), spec["name"], spec),
        tuple(Key(LABEL, name) for name in associations),
        written=tuple(WrittenValue(pointer, text) for pointer, text in written),
        lifecycle=canonical_text(value["lifecycle"]) if "lifecycle" in value else "",
    )
