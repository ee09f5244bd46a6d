"""Plans, their steps and differences."""

from collections.abc import Iterable
from typing import Any

from pkger.model.v1 import plan_pb2

from services.core import model
from services.rpc.convert.enums import Numbers
from services.rpc.convert.objects import (
    entries_from_pb,
    entry_fields,
    key_fields,
    key_from_pb,
    spec_from_json,
    target_from_pb,
    target_to_pb,
)

_VERB = Numbers(model.Verb, plan_pb2.Verb, "VERB")
_UNDO = Numbers(model.Undo, plan_pb2.Undo, "UNDO")
_DIFF_STATUS = Numbers(model.DiffStatus, plan_pb2.DiffStatus, "DIFF_STATUS")


def _optional_spec(text: str, field: str) -> model.Spec | None:
    return spec_from_json(text, field) if text else None


def text_of(spec: model.Spec | None) -> str:
    """The text of a spec; empty for none."""
    return spec.text if spec else ""


def _references_fields(references: Iterable[model.StepReference]) -> list[dict[str, Any]]:
    return [{"pointer": each.pointer, "key": key_fields(each.key), "id": each.id} for each in references]


def _references_from_pb(messages: Iterable[plan_pb2.StepReference]) -> tuple[model.StepReference, ...]:
    return tuple([model.StepReference(message.pointer, key_from_pb(message.key), message.id) for message in messages])


def step_fields(step: model.Step) -> Any:
    """A step as part of a plan."""
    return {
        "number": step.number,
        "stage": step.stage,
        "verb": _VERB.number(step.verb),
        "key": key_fields(step.key),
        "remote_id": step.remote_id,
        "label": key_fields(step.label) if step.label else None,
        "label_id": step.label_id,
        "old_spec_json": text_of(step.old_spec),
        "new_spec_json": text_of(step.new_spec),
        "undo": _UNDO.number(step.undo),
        "reason": step.reason,
        "references": _references_fields(step.references),
        "old_references": _references_fields(step.old_references),
    }


def bare_step_from_pb(message: plan_pb2.Step) -> model.Step:
    """Translate a step without its content and references: what it does, to what, and whether that can be undone."""
    return model.Step(
        number=message.number,
        stage=message.stage,
        verb=_VERB.member(message.verb),
        key=key_from_pb(message.key),
        remote_id=message.remote_id,
        label=key_from_pb(message.label) if message.HasField("label") else None,
        label_id=message.label_id,
        undo=_UNDO.find(message.undo) or model.Undo.EXACT,
        reason=message.reason,
    )


def step_from_pb(message: plan_pb2.Step) -> model.Step:
    """Translate a step."""
    return bare_step_from_pb(message)._replace(
        old_spec=_optional_spec(message.old_spec_json, "old_spec_json"),
        new_spec=_optional_spec(message.new_spec_json, "new_spec_json"),
        undo=_UNDO.member(message.undo),
        references=_references_from_pb(message.references),
        old_references=_references_from_pb(message.old_references),
    )


def _diff_fields(diff: model.ResourceDiff) -> Any:
    return {
        "key": key_fields(diff.key),
        "remote_id": diff.remote_id,
        "status": _DIFF_STATUS.number(diff.status),
        "old_spec_json": text_of(diff.old_spec),
        "new_spec_json": text_of(diff.new_spec),
        "changes": [{"path": change.path, "old_json": change.old, "new_json": change.new} for change in diff.changes],
        "old_kind": diff.old_kind,
    }


def _mapping_fields(diff: model.LabelMappingDiff) -> Any:
    return {
        "status": _DIFF_STATUS.number(diff.status),
        "resource": key_fields(diff.resource),
        "resource_id": diff.resource_id,
        "label": key_fields(diff.label),
        "label_id": diff.label_id,
    }


def plan_fields(plan: model.Plan) -> Any:
    """A plan as part of another message."""
    return {
        "target": target_to_pb(plan.target),
        "stack_id": plan.stack_id,
        "base_generation": plan.base_generation,
        "stages": plan.stages,
        "steps": map(step_fields, plan.steps),
        "resource_diffs": map(_diff_fields, plan.resource_diffs),
        "label_mapping_diffs": map(_mapping_fields, plan.label_mapping_diffs),
        "inventory": map(entry_fields, plan.inventory),
        "no_change": plan.no_change,
        "summary_json": plan.summary,
        "missing_env_refs": plan.missing_env_refs,
        "missing_secrets": plan.missing_secrets,
        "warnings": plan.warnings,
        "sources": plan.sources,
        "digest": plan.digest,
        "unresolved_env_refs": plan.unresolved_env_refs,
        "conflicts": [
            {"key": key_fields(conflict.key), "remote_id": conflict.remote_id, "message": conflict.message}
            for conflict in plan.conflicts
        ],
        "stack_name": plan.stack_name,
        "ends_stack": plan.ends_stack,
    }


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
        stack_name=message.stack_name,
        ends_stack=message.ends_stack,
    )
