"""What is recorded and told at the end of an operation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pkger.model.v1 import operation_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.outcomes import outcome_to_pb
from applier_svc.run import Result
from services.core.model import InventoryEntry, Key, Plan, StackRecord, by_key
from services.kinds.summary_ids import with_ids
from services.rpc.convert.objects import entry_fields


@dataclass(frozen=True, slots=True)
class Ending:
    """
    The end of one operation.

    Attributes:
        plan: Its plan.
        stack: Its stack as it was when the operation began.
        is_transient: Whether the stack goes away with the operation, which works on behalf of none.
        is_pending: Whether the stack goes away unless the operation succeeds.
        kind: What the operation is for.
    """

    plan: Plan
    stack: StackRecord
    is_transient: bool
    is_pending: bool
    kind: operation_pb2.OperationKind.ValueType

    def outcome(self, entries: Sequence[InventoryEntry]) -> journal_pb2.Record | journal_pb2.Remove | None:
        """The record of an operation that succeeded; None: there is none to keep, or it stays as it is."""
        if self.is_transient:
            return None
        if self.kind == operation_pb2.OPERATION_KIND_UNINSTALL and not entries:
            return journal_pb2.Remove()
        # A stack that the operation made is there for others only with a record.
        return None if self.plan.no_change and not self.is_pending else self._record(entries)

    def record(self, entries: Sequence[InventoryEntry]) -> journal_pb2.Record | None:
        """The record of an operation that took back what it did; None: it stays as it is."""
        if self.is_transient or by_key(entries) == by_key(self.stack.resources):
            return None
        return self._record(entries)

    def told(self, entries: Sequence[InventoryEntry], result: Result) -> operation_pb2.Finished:
        """The last event."""
        succeeded = result.state == operation_pb2.OPERATION_STATE_SUCCEEDED
        # The end of a stack that owns nothing has no step, but the record goes away.
        is_apply = self.kind == operation_pb2.OPERATION_KIND_APPLY
        known = {entry.key: entry.remote_id for entry in entries}
        # A stack that the operation made is there for others once the operation succeeded, or left something behind.
        has_left = result.state == operation_pb2.OPERATION_STATE_ROLLED_BACK and entries
        is_gone = (
            self.is_transient
            or (succeeded and not is_apply and not entries)
            or (self.is_pending and not (succeeded or has_left))
        )
        return operation_pb2.Finished(
            state=result.state,
            cause=result.cause,
            summary_json=_summary(self.plan, known) if succeeded else "",
            inventory=map(entry_fields, entries),
            leftovers=[outcome_to_pb(number, outcome) for number, outcome in result.leftovers.items()],
            no_change=succeeded and is_apply and self.plan.no_change,
            stack_id="" if is_gone else self.stack.id,
        )

    def _record(self, entries: Sequence[InventoryEntry]) -> journal_pb2.Record:
        return journal_pb2.Record(
            resources=map(entry_fields, entries),
            sources=self.plan.sources,
            platform_changed=bool(self.plan.steps),
        )


def _summary(plan: Plan, ids: Mapping[Key, str]) -> str:
    """The summary with all ids; the plan knew them all when nothing was to be done."""
    return with_ids(plan.summary, ids) if plan.steps else plan.summary
