"""Values of the core as protobuf messages and back; the only place that knows both."""

from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import Any, Generic, TypeVar

import orjson
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.kinds.canonical import canonical_text, spec_from_text

E = TypeVar("E", bound=Enum)


class _Numbers(Generic[E]):
    """The members of an enum of the core beside the numbers of its protobuf twin, which has one more: UNSPECIFIED."""

    def __init__(self, enum: type[E], twin: Any, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = {member: twin.Value(f"{prefix}_{member.name}") for member in enum}
        self._members = {number: member for member, number in self._numbers.items()}

    def number(self, member: E) -> Any:
        """The number of a member."""
        return self._numbers[member]

    def member(self, number: int) -> E:
        """
        The member behind a number.

        Raises:
            RequestInvalid: The value is UNSPECIFIED, which nobody sends, or one that this version does not know.
        """
        try:
            return self._members[number]
        except KeyError:
            raise RequestInvalid(self._prefix.lower(), f"{number} is not a value to send") from None


_ORIGIN = _Numbers(model.Origin, object_pb2.Origin, "ORIGIN")
_VERB = _Numbers(model.Verb, plan_pb2.Verb, "VERB")
_UNDO = _Numbers(model.Undo, plan_pb2.Undo, "UNDO")
_DIFF_STATUS = _Numbers(model.DiffStatus, plan_pb2.DiffStatus, "DIFF_STATUS")
_IDENTITY = _Numbers(model.Identity, driver_pb2.Identity, "IDENTITY")
_NAME_UNIQUENESS = _Numbers(model.NameUniqueness, driver_pb2.NameUniqueness, "NAME_UNIQUENESS")


def target_to_pb(target: model.Target) -> object_pb2.Target:
    """Translate a target."""
    return object_pb2.Target(platform=target.platform, org=target.org)


def target_from_pb(message: object_pb2.Target) -> model.Target:
    """Translate a target; empty parts mean the default ones."""
    return model.Target(message.platform or model.DEFAULT_PLATFORM, message.org or model.DEFAULT_ORG)


def key_to_pb(key: model.Key) -> object_pb2.ObjectKey:
    """Translate a key."""
    return object_pb2.ObjectKey(kind=key.kind, name=key.name)


def _key_fields(key: model.Key) -> Any:
    """A key as part of another message: its fields, as making a message of its own to copy takes twice as long."""
    return {"kind": key.kind, "name": key.name}


def key_from_pb(message: object_pb2.ObjectKey) -> model.Key:
    """Translate a key."""
    return model.Key(message.kind, message.name)


def spec_from_json(text: str, field: str = "spec_json") -> model.Spec:
    """
    Read a spec that came over the wire.

    Raises:
        RequestInvalid: *text* is no spec; the error names *field*.
    """
    try:
        return spec_from_text(text)
    except (ValueError, TypeError) as error:
        raise RequestInvalid(field, str(error)) from None


def _optional_spec(text: str, field: str) -> model.Spec | None:
    return spec_from_json(text, field) if text else None


def _text(spec: model.Spec | None) -> str:
    return spec.text if spec else ""


def object_to_pb(item: model.Object) -> object_pb2.Object:
    """Translate an object."""
    return object_pb2.Object(
        key=_key_fields(item.key),
        api_version=item.api_version,
        spec_json=item.spec.text,
        associations=map(_key_fields, item.associations),
        env_references=[
            object_pb2.EnvReference(
                resource_field=reference.resource_field,
                env_key=reference.env_key,
                value_json=canonical_text(reference.value),
                default_json=canonical_text(reference.default),
            )
            for reference in item.env_references
        ],
    )


def object_from_pb(message: object_pb2.Object) -> model.Object:
    """Translate an object."""
    return model.Object(
        key=key_from_pb(message.key),
        api_version=message.api_version,
        spec=spec_from_json(message.spec_json),
        associations=tuple(map(key_from_pb, message.associations)),
        env_references=tuple(
            model.EnvReference(
                reference.resource_field,
                reference.env_key,
                orjson.loads(reference.value_json),
                orjson.loads(reference.default_json),
            )
            for reference in message.env_references
        ),
    )


def package_to_pb(package: model.Package) -> object_pb2.Package:
    """Translate a package."""
    return object_pb2.Package(objects=map(object_to_pb, package.objects), sources=package.sources)


def package_from_pb(message: object_pb2.Package) -> model.Package:
    """Translate a package."""
    return model.Package(tuple(map(object_from_pb, message.objects)), tuple(message.sources))


def violation_to_pb(violation: model.Violation) -> object_pb2.Violation:
    """Translate a violation."""
    place = violation.location
    return object_pb2.Violation(
        kind=violation.kind,
        path=violation.path,
        reason=violation.reason,
        location=object_pb2.Location(source=place.source, line=place.line, column=place.column),
    )


def violation_from_pb(message: object_pb2.Violation) -> model.Violation:
    """Translate a violation."""
    place = model.Location(message.location.source, message.location.line, message.location.column)
    return model.Violation(message.kind, message.path, message.reason, place)


def resource_to_pb(resource: model.Resource) -> object_pb2.Resource:
    """Translate a resource."""
    return object_pb2.Resource(
        kind=resource.kind, id=resource.id, spec_json=resource.spec.text, label_ids=resource.label_ids
    )


def resource_from_pb(message: object_pb2.Resource) -> model.Resource:
    """Translate a resource."""
    return model.Resource(message.kind, message.id, spec_from_json(message.spec_json), tuple(message.label_ids))


def entry_to_pb(entry: model.InventoryEntry) -> object_pb2.InventoryEntry:
    """Translate an inventory entry."""
    return object_pb2.InventoryEntry(
        key=_key_fields(entry.key),
        remote_id=entry.remote_id,
        origin=_ORIGIN.number(entry.origin),
        associations=map(_key_fields, entry.associations),
    )


def entry_from_pb(message: object_pb2.InventoryEntry) -> model.InventoryEntry:
    """Translate an inventory entry."""
    return model.InventoryEntry(
        key=key_from_pb(message.key),
        remote_id=message.remote_id,
        origin=_ORIGIN.member(message.origin),
        associations=tuple(map(key_from_pb, message.associations)),
    )


def entries_from_pb(messages: Iterable[object_pb2.InventoryEntry]) -> tuple[model.InventoryEntry, ...]:
    """Translate inventory entries."""
    return tuple(map(entry_from_pb, messages))


def stack_from_pb(message: stack_pb2.Stack) -> model.StackRecord:
    """What the planner and the applier need of a stack."""
    return model.StackRecord(
        id=message.id,
        target=target_from_pb(message.target),
        name=message.name,
        generation=message.generation,
        resources=entries_from_pb(message.resources),
        sources=tuple(message.sources),
    )


def step_to_pb(step: model.Step) -> plan_pb2.Step:
    """Translate a step."""
    return plan_pb2.Step(
        number=step.number,
        stage=step.stage,
        verb=_VERB.number(step.verb),
        key=_key_fields(step.key),
        remote_id=step.remote_id,
        label=_key_fields(step.label) if step.label else None,
        label_id=step.label_id,
        old_spec_json=_text(step.old_spec),
        new_spec_json=_text(step.new_spec),
        undo=_UNDO.number(step.undo),
        reason=step.reason,
    )


def step_from_pb(message: plan_pb2.Step) -> model.Step:
    """Translate a step."""
    return model.Step(
        number=message.number,
        stage=message.stage,
        verb=_VERB.member(message.verb),
        key=key_from_pb(message.key),
        remote_id=message.remote_id,
        label=key_from_pb(message.label) if message.HasField("label") else None,
        label_id=message.label_id,
        old_spec=_optional_spec(message.old_spec_json, "old_spec_json"),
        new_spec=_optional_spec(message.new_spec_json, "new_spec_json"),
        undo=_UNDO.member(message.undo),
        reason=message.reason,
    )


def _diff_to_pb(diff: model.ResourceDiff) -> plan_pb2.ResourceDiff:
    return plan_pb2.ResourceDiff(
        key=_key_fields(diff.key),
        remote_id=diff.remote_id,
        status=_DIFF_STATUS.number(diff.status),
        old_spec_json=_text(diff.old_spec),
        new_spec_json=_text(diff.new_spec),
        changes=[
            plan_pb2.FieldChange(path=change.path, old_json=change.old, new_json=change.new) for change in diff.changes
        ],
    )


def _diff_from_pb(message: plan_pb2.ResourceDiff) -> model.ResourceDiff:
    return model.ResourceDiff(
        key=key_from_pb(message.key),
        remote_id=message.remote_id,
        status=_DIFF_STATUS.member(message.status),
        old_spec=_optional_spec(message.old_spec_json, "old_spec_json"),
        new_spec=_optional_spec(message.new_spec_json, "new_spec_json"),
        changes=tuple(model.FieldChange(change.path, change.old_json, change.new_json) for change in message.changes),
    )


def _mapping_to_pb(diff: model.LabelMappingDiff) -> plan_pb2.LabelMappingDiff:
    return plan_pb2.LabelMappingDiff(
        status=_DIFF_STATUS.number(diff.status),
        resource=_key_fields(diff.resource),
        resource_id=diff.resource_id,
        label=_key_fields(diff.label),
        label_id=diff.label_id,
    )


def _mapping_from_pb(message: plan_pb2.LabelMappingDiff) -> model.LabelMappingDiff:
    return model.LabelMappingDiff(
        status=_DIFF_STATUS.member(message.status),
        resource=key_from_pb(message.resource),
        resource_id=message.resource_id,
        label=key_from_pb(message.label),
        label_id=message.label_id,
    )


def plan_to_pb(plan: model.Plan) -> plan_pb2.Plan:
    """Translate a plan."""
    return plan_pb2.Plan(
        target=target_to_pb(plan.target),
        stack_id=plan.stack_id,
        base_generation=plan.base_generation,
        stages=plan.stages,
        steps=map(step_to_pb, plan.steps),
        resource_diffs=map(_diff_to_pb, plan.resource_diffs),
        label_mapping_diffs=map(_mapping_to_pb, plan.label_mapping_diffs),
        inventory=map(entry_to_pb, plan.inventory),
        no_change=plan.no_change,
        summary_json=plan.summary,
        missing_env_refs=plan.missing_env_refs,
        missing_secrets=plan.missing_secrets,
        warnings=plan.warnings,
        sources=plan.sources,
        digest=plan.digest,
    )


def plan_from_pb(message: plan_pb2.Plan) -> model.Plan:
    """Translate a plan."""
    return replace(
        work_from_pb(message),
        resource_diffs=tuple(map(_diff_from_pb, message.resource_diffs)),
        label_mapping_diffs=tuple(map(_mapping_from_pb, message.label_mapping_diffs)),
    )


def work_from_pb(message: plan_pb2.Plan) -> model.Plan:
    """What an apply needs of a plan: all of it but the diffs, which are most of it and for people only."""
    return model.Plan(
        target=target_from_pb(message.target),
        stack_id=message.stack_id,
        base_generation=message.base_generation,
        stages=tuple(message.stages),
        steps=tuple(map(step_from_pb, message.steps)),
        resource_diffs=(),
        label_mapping_diffs=(),
        inventory=entries_from_pb(message.inventory),
        no_change=message.no_change,
        summary=message.summary_json,
        missing_env_refs=tuple(message.missing_env_refs),
        missing_secrets=tuple(message.missing_secrets),
        warnings=tuple(message.warnings),
        sources=tuple(message.sources),
        digest=message.digest,
    )


def platform_to_pb(traits: model.PlatformTraits) -> driver_pb2.DescribeResponse:
    """Translate what a driver says of its platform."""
    return driver_pb2.DescribeResponse(
        platform=traits.platform,
        version=traits.version,
        kinds=[_traits_to_pb(traits.kinds[kind]) for kind in sorted(traits.kinds)],
        max_batch_size=traits.max_batch_size,
        max_concurrency=traits.max_concurrency,
        fences=traits.fences,
    )


def platform_from_pb(message: driver_pb2.DescribeResponse) -> model.PlatformTraits:
    """Translate what a driver says of its platform."""
    return model.PlatformTraits(
        platform=message.platform,
        version=message.version,
        kinds={kind.kind: _traits_from_pb(kind) for kind in message.kinds},
        max_batch_size=message.max_batch_size,
        max_concurrency=message.max_concurrency,
        fences=message.fences,
    )


def _traits_to_pb(traits: model.KindTraits) -> driver_pb2.KindTraits:
    return driver_pb2.KindTraits(
        kind=traits.kind,
        identity=_IDENTITY.number(traits.identity),
        name_uniqueness=_NAME_UNIQUENESS.number(traits.name_uniqueness),
        stage=traits.stage,
        delete_undo=_UNDO.number(traits.delete_undo),
        immutable_paths=traits.immutable_paths,
        sensitive_paths=traits.sensitive_paths,
        set_paths=traits.set_paths,
        labelled=traits.labelled,
    )


def _traits_from_pb(message: driver_pb2.KindTraits) -> model.KindTraits:
    return model.KindTraits(
        kind=message.kind,
        identity=_IDENTITY.member(message.identity),
        name_uniqueness=_NAME_UNIQUENESS.member(message.name_uniqueness),
        stage=message.stage,
        delete_undo=_UNDO.member(message.delete_undo),
        immutable_paths=tuple(message.immutable_paths),
        sensitive_paths=tuple(message.sensitive_paths),
        set_paths=tuple(message.set_paths),
        labelled=message.labelled,
    )


def mutation_to_pb(step: model.Step, remote_id: str, label_id: str, idempotency_key: str) -> driver_pb2.Mutation:
    """
    The mutation that carries out *step*.

    Args:
        step: The step; its own ids are not looked at, as they may be found only at run time.
        remote_id: Id of the resource; empty for a create.
        label_id: Id of the label; empty unless the step attaches or detaches one.
        idempotency_key: For a create.
    """
    kind, text = step.key.kind, _text(step.new_spec)
    match step.verb:
        case model.Verb.CREATE:
            create = driver_pb2.CreateResource(kind=kind, spec_json=text, idempotency_key=idempotency_key)
            return driver_pb2.Mutation(create=create)
        case model.Verb.UPDATE:
            return driver_pb2.Mutation(update=driver_pb2.UpdateResource(kind=kind, id=remote_id, spec_json=text))
        case model.Verb.DELETE:
            return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=remote_id))
        case model.Verb.ATTACH:
            attach = driver_pb2.AttachLabel(kind=kind, id=remote_id, label_id=label_id)
            return driver_pb2.Mutation(attach=attach)
        case model.Verb.DETACH:
            detach = driver_pb2.DetachLabel(kind=kind, id=remote_id, label_id=label_id)
            return driver_pb2.Mutation(detach=detach)


def time_to_pb(microseconds: int) -> Timestamp:
    """A time in microseconds since 1970 as a Timestamp."""
    return Timestamp(seconds=microseconds // 1_000_000, nanos=microseconds % 1_000_000 * 1000)
