"""Objects as a whole: the fields that all kinds have, and the JSON Schemas of objects (draft 2020-12)."""

from functools import cache
from typing import Any

from services.core.model import LABEL
from services.kinds.format.field_table import Field, Mappings, Table
from services.kinds.format.kind import Kind
from services.kinds.format.package_names import OF_OTHERS
from services.kinds.format.plain_reading import PlainReader, plain_reader
from services.kinds.format.references import Referable
from services.kinds.format.shapes import UNKNOWN_FIELD, Free, Schema, Text, deprecated
from services.kinds.policy_reading import policy_schema
from services.kinds.registry import FAMILY_NAMES, KINDS

API_VERSIONS = ("influxdata.com/v2alpha1", "influxdata.com/v2alpha2")

DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAME_FORM = "[a-z0-9]([-_a-z0-9]{0,61}[a-z0-9])?"
"""The form of a metadata.name."""


class _Name(Referable):
    """The shape of a metadata.name."""

    def schema(self) -> Schema:
        """The schema of a literal or reference, in which a text has the form of a name."""
        return {**super().schema(), "pattern": f"^{NAME_FORM}$"}


_POLICY = "Policy"
"""The name of the schema of policies of objects, which all kinds share."""

METADATA = Table(
    Field("name", _Name(), "Identity of the object: 1 to 63 lower-case letters, digits, - or _."),
    Field("lifecycle", Free({"$ref": f"#/$defs/{_POLICY}"}), "Policy of this object, above that of its stack."),
    required=("name",),
)

_ASSOCIATION = Table(
    Field("kind", Text(words=(LABEL,), required=True), "What is associated: Label."),
    Field("name", Referable(), f"metadata.name of a label of the same package, {OF_OTHERS}."),
    required=("kind", "name"),
)
_NAME = Field("name", Referable(), "Display name; metadata.name when left out.")
_ASSOCIATIONS = Field("associations", Mappings(_ASSOCIATION), "Labels of the object.")


@cache
def spec_table(name: str) -> Table:
    """All fields of the spec of the kind *name*."""
    kind = KINDS[name]
    return kind.fields.with_fields(_NAME, *([_ASSOCIATIONS] if kind.labelled else []))


@cache
def plain_spec(name: str) -> PlainReader:
    """Reads the specs of the kind *name* that are plainly right, with all fields of ``spec_table``."""
    return plain_reader(spec_table(name))


def kind_schema(kind: Kind) -> Schema:
    """JSON Schema of an object of one kind."""
    return {"$schema": DIALECT, "title": kind.name, "description": kind.about, **_object(kind), "$defs": _policies()}


def package_schema() -> Schema:
    """
    JSON Schema of one document of a YAML source: one object of any kind, or nothing (docs/reference/package-format.md,
    "YAML").
    """
    by_kind = [
        {
            "if": {"type": "object", "properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": {"$ref": f"#/$defs/{name}"},
        }
        for name in sorted(KINDS)
    ]
    return {
        "$schema": DIALECT,
        "title": "Object of a package",
        "type": ["object", "null"],
        "properties": {"kind": _kinds()},
        "required": ["apiVersion", "kind"],
        "allOf": by_kind,
        "$defs": {name: {"description": kind.about, **_object(kind)} for name, kind in sorted(KINDS.items())}
        | _policies(),
    }


def _policies() -> Schema:
    return {_POLICY: policy_schema(has_rules=False)}


def _kinds() -> Schema:
    """The names of kinds; names of families are flagged, as their objects are ignored."""
    families = [
        {"const": name, **deprecated(f"Objects of kind {name} are ignored: write one of {', '.join(_members(name))}.")}
        for name in sorted(FAMILY_NAMES)
    ]
    return {"description": "What the object declares.", "anyOf": [{"enum": sorted(KINDS)}, *families]}


def _members(family: str) -> list[str]:
    return sorted(name for name, kind in KINDS.items() if kind.family_kind == family)


def _object(kind: Kind) -> dict[str, Any]:
    # Without required fields a spec may be left out or null.
    spec = spec_table(kind.name).schema()
    needed = ["spec"] if "required" in spec or "anyOf" in spec else []
    if not needed:
        spec["type"] = ["object", "null"]
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"description": "Version of the package format.", "enum": list(API_VERSIONS)},
            "kind": {"description": kind.about, "const": kind.name},
            "metadata": METADATA.schema(),
            "spec": spec,
        },
        "required": ["apiVersion", "kind", "metadata", *needed],
        "additionalProperties": UNKNOWN_FIELD,
    }
