"""JournalService on the wire: it translates and delegates, each call one transaction."""

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import NamedTuple

from pkger.journal.v1 import action_set_pb2, journal_pb2, journal_pb2_grpc
from pkger.model.v1 import plan_pb2

from services.core.model import Key
from services.engine.operation import FINISHED, OperationState
from services.engine.step_state import StepRecord
from services.rpc import page_tokens
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.claim_parts import claim_parts
from services.rpc.convert.drift import counts_from_pb
from services.rpc.convert.objects import baseline_to_pb, key_fields
from services.rpc.convert.operations import step_record_fields
from services.rpc.convert.plans import use_to_pb
from services.rpc.plan_parts import BODY, inflated
from services.system import Ids
from stack_svc.messages import fields
from stack_svc.messages import operations as operation_messages
from stack_svc.messages import plans as plan_messages
from stack_svc.messages import stacks as stack_messages
from stack_svc.rules import (
    action_sets,
    attachments,
    defects,
    drift_checks,
    finish,
    journal_replay,
    operations,
    plans,
    requests,
    resource_edits,
    sanitize,
    stacks,
)
from stack_svc.rules.operations import BeginRequest, BeginResult, ClaimResult, ClaimsRefused, PlanRef
from stack_svc.rules.reservations import NotReserved
from stack_svc.store import operations as stored_operations
from stack_svc.store.operations import Operation, OperationFilter
from stack_svc.store.plans import Part
from stack_svc.store.store import ReadTransaction, Store, Transaction


class JournalServicer(journal_pb2_grpc.JournalServiceServicer):
    """JournalService: writes of planners and appliers, and reads of operations."""

    def __init__(self, store: Store, ids: Ids, limit: int = MESSAGE_LIMIT) -> None:
        self._store = store
        self._ids = ids
        self._limit = limit

    async def StorePlan(self, request: journal_pb2.StorePlanRequest, context: object) -> journal_pb2.StorePlanResponse:
        """Store a plan to be applied."""
        content = plan_messages.plan_from_pb(request.plan, request.attachments)
        key = fields.request_from_pb(request.request)
        content.refuse_too_large(self._limit)
        plan = await self._store.write(
            lambda tx: (
                plans.store_for(tx, content, request.operation_id)
                if request.operation_id
                else plans.store(tx, content, key)
            )
        )
        return journal_pb2.StorePlanResponse(
            plan_id=plan.id,
            create_time=fields.timestamp(plan.create_time),
            expire_time=None if plan.expires is None else fields.timestamp(plan.expires),
        )

    async def ReadPlan(
        self, request: journal_pb2.ReadPlanRequest, context: object
    ) -> AsyncIterator[journal_pb2.ReadPlanResponse]:
        """Read header and body of a plan, in parts."""
        _, header, parts = await self._store.read(lambda tx: plans.parts(tx, request.plan_id, BODY))
        yield journal_pb2.ReadPlanResponse(plan=plan_pb2.Plan.FromString(header))
        for each in parts:
            yield journal_pb2.ReadPlanResponse(body=inflated(each.part))

    async def FindPlan(self, request: journal_pb2.FindPlanRequest, context: object) -> journal_pb2.FindPlanResponse:
        """Find the plan that a request stored."""
        key = fields.request_from_pb(request.request)
        plan_id = await self._store.read(lambda tx: plans.of_request(tx, key))
        return journal_pb2.FindPlanResponse(plan_id=plan_id)

    async def FindNamelessStacks(
        self, request: journal_pb2.FindNamelessStacksRequest, context: object
    ) -> journal_pb2.FindNamelessStacksResponse:
        """Find the stacks without a name whose record has one of the given keys."""
        target = fields.target_of(request.target)
        keys = [Key(sanitize.clean(each.kind), sanitize.clean(each.name)) for each in request.keys]
        candidates = await self._store.read(lambda tx: stacks.nameless(tx, target, keys))
        return journal_pb2.FindNamelessStacksResponse(
            stacks=[
                journal_pb2.NamelessStack(
                    stack=stack_messages.stack_to_pb(page.stack),
                    entries=[stack_messages.listed_entry(entry, page.without_baseline) for entry in page.entries],
                    entry_count=entry_count,
                )
                for page, entry_count in candidates
            ]
        )

    async def KeepAttachment(
        self, request: journal_pb2.KeepAttachmentRequest, context: object
    ) -> journal_pb2.KeepAttachmentResponse:
        """Retain an attachment for another day, if the store has it."""
        is_kept = await self._store.write(lambda tx: attachments.keep(tx, request.digest))
        return journal_pb2.KeepAttachmentResponse(is_kept=is_kept)

    async def StoreAttachment(
        self, request: journal_pb2.StoreAttachmentRequest, context: object
    ) -> journal_pb2.StoreAttachmentResponse:
        """Store a part of an attachment."""
        digest = sanitize.checked_name(request.digest, "digest")
        await self._store.write(lambda tx: attachments.store(tx, digest, request.number, request.count, request.body))
        return journal_pb2.StoreAttachmentResponse()

    async def BeginOperation(
        self, request: journal_pb2.BeginOperationRequest, context: object
    ) -> AsyncIterator[journal_pb2.BeginOperationResponse]:
        """Acquire the lease of a stack for a new operation."""
        begin_request = operation_messages.begin_request_from_pb(request, self._ids.token(stacks.ID_BYTES))
        begun, header, parts = await self._store.write(lambda tx: _begin(tx, begin_request))
        if isinstance(begun, Operation):
            yield journal_pb2.BeginOperationResponse(operation=operation_messages.operation_to_pb(begun))
            return
        yield journal_pb2.BeginOperationResponse(
            stack=stack_messages.stack_to_pb(begun.stack),
            token=begun.lease.token,
            last_token=begun.lease.last_token,
            shown_token=begun.lease.shown_token,
            expire_time=fields.timestamp(begun.lease.expires),
            is_pending=begun.stack.is_pending,
            operation=operation_messages.operation_to_pb(begun.operation),
            plan=plan_pb2.Plan.FromString(header) if header else None,
        )
        for each in parts:
            yield journal_pb2.BeginOperationResponse(plan_body=inflated(each.part))

    async def AdvanceOperation(
        self, request: journal_pb2.AdvanceOperationRequest, context: object
    ) -> journal_pb2.AdvanceOperationResponse:
        """Append to the journal."""
        writes = operation_messages.writes_from_pb(request, self._limit)
        try:
            cancel_requested = await self._store.write(
                lambda tx: operations.advance(tx, request.operation_id, request.token, writes)
            )
        except ClaimsRefused as error:
            refused = map(operation_messages.refused_to_pb, error.refused)
            return journal_pb2.AdvanceOperationResponse(cancel_requested=error.cancel_requested, refused=refused)
        except NotReserved as error:
            holder = operation_messages.holder_to_pb(error.holder)
            return journal_pb2.AdvanceOperationResponse(cancel_requested=error.cancel_requested, reserved_by=holder)
        return journal_pb2.AdvanceOperationResponse(cancel_requested=cancel_requested)

    async def RenewLease(
        self, request: journal_pb2.RenewLeaseRequest, context: object
    ) -> journal_pb2.RenewLeaseResponse:
        """Renew a lease, with a higher token if requested."""
        ttl = fields.microseconds(request.ttl)
        expires, cancel_requested = await self._store.write(
            lambda tx: operations.renew(tx, request.operation_id, request.token, ttl, request.raise_to)
        )
        return journal_pb2.RenewLeaseResponse(expire_time=fields.timestamp(expires), cancel_requested=cancel_requested)

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: object
    ) -> journal_pb2.FinishOperationResponse:
        """Store the outcome of an operation, end it and release its lease."""
        ending, writes = (
            operation_messages.finish_request_from_pb(request),
            operation_messages.writes_from_pb(request, self._limit),
        )
        try:
            ended = await self._store.write(
                lambda tx: finish.finish(tx, request.operation_id, request.token, ending, writes)
            )
        except ClaimsRefused as error:
            return journal_pb2.FinishOperationResponse(refused=map(operation_messages.refused_to_pb, error.refused))
        return journal_pb2.FinishOperationResponse(
            generation=ended.generation,
            orphaned=map(key_fields, ended.orphaned),
            orphaned_labels=map(use_to_pb, ended.orphaned_labels),
        )

    async def ListAbandonedOperations(
        self, request: journal_pb2.ListAbandonedOperationsRequest, context: object
    ) -> journal_pb2.ListAbandonedOperationsResponse:
        """List operations that any applier may claim."""
        names = await self._store.read(lambda tx: tx.operations.abandoned(tx.now(), operations.MOST_ABANDONED))
        return journal_pb2.ListAbandonedOperationsResponse(operation_ids=names)

    async def ClaimOperation(
        self, request: journal_pb2.ClaimOperationRequest, context: object
    ) -> AsyncIterator[journal_pb2.ClaimOperationResponse]:
        """Take over an unfinished operation."""
        ttl = fields.microseconds(request.ttl)
        claimed, replayed = await self._store.write(lambda tx: _claim(tx, request.operation_id, request.holder, ttl))
        if isinstance(replayed, Exception):
            raise replayed
        operation = claimed.operation
        answer = journal_pb2.ClaimOperationResponse(
            stack=stack_messages.stack_to_pb(claimed.stack),
            token=claimed.lease.token,
            last_token=claimed.lease.last_token,
            shown_token=claimed.lease.shown_token,
            operation=operation_messages.operation_to_pb(operation, claimed.blocked_steps),
            steps=map(step_record_fields, replayed.steps),
            sealed=operation.sealed,
            cancel_requested=operation.cancel_requested,
            last_seq=operation.last_seq,
            expire_time=fields.timestamp(claimed.lease.expires),
            is_pending=claimed.stack.is_pending,
            rollback=operation.rolling_back,
            position=operation.position,
            action_set=action_sets.message_of(claimed.action_set) if claimed.action_set else None,
            records=replayed.records,
        )
        for part in claim_parts(answer):
            yield part

    async def ReportDefect(
        self, request: journal_pb2.ReportDefectRequest, context: object
    ) -> journal_pb2.ReportDefectResponse:
        """Count a defect that ended an attempt to resume an operation."""
        blocks = operation_messages.defect_from_pb(request.blocked_steps)
        stored = await self._store.write(
            lambda tx: defects.report_defect(
                tx, request.operation_id, request.token, request.problem, blocks, operation_messages.blocked_event
            )
        )
        events = journal_pb2.StoredEvents.FromString(stored).events
        return journal_pb2.ReportDefectResponse(finished=events[0] if events else None)

    async def MarkRestored(
        self, request: journal_pb2.MarkRestoredRequest, context: object
    ) -> journal_pb2.MarkRestoredResponse:
        """Block the unfinished operations of a restored store, and mark its pending plans as stale."""
        answer = journal_pb2.MarkRestoredResponse()
        for operation in reversed(await self._store.read(_unfinished)):
            mark = partial(
                defects.mark_restored, operation_id=operation.id, make_event=operation_messages.blocked_event
            )
            is_blocked = await self._store.write(mark)
            if is_blocked is not None:
                (answer.blocked_operation_ids if is_blocked else answer.ended_operation_ids).append(operation.id)
        for plan_id in reversed(await self._store.read(plans.pending)):
            await self._store.write(partial(plans.mark_stale, plan_id=plan_id, problem=defects.RESTORED))
            answer.stale_plan_ids.append(plan_id)
        return answer

    async def ListBaselines(
        self, request: journal_pb2.ListBaselinesRequest, context: object
    ) -> journal_pb2.ListBaselinesResponse:
        """Read one page of the baselines of a stack."""
        after = Key(*page_tokens.place_of(request.page_token, ("", "")))
        size = page_tokens.size_of(0, 1000, 1000)
        stack, listed = await self._store.read(
            lambda tx: (
                stacks.existing(tx, request.stack_id),
                tx.baselines.page(request.stack_id, after, size + 1),
            )
        )
        page, token = page_tokens.page_of(listed, size, baseline_to_pb, lambda baseline: tuple(baseline.key))
        return journal_pb2.ListBaselinesResponse(
            baselines=page, next_page_token=token, generation=stack.record.generation
        )

    async def RecordImport(
        self, request: journal_pb2.RecordImportRequest, context: object
    ) -> journal_pb2.RecordImportResponse:
        """Import resources into the record of a stack."""
        imports, key = stack_messages.imports_from_pb(request), fields.request_from_pb(request.request)
        stack = await self._store.write(lambda tx: resource_edits.import_resources(tx, request.stack_id, imports, key))
        return journal_pb2.RecordImportResponse(generation=stack.record.generation)

    async def RecordDriftCheck(
        self, request: journal_pb2.RecordDriftCheckRequest, context: object
    ) -> journal_pb2.RecordDriftCheckResponse:
        """Store the counts of a drift detection."""
        counts = counts_from_pb(request.counts)
        is_stored = await self._store.write(
            lambda tx: drift_checks.record(tx, request.stack_id, request.generation, counts)
        )
        return journal_pb2.RecordDriftCheckResponse(is_stored=is_stored)

    async def RequestCancel(
        self, request: journal_pb2.RequestCancelRequest, context: object
    ) -> journal_pb2.RequestCancelResponse:
        """Record a request to cancel an operation."""
        cancelled = await self._store.write(lambda tx: operations.request_cancel(tx, request.operation_id))
        return journal_pb2.RequestCancelResponse(effect=operation_messages.cancel_effect_to_pb(cancelled))

    async def GetOperation(
        self, request: journal_pb2.GetOperationRequest, context: object
    ) -> journal_pb2.GetOperationResponse:
        """Read one operation."""
        operation_id = request.operation_id
        operation, blocked_steps = await self._store.read(
            lambda tx: (operations.existing(tx, operation_id), tx.operations.blocked_steps(operation_id))
        )
        return journal_pb2.GetOperationResponse(operation=operation_messages.operation_to_pb(operation, blocked_steps))

    async def FindOperation(
        self, request: journal_pb2.FindOperationRequest, context: object
    ) -> journal_pb2.FindOperationResponse:
        """Find the operation that a request began."""
        key = fields.request_from_pb(request.request)
        operation_id = await self._store.read(lambda tx: requests.earlier_answer(tx, key, tx.now()))
        return journal_pb2.FindOperationResponse(operation_id=operation_id or "")

    async def ListOperations(
        self, request: journal_pb2.ListOperationsRequest, context: object
    ) -> journal_pb2.ListOperationsResponse:
        """Read one page of operations."""
        after, size = (
            page_tokens.place_of(request.page_token, stored_operations.START),
            page_tokens.size_of(request.page_size, 50, 500),
        )
        operation_filter = operation_messages.filter_from_pb(request)
        listed = await self._store.read(lambda tx: tx.operations.page(operation_filter, after, size + 1))
        page, token = page_tokens.page_of(
            listed, size, operation_messages.operation_to_pb, lambda operation: (operation.create_time, operation.id)
        )
        return journal_pb2.ListOperationsResponse(operations=page, next_page_token=token)

    async def ListEvents(
        self, request: journal_pb2.ListEventsRequest, context: object
    ) -> journal_pb2.ListEventsResponse:
        """Read events of an operation."""
        journal_page = await self._store.read(
            lambda tx: operations.event_rows(tx, request.operation_id, request.after_seq, page_tokens.MOST_BYTES)
        )
        events, has_more = journal_replay.events_after(
            journal_page.rows, journal_page.has_more, request.after_seq, page_tokens.MOST_BYTES
        )
        return journal_pb2.ListEventsResponse(
            events=events,
            has_more=has_more,
            state=operation_messages.state_to_pb(journal_page.state),
        )


def _unfinished(reading: ReadTransaction) -> list[Operation]:
    """All unfinished operations, newest first."""
    unfinished = OperationFilter(states=[state for state in OperationState if state not in FINISHED])
    return reading.operations.page(unfinished, stored_operations.START, plans.EVERYTHING)


def _begin(tx: Transaction, request: BeginRequest) -> tuple[BeginResult | Operation, bytes, list[Part]]:
    """Begin an operation; returns header and parts of the stored plan that it is to run, too, if there is one."""
    begun = operations.begin(tx, request)
    if not isinstance(request.choice, PlanRef):
        return begun, b"", []
    _, header, parts = plans.parts(tx, request.choice.plan, BODY)
    return begun, header, parts


class _Replayed(NamedTuple):
    """What a journal says of the steps of a plan, or of the phases of an action set."""

    steps: Sequence[StepRecord] = ()
    records: Sequence[action_set_pb2.ActionRecords] = ()


def _replayed(claimed: ClaimResult) -> _Replayed:
    if claimed.action_set:
        return _Replayed(records=journal_replay.action_records_of(claimed.rows))
    return _Replayed(steps=journal_replay.steps_of(claimed.rows, claimed.operation.step_count))


def _claim(tx: Transaction, operation_id: str, holder: str, ttl: int) -> tuple[ClaimResult, _Replayed | Exception]:
    """Claim an operation. If its journal cannot be read, release the lease and count a defect."""
    claimed = operations.claim(tx, operation_id, holder, ttl)
    try:
        return claimed, _replayed(claimed)
    except Exception as error:
        operation, blocks = claimed.operation, operation_messages.defect_from_pb([])
        blocks = blocks._replace(step_count=operation.blocks.step_count, body=claimed.blocked_steps)
        problem = f"its journal cannot be read: {error}"
        make_event = operation_messages.blocked_event
        defects.count_defect(
            tx, operation, claimed.lease, claimed.stack, problem, blocks, make_event, claimed.operation.update_time
        )
        return claimed, error
