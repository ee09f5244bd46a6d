"""The manifest of a package: its name, version and requirements (docs/reference/package-format.md, "The manifest")."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from services.kinds.diagnostics import Code
from services.kinds.format.field_table import Field, Table
from services.kinds.format.fields import Elsewhere, Fault, Fields, Pointer, Remark, Rewrite, described
from services.kinds.format.package_names import PACKAGE_NAME_FORM, is_package_name
from services.kinds.format.shapes import UNKNOWN_FIELD, Free, Schema
from services.kinds.schema import DIALECT, package_schema
from services.packages.lifecycle import KIND as LIFECYCLE
from services.packages.lifecycle import lifecycle_object_schema
from services.packages.ranges import MAX_RANGE_LENGTH, Range
from services.packages.versions import MAX_VERSION_LENGTH, ParseProblem, Version

KIND = "Package"
API_VERSION = "pkger/v1"
_API_GROUP = "pkger/"

MAX_REQUIREMENTS = 100
MAX_FILES = 99
"""Number of further files: with that of the manifest, a version has at most 100 (docs/dependencies.md)."""

MAX_PATH_LENGTH = 255
MAX_DESCRIPTION_LENGTH = 4096

_FOREIGN_IN_PATH = re.compile(r"[^A-Za-z0-9_./-]")
_ENDINGS = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Requirement:
    """
    Another package that a package needs.

    Attributes:
        name: Its name.
        range: The versions that will do; None: any version, prereleases included, which is more than ``*``.
    """

    name: str
    range: Range | None = None

    def __str__(self) -> str:
        return self.name if self.range is None else f"{self.name} {self.range}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """
    What a package says of itself.

    Attributes:
        name: The name under which it is published.
        version: Its version.
        description: What it is for.
        requires: The packages that it needs, each once, as written.
        platform: The versions of the planner that will do; None: any.
        files: Its further files, relative to that of the manifest, in the order in which their objects follow.
    """

    name: str
    version: Version
    description: str = ""
    requires: tuple[Requirement, ...] = ()
    platform: Range | None = None
    files: tuple[str, ...] = ()


class ManifestReading(NamedTuple):
    """
    The result of reading a manifest.

    Attributes:
        manifest: The manifest; None if it has faults.
        faults: All of them, in the order of the fields.
        required: The names of the requirements that have one, also if there are faults.
    """

    manifest: Manifest | None
    faults: tuple[Fault, ...]
    required: frozenset[str]


def is_manifest(kind: str, api_version: str) -> bool:
    """
    Whether an object is meant to be a manifest.

    A ``Package`` of another group is none: templates of InfluxDB once had such a kind, which is no kind any more.
    """
    return kind == KIND and api_version.strip().lower().startswith(_API_GROUP)


_NAME_SHAPE = Free({"type": "string", "pattern": f"^{PACKAGE_NAME_FORM}$"})
_RANGE_SHAPE = Free({"type": ["string", "null"], "maxLength": MAX_RANGE_LENGTH})
_VALUES = Field("values", Free({"type": "null"}), "Not accepted yet.")

_METADATA = Table(Field("name", _NAME_SHAPE, "Name of the package."), required=("name",))
_REQUIREMENT = Table(
    Field("name", _NAME_SHAPE, "Name of the package that is needed."),
    Field("version", _RANGE_SHAPE, "Range of its versions, such as ^1.2; any version when left out."),
    _VALUES,
    required=("name",),
)
_SPEC = Table(
    Field("version", Free({"type": "string", "minLength": 1, "maxLength": MAX_VERSION_LENGTH}), "Such as 1.4.0+2."),
    Field(
        "requires",
        Free({"type": ["array", "null"], "items": _REQUIREMENT.schema(), "maxItems": MAX_REQUIREMENTS}),
        "The packages that this one needs.",
    ),
    Field("platform", _RANGE_SHAPE, "Range of versions of pkger; any when left out."),
    Field(
        "files",
        Free(
            {
                "type": ["array", "null"],
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_PATH_LENGTH},
                "maxItems": MAX_FILES,
            }
        ),
        "Further files of the package, relative to that of the manifest: .yaml, .yml or .json.",
    ),
    Field("description", Free({"type": ["string", "null"], "maxLength": MAX_DESCRIPTION_LENGTH}), "What it is for."),
    _VALUES,
    required=("version",),
)
"""Their keys and schemas. The rules are code, as most of them are about texts of a form, or about several items."""


def manifest_schema() -> Schema:
    """JSON Schema of a manifest."""
    return {"$schema": DIALECT, "title": KIND, **_object_schema()}


def document_schema() -> Schema:
    """JSON Schema of a document of a YAML source: an object, a manifest, a Lifecycle document, or nothing."""
    schema = package_schema()
    kinds = schema["properties"]["kind"]
    own, *families = kinds["anyOf"]
    schemas = {KIND: _object_schema(), LIFECYCLE: lifecycle_object_schema()}
    by_kind = [
        {
            "if": {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{kind}"},
        }
        for kind in schemas
    ]
    return {
        **schema,
        "properties": {"kind": {**kinds, "anyOf": [{"enum": sorted([*own["enum"], *schemas])}, *families]}},
        "allOf": [*schema["allOf"], *by_kind],
        "$defs": dict(sorted({**schema["$defs"], **schemas}.items())),
    }


def _object_schema() -> Schema:
    about = "Manifest of a package: its name, version and requirements."
    return {
        "description": about,
        "type": "object",
        "properties": {
            "apiVersion": {"description": "Version of the format of manifests.", "const": API_VERSION},
            "kind": {"description": about, "const": KIND},
            "metadata": _METADATA.schema(),
            "spec": _SPEC.schema(),
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": UNKNOWN_FIELD,
    }


def manifest_remarks(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Remark]:
    """The remarks on a manifest: unknown keys, in the order of the parts."""
    yield from _METADATA.remarks(Fields(metadata, "metadata", ("metadata",)))
    fields = Fields(spec, "spec", ("spec",))
    yield from _SPEC.remarks(fields)
    for item in _items(fields, "requires"):
        if isinstance(item.value, dict):
            yield from _REQUIREMENT.remarks(Fields(item.value, item.path, item.pointer))


def read_manifest(
    api_version: str, metadata: Mapping[str, Any], spec: Mapping[str, Any], position: int
) -> ManifestReading:
    """
    Read a manifest and check all its rules.

    Args:
        api_version: As written.
        metadata: As written.
        spec: As written.
        position: The position of the object in its package.
    """
    faults = [*_api_version_faults(api_version)]
    fields = Fields(spec, "spec", ("spec",))
    name = _checked_name(_field(Fields(metadata, "metadata", ("metadata",)), "name"), "metadata.name", faults)
    version = _version(_field(fields, "version"), faults)
    requires = _requirements(fields, name, position, faults)
    platform = _range(_field(fields, "platform"), "platform", faults)
    files = _files(fields, position, faults)
    description = _description(_field(fields, "description"), faults)
    faults += _values_faults(_field(fields, "values"))
    required = frozenset(requirement.name for requirement in requires if requirement.name)
    if faults or version is None:
        return ManifestReading(None, tuple(faults), required)
    manifest = Manifest(name, version, description, tuple(requires), platform, tuple(files))
    return ManifestReading(manifest, (), required)


class _Item(NamedTuple):
    """A value of the manifest with its place."""

    value: Any
    path: str
    pointer: Pointer

    def fault(
        self, code: Code, reason: str, rewrite: Rewrite | None = None, related: tuple[Elsewhere, ...] = ()
    ) -> Fault:
        """A fault of the value."""
        return Fault(code, self.path, reason, self.pointer, rewrite=rewrite, related=related)


def _field(fields: Fields, key: str) -> _Item:
    return _Item(fields.value.get(key), f"{fields.path}.{key}", (*fields.pointer, key))


def _items(fields: Fields, key: str) -> list[_Item]:
    """The items of a list, all of them counted; none if there is no list."""
    return [
        _Item(value, f"{fields.path}.{key}[{place}]", (*fields.pointer, key, place))
        for place, value in enumerate(fields.items(key))
    ]


def _api_version_faults(api_version: str) -> Iterator[Fault]:
    if api_version != API_VERSION:
        reason = f"apiVersion of a manifest must be {API_VERSION}; found {api_version[:60]!r}"
        yield Fault(Code.API_VERSION_INVALID, "apiVersion", reason, ("apiVersion",), rewrite=Rewrite(API_VERSION))


def _checked_name(item: _Item, what: str, faults: list[Fault]) -> str:
    """The name of a package; empty if it is none."""
    if isinstance(item.value, str) and is_package_name(item.value):
        return item.value
    reason = (
        f"{what} must be 1 to 63 lower-case letters, digits or -, with a letter or digit first and last; {_shown(item)}"
    )
    faults.append(item.fault(Code.NAME_INVALID, reason))
    return ""


def _version(item: _Item, faults: list[Fault]) -> Version | None:
    if item.value is None:
        faults.append(item.fault(Code.FIELD_MISSING, "a manifest needs a version; write one such as 1.0.0"))
        return None
    if _is_number(item.value):
        reason = f"version must be three numbers with dots, such as 1.0.0; {_shown(item)}"
        faults.append(item.fault(Code.VERSION_INVALID, reason))
        return None
    text = _text(item, "version", Code.VERSION_INVALID, faults)
    if text is None:
        return None
    try:
        version = Version.parse(text)
    except ParseProblem as problem:
        faults.append(item.fault(Code.VERSION_INVALID, f"version {text[:80]!r} is none: {_told(problem)}"))
        return None
    if version.text != text:
        reason = f"version {text!r} is not canonical; write {version}"
        faults.append(item.fault(Code.VERSION_INVALID, reason, Rewrite(version.text)))
    return version


def _range(item: _Item, key: str, faults: list[Fault]) -> Range | None:
    """The range of a field; None where it is left out or invalid."""
    if item.value is None or (text := _text(item, key, Code.VERSION_RANGE_INVALID, faults)) is None:
        return None
    try:
        return Range.parse(text)
    except ParseProblem as problem:
        reason = f"{key} {text[:80]!r} is no range of versions: {_told(problem)}"
        faults.append(item.fault(Code.VERSION_RANGE_INVALID, reason))
        return None


def _told(problem: ParseProblem) -> str:
    return f"{problem.text}, at position {problem.position}; {problem.remedy}"


def _requirements(fields: Fields, name: str, position: int, faults: list[Fault]) -> list[Requirement]:
    """The requirements; one without a name has an empty one."""
    _check_list(_field(fields, "requires"), MAX_REQUIREMENTS, "requirements", "mappings with name and version", faults)
    requirements = []
    first_pointers: dict[str, Pointer] = {}
    for item in _items(fields, "requires"):
        if not isinstance(item.value, dict):
            reason = f"a requirement must be a mapping with name and version; {_shown(item)}"
            faults.append(item.fault(Code.REQUIREMENT_INVALID, reason))
            continue
        within = Fields(item.value, item.path, item.pointer)
        named = _field(within, "name")
        required = _checked_name(named, "the name of a requirement", faults)
        if required and required == name:
            reason = f"the package {name!r} requires itself; remove this requirement"
            faults.append(named.fault(Code.REQUIREMENT_INVALID, reason))
        elif required in first_pointers:
            reason = f"the package {required!r} is required twice; write one requirement with both ranges"
            related = (Elsewhere(position, first_pointers[required], "it is required here"),)
            faults.append(named.fault(Code.REQUIREMENT_INVALID, reason, related=related))
        elif required:
            first_pointers[required] = named.pointer
        requirements.append(Requirement(required, _range(_field(within, "version"), "version", faults)))
        faults += _values_faults(_field(within, "values"))
    return requirements


def _values_faults(item: _Item) -> Iterator[Fault]:
    if item.value is not None:
        yield item.fault(Code.FIELD_NOT_ACCEPTED, "values of packages are not accepted yet; remove them")


def _files(fields: Fields, position: int, faults: list[Fault]) -> list[str]:
    _check_list(_field(fields, "files"), MAX_FILES, "files", "paths", faults)
    first_pointers: dict[str, Pointer] = {}
    for item in _items(fields, "files"):
        if not isinstance(item.value, str):
            faults.append(item.fault(Code.FILE_PATH_INVALID, f"each of the files must be a path; {_shown(item)}"))
        elif problem := path_problem(item.value):
            reason = f"the file {item.value[:80]!r} {problem}"
            faults.append(item.fault(Code.FILE_PATH_INVALID, reason))
        elif item.value in first_pointers:
            related = (Elsewhere(position, first_pointers[item.value], "it is listed here"),)
            reason = f"the file {item.value!r} is listed twice; remove one of them"
            faults.append(item.fault(Code.FILE_PATH_INVALID, reason, related=related))
        else:
            first_pointers[item.value] = item.pointer
    return [*first_pointers]


def path_problem(path: str) -> str:
    """
    What is wrong with the path of a further file, and what to write, after the words "the file PATH"; else empty.

    Such a path is relative, stays below the folder of the manifest, and means the same in a URL.
    """
    if problem := unsafe_path_problem(path):
        return problem
    if path.lower().endswith(("jsonnet", "libsonnet")):
        return "is Jsonnet, which is not published; list the YAML or JSON that it gives"
    if not path.endswith(_ENDINGS):
        return f"must end in {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}"
    return ""


def unsafe_path_problem(path: str) -> str:
    """As ``path_problem``, of a path that could lead out of the folder, or mean something else elsewhere."""
    if len(path) > MAX_PATH_LENGTH:
        return f"has {len(path):,} characters; at most {MAX_PATH_LENGTH} are accepted"
    if path.startswith("/"):
        return "is absolute; write its path relative to the file of the manifest"
    foreign = _FOREIGN_IN_PATH.search(path)
    if foreign:
        return f"has the character {foreign.group()!r}; use letters, digits, _ . - and / only"
    if not {"", ".", ".."}.isdisjoint(path.split("/")):
        return "has an empty part, . or ..; write a path below the folder of the manifest, such as labels/team.yaml"
    return ""


def _description(item: _Item, faults: list[Fault]) -> str:
    if item.value is None:
        return ""
    text = _text(item, "description", Code.TEXT_INVALID, faults)
    if text and len(text) > MAX_DESCRIPTION_LENGTH:
        reason = f"description has {len(text):,} characters; at most {MAX_DESCRIPTION_LENGTH:,} are accepted"
        faults.append(item.fault(Code.TEXT_INVALID, reason))
    return text or ""


def _text(item: _Item, key: str, code: Code, faults: list[Fault]) -> str | None:
    """
    The text of a field; None, with a fault, for a value of another type.

    A number is none: ``version: 1.10`` in YAML is the number 1.1.
    """
    if isinstance(item.value, str):
        return item.value
    is_number = _is_number(item.value)
    remedy = "; put it in quotes" if is_number else ""
    faults.append(
        item.fault(code, f"{key} must be a text; {_shown(item)}{remedy}", Rewrite(None) if is_number else None)
    )
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_list(item: _Item, most: int, noun: str, what: str, faults: list[Fault]) -> None:
    if item.value is None:
        return
    if not isinstance(item.value, list):
        faults.append(item.fault(Code.LIST_INVALID, f"{noun} must be a list of {what}; {_shown(item)}"))
    elif len(item.value) > most:
        reason = f"a manifest has at most {most} {noun}; found {len(item.value):,}"
        faults.append(item.fault(Code.LIST_INVALID, reason))


def _shown(item: _Item) -> str:
    """The value of a field, as the end of a reason."""
    if item.value is None:
        return "it is missing"
    if isinstance(item.value, dict) and not item.value.keys().isdisjoint(("envRef", "secretRef")):
        return "found a reference, and a manifest has none"
    return f"found {described(item.value)}"
