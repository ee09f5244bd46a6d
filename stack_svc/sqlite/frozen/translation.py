"""Translates frozen messages to the messages that the store holds now."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import orjson
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core import model
from services.engine.decisions import BlockedStep
from services.engine.operation import BlockedReason, Direction
from services.rpc.convert.enums import Numbers
from services.rpc.convert.operations import blocked_reason_to_pb, blocked_step_to_pb
from services.rpc.convert.plans import header_to_pb, record_changes_to_pb, remarks_to_pb, step_fields
from stack_svc.sqlite.frozen import messages

_VERBS = Numbers(model.Verb, messages.Verb, "VERB")
_UNDO = Numbers(model.Undo, messages.Undo, "UNDO")
_ORIGINS = Numbers((model.Origin.CREATED, model.Origin.ADOPTED), messages.Origin, "ORIGIN")
_DIRECTIONS = Numbers(Direction, messages.Direction, "DIRECTION")
_BLOCKED_REASONS = Numbers(
    (BlockedReason.CONFLICT, BlockedReason.UNKNOWN_OUTCOME, BlockedReason.ROLLBACK),
    messages.BlockedReason,
    "BLOCKED_REASON",
)


class Translated(NamedTuple):
    """A translated plan."""

    plan: model.Plan
    header: plan_pb2.Plan
    body: journal_pb2.PlanBody


class Blocks(NamedTuple):
    """The blocked steps of an operation; ``body`` is a ``pkger.model.v1.Operation`` with no other field."""

    reason: int
    step_count: int
    body: bytes


def plan_of(old: Any, kind: model.OperationKind, recorded: Collection[model.InventoryEntry] | None) -> Translated:
    """
    Translate a frozen Plan.

    Args:
        old: The plan.
        kind: Kind of its operation.
        recorded: Inventory of its stack; None: the plan changes no record, or can no longer be applied.
    """
    plan = model.Plan(
        target=model.Target(old.target.platform or model.DEFAULT_PLATFORM, old.target.org or model.DEFAULT_ORG),
        stack_id=old.stack_id,
        base_generation=old.base_generation,
        stages=tuple(old.stages),
        steps=tuple(map(_step, old.steps)),
        record=model.RecordChanges() if recorded is None or old.no_change else _changes(old.inventory, recorded),
        no_change=old.no_change,
        kind=kind,
        remarks=_remarks(old),
        sources=tuple(old.sources),
        digest=old.digest,
        stack_name=old.stack_name,
    )
    body = journal_pb2.PlanBody(
        remarks=remarks_to_pb(plan.remarks),
        steps=map(step_fields, plan.steps),
        record=record_changes_to_pb(plan.record),
    )
    return Translated(plan, header_to_pb(plan, old.name), body)


def blocks_of(old: Any, steps: Iterable[model.Step]) -> Blocks:
    """Translate the blocked steps of a frozen Operation; *steps* are those of its plan."""
    by_number = {step.number: step for step in steps}
    blocked = [
        BlockedStep(
            by_number[each.step],
            _DIRECTIONS.member(each.direction),
            _BLOCKED_REASONS.member(each.reason),
            each.message,
            each.found_id,
        )
        for each in old.blocked_steps
    ]
    reason = _BLOCKED_REASONS.find(old.blocked_reason)
    body = operation_pb2.Operation(blocked_steps=map(blocked_step_to_pb, blocked))
    return Blocks(blocked_reason_to_pb(reason) if reason else 0, len(blocked), body.SerializeToString())


def event_of(body: bytes, header: plan_pb2.Plan) -> bytes:
    """
    Translate a frozen OperationEvent of an operation that runs the plan with *header*.

    Only ``accepted`` and ``finished`` have changed their wire format. ``finished`` gets the generation that its plan
    was made from, or the next one if the operation succeeded with a change.
    """
    old = messages.OperationEvent.FromString(body)
    event = operation_pb2.OperationEvent(
        operation=old.operation, seq=old.seq, time=Timestamp(seconds=old.time.seconds, nanos=old.time.nanos)
    )
    match old.WhichOneof("event"):
        case "accepted":
            event.accepted.plan = header.name
            event.accepted.digest = header.digest
            event.accepted.counts.CopyFrom(header.counts)
        case "finished":
            event.finished.state = old.finished.state
            event.finished.cause = old.finished.cause
            event.finished.leftover_count = len(old.finished.leftovers)
            event.finished.no_change = old.finished.no_change
            event.finished.stack_id = old.finished.stack_id
            event.finished.generation = _generation_after(event.finished, header)
        case _:
            return body
    return event.SerializeToString()


def _generation_after(finished: operation_pb2.Finished, header: plan_pb2.Plan) -> int:
    has_moved = finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED and not finished.no_change
    return header.base_generation + has_moved if finished.stack_id else 0


def _step(old: Any) -> model.Step:
    return model.Step(
        number=old.number,
        stage=old.stage,
        verb=_VERBS.member(old.verb),
        key=_key(old.key),
        resource_id=old.remote_id,
        label=_key(old.label) if old.HasField("label") else None,
        label_id=old.label_id,
        old_spec=_spec(old.old_spec_json),
        new_spec=_spec(old.new_spec_json),
        undo=_UNDO.find(old.undo) or model.Undo.EXACT,
        reason=old.reason,
        old_references=_references(old.old_references),
        references=_references(old.references),
    )


def _spec(text: str) -> model.Spec | None:
    return model.Spec(text, orjson.loads(text)["name"]) if text else None


def _references(olds: Iterable[Any]) -> tuple[model.StepReference, ...]:
    return tuple(model.StepReference(old.pointer, _key(old.key), old.id) for old in olds)


def _changes(inventory: Iterable[Any], recorded: Collection[model.InventoryEntry]) -> model.RecordChanges:
    wanted, before = model.by_key([*map(_entry, inventory)]), model.by_key([*map(_in_order, recorded)])
    return model.RecordChanges(
        tuple(entry for key, entry in sorted(wanted.items()) if before.get(key) != entry),
        tuple(sorted(before.keys() - wanted.keys())),
    )


def _entry(old: Any) -> model.InventoryEntry:
    associations = tuple(map(_key, old.associations))
    origin = _ORIGINS.member(old.origin)
    return _in_order(model.InventoryEntry(_key(old.key), old.remote_id, origin, associations, old.is_pending_delete))


def _in_order(entry: model.InventoryEntry) -> model.InventoryEntry:
    return entry._replace(associations=tuple(sorted(entry.associations)))


def _remarks(old: Any) -> model.PlanRemarks:
    return model.PlanRemarks(
        tuple(old.missing_env_refs),
        tuple(old.unresolved_env_refs),
        tuple(old.missing_secrets),
        tuple(old.warnings),
        tuple(model.Conflict(_key(each.key), each.remote_id, each.message) for each in old.conflicts),
    )


def _key(old: Any) -> model.Key:
    return model.Key(old.kind, old.name)
