"""Objects, packages, resources, inventories and stacks as messages and back."""

from collections.abc import Iterable
from typing import Any

import orjson
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2
from pkger.parser.v1 import parser_pb2
from pkger.stack.v1 import stack_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.core.masking import masked
from services.kinds.format.canonical import canonical_text, spec_from_text
from services.kinds.policy_reading import read_policy
from services.packages.lifecycle import checked_lifecycle
from services.rpc.convert.enums import Numbers
from services.rpc.convert.policies import policy_from_pb
from services.rpc.parts import text_bytes

_SEVERITY = Numbers(model.Severity, object_pb2.Severity, "SEVERITY")
_FRAME = 100
"""Bytes of an object, or of a part of one, without its texts."""

_ORIGIN = Numbers(model.Origin, object_pb2.Origin, "ORIGIN")


def target_to_pb(target: model.Target) -> object_pb2.Target:
    """Translate a target."""
    return object_pb2.Target(platform=target.platform, org=target.org)


def target_from_pb(message: object_pb2.Target) -> model.Target:
    """Translate a target; an empty field means the default."""
    return model.Target(message.platform or model.DEFAULT_PLATFORM, message.org or model.DEFAULT_ORG)


def new_target_from_pb(message: object_pb2.Target, field: str = "target") -> model.Target:
    """
    Translate the target of a request, which is checked, in contrast to a recorded one.

    Args:
        message: The target.
        field: Its field in the request.

    Raises:
        RequestInvalid: A name in it is invalid.
    """
    target = target_from_pb(message)
    for part, name in (("platform", target.platform), ("org", target.org)):
        if not name.isprintable() or name != name.strip():
            problem = f"{name!r} has white space at an end, or characters that cannot be printed"
            raise RequestInvalid(f"{field}.{part}", problem)
    return target


def check_stack_ref(ref: object_pb2.StackRef) -> None:
    """
    Check that the field ``stack`` of a request names one stack, by the rule of ``StackRef``.

    Raises:
        RequestInvalid: It names no stack, or is ambiguous.
    """
    if not ref.id and not ref.name:
        raise RequestInvalid("stack", "name it by id, or by name with its target")
    if ref.id and ref.name:
        raise RequestInvalid("stack", "id and name exclude each other: set only one of them")
    if ref.id and ref.HasField("target"):
        raise RequestInvalid("stack.target", "leave it out: the stack with this id has its own target")


def org_to_pb(org: model.Organization) -> object_pb2.Organization:
    """Translate an organization."""
    return object_pb2.Organization(id=org.id, name=org.name, native_id=org.native_id)


def org_from_pb(message: object_pb2.Organization) -> model.Organization:
    """Translate an organization."""
    return model.Organization(message.id, message.name, message.native_id)


def key_to_pb(key: model.Key) -> object_pb2.ObjectKey:
    """Translate a key."""
    return object_pb2.ObjectKey(kind=key.kind, name=key.name)


def key_fields(key: model.Key) -> Any:
    """
    A key as part of another message.

    The functions ``*_fields`` return fields of a message, as copying a submessage takes twice as long.
    """
    return {"kind": key.kind, "name": key.name}


def key_from_pb(message: object_pb2.ObjectKey) -> model.Key:
    """Translate a key."""
    return model.Key(message.kind, message.name)


def trusted_spec(text: str, display_name: str, field: str = "spec_json") -> model.Spec:
    """
    A spec that a service or a driver has already checked. It is parsed only if its display name is missing.

    Raises:
        RequestInvalid: *text* had to be parsed and is no spec; the error names *field*.
    """
    return model.Spec(text, display_name) if display_name and text[:1] == "{" else spec_from_json(text, field)


def spec_from_json(text: str, field: str = "spec_json") -> model.Spec:
    """
    Parse a spec from an unchecked request.

    Raises:
        RequestInvalid: *text* is no spec; the error names *field*.
    """
    try:
        return spec_from_text(text)
    except (ValueError, TypeError) as error:
        raise RequestInvalid(field, str(error)) from None


def object_fields(item: model.Object) -> Any:
    """An object as part of another message."""
    place = {"location": location_fields(item.location)} if item.location else {}
    return {
        **place,
        "display_name": item.spec.display_name,
        "key": key_fields(item.key),
        "api_version": item.api_version,
        "spec_json": item.spec.text,
        "associations": map(key_fields, item.associations),
        "env_references": [
            {
                "resource_field": reference.resource_field,
                "env_key": reference.env_key,
                "value_json": canonical_text(reference.value),
                "default_json": canonical_text(reference.default),
                "value_type": reference.value_type,
            }
            for reference in item.env_references
        ],
        "written": [{"pointer": place.pointer, "value_json": place.text} for place in item.written],
        "location": location_fields(item.location) if item.location else None,
        "lifecycle_json": item.lifecycle,
    }


def object_from_pb(message: object_pb2.Object, is_checked: bool = True) -> model.Object:
    """
    Translate an object.

    Raises:
        RequestInvalid: Its spec is not checked yet, and is invalid.
    """
    spec = trusted_spec(message.spec_json, message.display_name) if is_checked else spec_from_json(message.spec_json)
    return model.Object(
        key=key_from_pb(message.key),
        api_version=message.api_version,
        spec=spec,
        associations=tuple([key_from_pb(label) for label in message.associations]),
        env_references=tuple(
            [
                model.EnvReference(
                    reference.resource_field,
                    reference.env_key,
                    orjson.loads(reference.value_json),
                    orjson.loads(reference.default_json),
                    reference.value_type,
                )
                for reference in message.env_references
            ]
        ),
        written=tuple([model.WrittenValue(place.pointer, place.value_json) for place in message.written]),
        location=location_from_pb(message.location) if message.HasField("location") else None,
        lifecycle=message.lifecycle_json,
    )


def object_bytes(item: model.Object) -> int:
    """Estimate the size of an object in a message, for ``services.rpc.parts``."""
    taken = _FRAME + text_bytes(item.spec.text) + text_bytes(item.spec.display_name) + text_bytes(item.key.name)
    for label in item.associations:
        taken += 20 + text_bytes(label.name)
    for reference in item.env_references:
        values = text_bytes(canonical_text(reference.value)) + text_bytes(canonical_text(reference.default))
        taken += _FRAME + text_bytes(reference.resource_field) + text_bytes(reference.env_key) + values
    for place in item.written:
        taken += 20 + text_bytes(place.pointer) + text_bytes(place.text)
    return taken + text_bytes(item.lifecycle) + (text_bytes(item.location.source) if item.location else 0)


def objects_to_pb(items: Iterable[model.Object]) -> object_pb2.Objects:
    """Translate a part of the objects of a package."""
    return object_pb2.Objects(objects=map(object_fields, items))


def package_from_pb(message: object_pb2.Package) -> model.Package:
    """
    Translate a package from an unchecked request.

    Raises:
        RequestInvalid: A spec or a value is invalid.
    """
    objects = []
    for position, item in enumerate(message.objects):
        try:
            written = (place.value_json for place in item.written)
            for value in (*written, *_env_values(item), *filter(None, [item.lifecycle_json])):
                orjson.loads(value)
            objects.append(object_from_pb(item, is_checked=False)._replace(lifecycle=_lifecycle(item.lifecycle_json)))
        except orjson.JSONDecodeError as error:
            raise RequestInvalid(f"package.objects[{position}]", f"{value[:80]!r} is not JSON: {error}") from None
        except RequestInvalid as error:
            field = f"package.objects[{position}].{error.metadata['field']}"
            raise RequestInvalid(field, error.metadata["problem"]) from None
    lifecycles = {"": _document(message.lifecycle_json)} if message.lifecycle_json else {}
    return model.Package(tuple(objects), tuple(message.sources), lifecycles)


def _lifecycle(text: str) -> str:
    """
    The policy of an unchecked object, as canonical JSON.

    Raises:
        RequestInvalid: It is not valid.
        JSONDecodeError: It is no JSON.
    """
    if not text:
        return ""
    reading = read_policy(orjson.loads(text), "lifecycle", (), has_rules=False)
    for fault in reading.faults:
        raise RequestInvalid("lifecycle_json", fault.reason)
    return canonical_text(reading.policy) if reading.policy else ""


def _document(text: str) -> str:
    try:
        return checked_lifecycle(text)
    except ValueError as error:
        raise RequestInvalid("package.lifecycle_json", str(error)) from None


def _env_values(item: object_pb2.Object) -> Iterable[str]:
    return (text for each in item.env_references for text in (each.value_json, each.default_json))


def violation_to_pb(violation: model.Violation) -> object_pb2.Violation:
    """Translate a violation; credentials in its texts are masked, as a package may have an address anywhere."""
    return object_pb2.Violation(
        kind=violation.kind,
        path=masked(violation.path),
        reason=masked(violation.reason),
        location=location_fields(violation.location),
        code=violation.code,
        severity=_SEVERITY.number(violation.severity),
        end=position_fields(violation.end),
        related=map(_related_fields, violation.related),
        fixes=map(_fix_fields, violation.fixes),
    )


def violation_from_pb(message: object_pb2.Violation) -> model.Violation:
    """Translate a violation."""
    return model.Violation(
        message.kind,
        message.path,
        message.reason,
        location_from_pb(message.location),
        message.code,
        _SEVERITY.find(message.severity) or model.Severity.ERROR,
        position_from_pb(message.end),
        tuple([model.Related(location_from_pb(each.location), each.text) for each in message.related]),
        tuple([model.Fix(fix.title, tuple(map(_edit_from_pb, fix.edits)), fix.preferred) for fix in message.fixes]),
    )


def credential_to_pb(credential: model.Credential) -> parser_pb2.Credential:
    """Translate the position of a credential in a package."""
    return parser_pb2.Credential(
        key=key_fields(credential.key), pointer=credential.pointer, location=location_fields(credential.location)
    )


def credential_from_pb(message: parser_pb2.Credential) -> model.Credential:
    """Translate the position of a credential in a package."""
    return model.Credential(key_from_pb(message.key), message.pointer, location_from_pb(message.location))


def location_fields(location: model.Location) -> Any:
    """A position in a source as part of another message."""
    return {"source": location.source, "line": location.line, "column": location.column}


def location_from_pb(message: object_pb2.Location) -> model.Location:
    """Translate a place in a source."""
    return model.Location(message.source, message.line, message.column)


def _related_fields(related: model.Related) -> Any:
    return {"location": location_fields(related.location), "text": related.text}


def _fix_fields(fix: model.Fix) -> Any:
    return {"title": fix.title, "edits": map(_edit_fields, fix.edits), "preferred": fix.is_preferred}


def position_fields(position: model.Position) -> Any:
    """A line and column as part of another message."""
    return {"line": position.line, "column": position.column}


def position_from_pb(message: object_pb2.Position) -> model.Position:
    """Translate a line and column."""
    return model.Position(message.line, message.column)


def _edit_fields(edit: model.Edit) -> Any:
    return {"location": location_fields(edit.location), "end": position_fields(edit.end), "new_text": edit.text}


def _edit_from_pb(message: object_pb2.Edit) -> model.Edit:
    return model.Edit(location_from_pb(message.location), position_from_pb(message.end), message.new_text)


def resource_from_pb(message: object_pb2.Resource) -> model.Resource:
    """Translate a resource."""
    return model.Resource(
        kind=message.kind,
        id=message.id,
        spec=trusted_spec(message.spec_json, message.display_name),
        label_ids=tuple(message.label_ids),
        references=references_from_pb(message.references),
        unexpressed=tuple(message.unexpressed),
    )


def unreadable_from_pb(message: object_pb2.Resource) -> model.Resource:
    """Translate a resource with an invalid spec, an error only if it is used; without a name, it gets its id."""
    spec = model.Spec(message.spec_json, message.display_name or message.id)
    labels, references = tuple(message.label_ids), references_from_pb(message.references)
    return model.Resource(message.kind, message.id, spec, labels, references)


def references_to_pb(references: Iterable[model.Reference]) -> list[object_pb2.Reference]:
    """Translate the references of a resource."""
    return [object_pb2.Reference(pointer=each.pointer, kind=each.kind, id=each.id) for each in references]


def references_from_pb(messages: Iterable[object_pb2.Reference]) -> tuple[model.Reference, ...]:
    """Translate the references of a resource."""
    return tuple([model.Reference(message.pointer, message.kind, message.id) for message in messages])


def baseline_to_pb(baseline: model.Baseline) -> journal_pb2.Baseline:
    """Translate a baseline."""
    return journal_pb2.Baseline(
        key=key_to_pb(baseline.key),
        spec_json=baseline.spec,
        references=references_to_pb(baseline.references),
        missing_labels=map(key_to_pb, baseline.missing_labels),
    )


def baseline_from_pb(message: journal_pb2.Baseline) -> model.Baseline:
    """Translate a baseline."""
    return model.Baseline(
        key_from_pb(message.key),
        message.spec_json,
        references_from_pb(message.references),
        tuple(map(key_from_pb, message.missing_labels)),
    )


def entry_fields(entry: model.InventoryEntry) -> Any:
    """An inventory entry as part of another message."""
    return {
        "key": key_fields(entry.key),
        "resource_id": entry.resource_id,
        "origin": _ORIGIN.number(entry.origin),
        "associations": map(key_fields, entry.associations),
        "is_pending_delete": entry.is_pending_delete,
        "policy_json": entry.policy,
        "own_policy_json": entry.own_policy,
    }


def entry_from_pb(message: object_pb2.InventoryEntry) -> model.InventoryEntry:
    """Translate an inventory entry."""
    return model.InventoryEntry(
        key=key_from_pb(message.key),
        resource_id=message.resource_id,
        origin=_ORIGIN.member(message.origin),
        associations=tuple([key_from_pb(label) for label in message.associations]),
        is_pending_delete=message.is_pending_delete,
        policy=message.policy_json,
        own_policy=message.own_policy_json,
    )


def entries_from_pb(messages: Iterable[object_pb2.InventoryEntry]) -> tuple[model.InventoryEntry, ...]:
    """Translate inventory entries."""
    return tuple(map(entry_from_pb, messages))


def stack_from_pb(message: stack_pb2.Stack, resources: Iterable[object_pb2.InventoryEntry] = ()) -> model.StackRecord:
    """The stack as planner and applier need it, with the *resources* that it owns."""
    entries = list(resources)
    return model.StackRecord(
        id=message.id,
        target=target_from_pb(message.target),
        name=message.name,
        generation=message.generation,
        resources=entries_from_pb(entries),
        sources=tuple(message.sources),
        urls=tuple(message.urls),
        revision=message.revision,
        package_digest=message.package_digest,
        without_baseline=frozenset(key_from_pb(entry.key) for entry in entries if entry.lacks_baseline),
        policy=policy_from_pb(message.policy),
    )
