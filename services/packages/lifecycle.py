"""
The ``Lifecycle`` document of a package: the policy for all of its objects (docs/reference/package-format.md, "The
Lifecycle document").
"""

from collections.abc import Container, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from services.kinds.diagnostics import Code
from services.kinds.format.canonical import canonical_text
from services.kinds.format.fields import THE_KEY, Fault, Rewrite, described
from services.kinds.format.names import LONGEST_META_NAME, is_meta_name
from services.kinds.format.shapes import Schema, nearest
from services.kinds.policy_reading import policy_schema, read_policy
from services.kinds.schema import DIALECT, NAME_FORM

KIND = "Lifecycle"
API_VERSION = "pkger/v1"
_API_GROUP = "pkger/"

_ENVELOPE = ("apiVersion", "kind", "metadata", "spec")

_FIELDS = ("policy",)
_RESERVED: Mapping[str, str] = {
    "version": "packages have a version in their manifest only",
    "stages": "objects are applied in the order that their references demand",
    "upgrades": "objects are not transformed between versions",
    "strict": "objects are not transformed between versions",
    "transforms": "objects are not transformed between versions",
    "replaces": "a stack does not take over from another one",
}
"""Fields that are not accepted yet, each with what holds instead."""


class LifecycleReading(NamedTuple):
    """
    The result of reading a ``Lifecycle`` document.

    Attributes:
        text: The document as canonical JSON; empty if it has faults.
        faults: All of them, in the order of the parts.
    """

    text: str
    faults: tuple[Fault, ...]


def is_lifecycle(kind: str, api_version: str) -> bool:
    """Whether an object is meant to be a ``Lifecycle`` document."""
    return kind == KIND and api_version.strip().lower().startswith(_API_GROUP)


def read_lifecycle(
    api_version: str, metadata: Mapping[str, Any], spec: Mapping[str, Any], unknown_keys: tuple[str, ...] = ()
) -> LifecycleReading:
    """
    Read a ``Lifecycle`` document and check all its rules.

    Args:
        api_version: As written.
        metadata: As written.
        spec: As written.
        unknown_keys: Keys beside these that it has.
    """
    faults = [_unknown(key, "", _ENVELOPE, _ENVELOPE) for key in sorted(unknown_keys)]
    if api_version != API_VERSION:
        reason = f"apiVersion of a {KIND} document must be {API_VERSION}; found {api_version[:60]!r}"
        faults.append(
            Fault(Code.API_VERSION_INVALID, "apiVersion", reason, ("apiVersion",), rewrite=Rewrite(API_VERSION))
        )
    faults += (_unknown(key, "metadata", ("name",), metadata) for key in metadata if key != "name")
    name = metadata.get("name")
    if not (isinstance(name, str) and is_meta_name(name)):
        faults.append(_invalid_name(name))
    faults += _spec_faults(spec)
    reading = read_policy(spec.get("policy"), "spec.policy", ("spec", "policy"), has_rules=True)
    faults += reading.faults
    if faults:
        return LifecycleReading("", tuple(faults))
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"policy": reading.policy} if reading.policy else {},
    }
    return LifecycleReading(canonical_text(document), ())


def checked_lifecycle(text: str) -> str:
    """
    Check the text of a ``Lifecycle`` document, and return it in canonical form.

    Raises:
        ValueError: It is none; the message says why.
    """
    document = orjson.loads(text)
    parts = document if isinstance(document, dict) else {}
    metadata, spec = parts.get("metadata"), parts.get("spec")
    if parts.get("kind") != KIND or not (isinstance(metadata, dict) and isinstance(spec, dict)):
        raise ValueError(f"is no {KIND} document with metadata and spec")
    unknown_keys = tuple(key for key in parts if key not in _ENVELOPE)
    reading = read_lifecycle(str(parts.get("apiVersion", "")), metadata, spec, unknown_keys)
    if reading.faults:
        raise ValueError(f"{reading.faults[0].path}: {reading.faults[0].reason}")
    return reading.text


def document_of(text: str) -> dict[str, Any]:
    """The document with the canonical *text*, as a source has it, with its parts in the order of an envelope."""
    document = orjson.loads(text)
    return {part: document[part] for part in _ENVELOPE}


def policy_in(text: str) -> Mapping[str, Any]:
    """The policy of the document with the canonical *text*."""
    policy: Mapping[str, Any] = orjson.loads(text)["spec"].get("policy", {})
    return policy


def lifecycle_schema() -> Schema:
    """JSON Schema of a ``Lifecycle`` document."""
    return {"$schema": DIALECT, "title": KIND, **lifecycle_object_schema()}


def lifecycle_object_schema() -> Schema:
    """The same as a part of another schema."""
    about = "Policy for all objects of a package."
    return {
        "description": about,
        "type": "object",
        "properties": {
            "apiVersion": {"description": "Version of the format of these documents.", "const": API_VERSION},
            "kind": {"description": about, "const": KIND},
            "metadata": {
                "type": "object",
                "properties": {
                    "name": {
                        "description": "Name of the document.",
                        "type": "string",
                        "pattern": f"^{NAME_FORM}$",
                    }
                },
                "required": ["name"],
                "additionalProperties": False,
            },
            "spec": {
                "type": ["object", "null"],
                "properties": {
                    "policy": {"description": "The policy, below that of the stack.", **policy_schema(has_rules=True)}
                },
                "additionalProperties": False,
            },
        },
        "required": ["apiVersion", "kind", "metadata"],
        "additionalProperties": False,
    }


def _spec_faults(spec: Mapping[str, Any]) -> Iterator[Fault]:
    for key in spec:
        if key in _RESERVED:
            reason = f"{key} is not accepted yet, as {_RESERVED[key]}; remove it"
            yield Fault(Code.FIELD_NOT_ACCEPTED, f"spec.{key}", reason, ("spec", key, THE_KEY))
        elif key not in _FIELDS:
            yield _unknown(key, "spec", _FIELDS, spec)


def _unknown(key: Any, part: str, fields: tuple[str, ...], present: Container[str]) -> Fault:
    name = str(key)
    alike = nearest(name, fields)
    hint = f"did you mean {alike!r}?" if alike else f"write {' or '.join(fields)}"
    reason = f"a {KIND} document has no field {name[:60]!r} here; {hint}"
    # The rewrite must not repeat a key.
    rewrite = Rewrite(alike) if alike and alike not in present else None
    path, pointer = (f"{part}.{name}", (part, key, THE_KEY)) if part else (name, (key, THE_KEY))
    return Fault(Code.LIFECYCLE_FIELD_UNKNOWN, path, reason, pointer, rewrite=rewrite)


def _invalid_name(name: Any) -> Fault:
    problem = "it is missing" if name is None else f"found {described(name)}"
    reason = (
        f"metadata.name must be 1 to {LONGEST_META_NAME} lower-case letters, digits, - or _, "
        f"with a letter or digit first and last; {problem}"
    )
    return Fault(Code.NAME_INVALID, "metadata.name", reason, ("metadata", "name"))
