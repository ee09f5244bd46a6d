"""Plans as messages and back: headers, remarks, steps and diffs."""

from collections.abc import Iterable
from typing import Any, assert_never

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2

from services.core import model
from services.core.errors import RequestInvalid
from services.engine.counts import StepCounts, counts_of
from services.engine.effects import effect_of
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import (
    entries_from_pb,
    entry_fields,
    key_fields,
    key_from_pb,
    key_to_pb,
    location_fields,
    target_from_pb,
    target_to_pb,
    trusted_spec,
    violation_from_pb,
    violation_to_pb,
)

KINDS = Numbers(model.OperationKind, plan_pb2.OperationKind, "OPERATION_KIND")

_AFTER_UNINSTALL = Numbers(model.AfterUninstall, plan_pb2.AfterUninstall, "AFTER_UNINSTALL")
_UNDO = Numbers(model.Undo, plan_pb2.Undo, "UNDO")
_DIFF_STATUS = Numbers(model.DiffStatus, plan_pb2.DiffStatus, "DIFF_STATUS")


def text_of(spec: model.Spec | None) -> str:
    """The text of a spec; empty for none."""
    return spec.text if spec else ""


def counts_fields(counts: StepCounts) -> Any:
    """Counts of steps as part of another message."""
    return counts._asdict()


def header_to_pb(plan: model.Plan, name: str = "") -> plan_pb2.Plan:
    """The header of a plan with its *name* in the store; empty: it is not stored."""
    is_uninstall = plan.kind is model.OperationKind.UNINSTALL
    return plan_pb2.Plan(
        id=name,
        kind=KINDS.number(plan.kind),
        target=target_to_pb(plan.target),
        stack_id=plan.stack_id,
        stack_name=plan.stack_name,
        base_generation=plan.base_generation,
        digest=plan.digest,
        no_change=plan.no_change,
        counts=counts_fields(counts_of(map(effect_of, plan.steps))),
        stages=plan.stages,
        sources=plan.sources,
        package_digest=plan.package_digest,
        rollback_of=plan.rollback_of,
        after_uninstall=_AFTER_UNINSTALL.number(plan.after_uninstall)
        if is_uninstall
        else plan_pb2.AFTER_UNINSTALL_UNSPECIFIED,
        untouched_count=plan.untouched_count,
        max_deletes=plan.max_deletes,
        duplicate_count=plan.duplicate_count,
    )


def after_uninstall_from_pb(number: int, field: str) -> model.AfterUninstall:
    """
    What happens to a stack after its uninstall, by *field* of a request.

    Raises:
        RequestInvalid: The value is unknown.
    """
    return _AFTER_UNINSTALL.member(number, field) if number else model.AfterUninstall.KEEP


def remarks_to_pb(remarks: model.PlanRemarks) -> plan_pb2.PlanRemarks:
    """Translate remarks."""
    return plan_pb2.PlanRemarks(
        missing_env_refs=remarks.missing_env_refs,
        unresolved_env_refs=remarks.unresolved_env_refs,
        missing_secrets=remarks.missing_secrets,
        warnings=remarks.warnings,
        conflicts=map(_conflict_fields, remarks.conflicts),
        package_warnings=map(violation_to_pb, remarks.package_warnings),
    )


def remarks_from_pb(message: plan_pb2.PlanRemarks) -> model.PlanRemarks:
    """Translate remarks without conflicts, which are only shown to users."""
    return model.PlanRemarks(
        missing_env_refs=tuple(message.missing_env_refs),
        unresolved_env_refs=tuple(message.unresolved_env_refs),
        missing_secrets=tuple(message.missing_secrets),
        warnings=tuple(message.warnings),
        package_warnings=tuple(map(violation_from_pb, message.package_warnings)),
    )


def _conflict_fields(conflict: model.Conflict) -> Any:
    return {"key": key_fields(conflict.key), "resource_id": conflict.resource_id, "message": conflict.message}


def step_fields(step: model.Step) -> Any:
    """A step as part of a plan."""
    # First the associations, as a plan has more of them than of anything else.
    if step.verb is model.Verb.ATTACH:
        change, fields = "attach", _label_fields(step)
    else:
        change, fields = _change_fields(step)
    return {
        "number": step.number,
        "stage": step.stage,
        "undo": _UNDO.number(step.undo),
        "reason": step.reason,
        change: fields,
    }


def bare_step_from_pb(message: plan_pb2.Step) -> model.Step:
    """
    Translate a step without content and references: its verb, object, ids, undo and data loss.

    Raises:
        RequestInvalid: It has no verb.
    """
    change = message.WhichOneof("change")
    common: dict[str, Any] = {
        "number": message.number,
        "stage": message.stage,
        "undo": _UNDO.find(message.undo) or model.Undo.EXACT,
        "reason": message.reason,
    }
    match change:
        case "put_secret":
            key, overwrites = message.put_secret.key, message.put_secret.overwrites
            verb = model.Verb.UPDATE if overwrites else model.Verb.CREATE
            secret = model.Key(model.SECRET, key)
            return model.Step(verb=verb, key=secret, resource_id=key if overwrites else "", **common)
        case "attach" | "detach":
            link: plan_pb2.LabelStep = getattr(message, change)
            return model.Step(
                verb=model.Verb[change.upper()],
                key=key_from_pb(link.key),
                resource_id=link.resource_id,
                label=key_from_pb(link.label),
                label_id=link.label_id,
                **common,
            )
        case "create":
            return model.Step(verb=model.Verb.CREATE, key=key_from_pb(message.create.key), **common)
        case "update":
            update = message.update
            return model.Step(
                verb=model.Verb.UPDATE,
                key=key_from_pb(update.key),
                resource_id=update.resource_id,
                loss=model.DataLoss(update.loss.path, update.loss.data) if update.HasField("loss") else None,
                **common,
            )
        case "delete":
            delete = message.delete
            return model.Step(
                verb=model.Verb.DELETE, key=key_from_pb(delete.key), resource_id=delete.resource_id, **common
            )
        case _:
            raise RequestInvalid("step", "names no change")


def step_from_pb(message: plan_pb2.Step) -> model.Step:
    """
    Translate a step.

    Raises:
        RequestInvalid: It has no verb.
    """
    step = bare_step_from_pb(message)
    match message.WhichOneof("change"):
        case "create":
            create = message.create
            return step._replace(
                new_spec=trusted_spec(create.spec_json, create.display_name),
                references=_references_from_pb(create.references),
            )
        case "update":
            update = message.update
            return step._replace(
                new_spec=trusted_spec(update.spec_json, update.display_name),
                references=_references_from_pb(update.references),
                old_spec=trusted_spec(update.old_spec_json, update.old_display_name, "old_spec_json"),
                old_references=_references_from_pb(update.old_references),
            )
        case "delete":
            delete = message.delete
            return step._replace(
                old_spec=trusted_spec(delete.old_spec_json, delete.old_display_name, "old_spec_json"),
                old_references=_references_from_pb(delete.old_references),
            )
        case _:
            return step


def diff_fields(diff: model.ResourceDiff) -> Any:
    """The diff of one object as part of another message."""
    fields = {
        "key": key_fields(diff.key),
        "resource_id": diff.resource_id,
        "status": _DIFF_STATUS.number(diff.status),
        "old_spec_json": text_of(diff.old_spec),
        "new_spec_json": text_of(diff.new_spec),
        "create_step": diff.create_step,
    }
    # Most diffs have none of these, and translating empty ones takes a quarter of the time.
    if diff.changes:
        fields["changes"] = [{"path": each.path, "old_json": each.old, "new_json": each.new} for each in diff.changes]
    if diff.old_kind:
        fields["old_kind"] = diff.old_kind
    if diff.location:
        fields["location"] = location_fields(diff.location)
    if diff.old_references:
        fields["old_references"] = _references_fields(diff.old_references)
    return fields


def mapping_fields(diff: model.LabelMappingDiff) -> Any:
    """The diff of one association as part of another message."""
    return {
        "status": _DIFF_STATUS.number(diff.status),
        "resource": key_fields(diff.resource),
        "resource_id": diff.resource_id,
        "label": key_fields(diff.label),
        "label_id": diff.label_id,
    }


def record_changes_to_pb(changes: model.RecordChanges) -> plan_pb2.PlanRecord:
    """Translate the changes of a record."""
    return plan_pb2.PlanRecord(
        entries=map(entry_fields, changes.entries),
        removed=map(key_fields, changes.removed),
        staying=map(key_fields, changes.staying),
        staying_labels=map(use_to_pb, changes.staying_labels),
        taken_over=map(key_fields, changes.taken_over),
    )


def plan_record_to_pb(plan: model.Plan) -> plan_pb2.PlanRecord:
    """Translate the changes of the record by a plan, its adoptions and its uses."""
    message = record_changes_to_pb(plan.record)
    for key, kind, resource_id, display_name in plan.adoptions:
        adoption = message.adoptions.add(display_name=display_name)
        adoption.key.kind, adoption.key.name = key
        adoption.resource.kind, adoption.resource.id = kind, resource_id
    message.uses.extend(map(use_to_pb, plan.uses))
    for old_key, new_key in plan.key_changes:
        change = message.key_changes.add()
        change.old_key.kind, change.old_key.name = old_key
        change.new_key.kind, change.new_key.name = new_key
    return message


def _adoption_from_pb(message: plan_pb2.Adoption) -> model.Adoption:
    return model.Adoption(key_from_pb(message.key), message.resource.kind, message.resource.id, message.display_name)


def use_to_pb(use: model.Use) -> plan_pb2.Use:
    """Translate the use of a resource of another stack, or of a label on a resource."""
    resource = object_pb2.ResourceId(kind=use.kind, id=use.resource_id)
    return plan_pb2.Use(key=key_to_pb(use.key), resource=resource, label_id=use.label_id)


def use_from_pb(message: plan_pb2.Use) -> model.Use:
    """Translate the use of a resource of another stack, or of a label on a resource."""
    return model.Use(key_from_pb(message.key), message.resource.kind, message.resource.id, message.label_id)


def record_changes_from_pb(message: plan_pb2.PlanRecord) -> model.RecordChanges:
    """Translate the changes of a record."""
    return model.RecordChanges(
        entries_from_pb(message.entries),
        tuple(map(key_from_pb, message.removed)),
        tuple(map(key_from_pb, message.staying)),
        tuple(map(use_from_pb, message.staying_labels)),
        tuple(map(key_from_pb, message.taken_over)),
    )


def work_from_pb(header: plan_pb2.Plan, body: journal_pb2.PlanBody) -> model.Plan:
    """The plan as the applier needs it."""
    return model.Plan(
        target=target_from_pb(header.target),
        stack_id=header.stack_id,
        base_generation=header.base_generation,
        stages=tuple(header.stages),
        steps=tuple(map(step_from_pb, body.steps.steps)),
        record=record_changes_from_pb(body.record),
        adoptions=tuple(map(_adoption_from_pb, body.record.adoptions)),
        uses=tuple(map(use_from_pb, body.record.uses)),
        no_change=header.no_change,
        kind=KINDS.member(header.kind),
        remarks=remarks_from_pb(body.remarks),
        sources=tuple(header.sources),
        digest=header.digest,
        stack_name=header.stack_name,
        package_digest=header.package_digest,
        rollback_of=header.rollback_of,
        after_uninstall=_AFTER_UNINSTALL.find(header.after_uninstall) or model.AfterUninstall.KEEP,
        untouched_count=header.untouched_count,
        max_deletes=header.max_deletes if header.HasField("max_deletes") else None,
    )


def _change_fields(step: model.Step) -> tuple[str, Any]:
    """The field of the message that has the change of a step, and its content."""
    key = key_fields(step.key)
    if step.key.kind == model.SECRET:
        return "put_secret", {"key": step.key.name, "overwrites": step.verb is model.Verb.UPDATE}
    old, new = step.old_spec, step.new_spec
    match step.verb:
        case model.Verb.CREATE:
            return "create", {
                "key": key,
                "spec_json": text_of(new),
                "display_name": new.display_name if new else "",
                "references": _references_fields(step.references),
            }
        case model.Verb.UPDATE:
            return "update", {
                "key": key,
                "resource_id": step.resource_id,
                "spec_json": text_of(new),
                "display_name": new.display_name if new else "",
                "references": _references_fields(step.references),
                "old_spec_json": text_of(old),
                "old_display_name": old.display_name if old else "",
                "old_references": _references_fields(step.old_references),
                "loss": step.loss._asdict() if step.loss else None,
            }
        case model.Verb.DELETE:
            return "delete", {
                "key": key,
                "resource_id": step.resource_id,
                "old_spec_json": text_of(old),
                "old_display_name": old.display_name if old else "",
                "old_references": _references_fields(step.old_references),
            }
        case model.Verb.ATTACH:
            return "attach", _label_fields(step)
        case model.Verb.DETACH:
            return "detach", _label_fields(step)
    assert_never(step.verb)


def _label_fields(step: model.Step) -> Any:
    fields = {"key": key_fields(step.key)}
    if step.label:
        fields["label"] = key_fields(step.label)
    if step.resource_id:
        fields["resource_id"] = step.resource_id
    if step.label_id:
        fields["label_id"] = step.label_id
    return fields


def _references_fields(references: Iterable[model.StepReference]) -> list[dict[str, Any]]:
    return [{"pointer": each.pointer, "key": key_fields(each.key), "resource_id": each.id} for each in references]


def _references_from_pb(messages: Iterable[plan_pb2.StepReference]) -> tuple[model.StepReference, ...]:
    return tuple(
        [model.StepReference(message.pointer, key_from_pb(message.key), message.resource_id) for message in messages]
    )
