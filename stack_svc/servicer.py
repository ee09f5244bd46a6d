"""StackService and JournalService on the wire: they translate and delegate, each call one transaction."""

import asyncio
from collections.abc import AsyncIterator, Collection
from functools import partial

from pkger.journal.v1 import journal_pb2, journal_pb2_grpc
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.core.model import InventoryEntry, Key
from services.engine.operation import FINISHED, OperationState
from services.engine.step_state import StepRecord
from services.kinds.format.canonical import canonical_text
from services.kinds.package_text import read_package
from services.rpc.call import MESSAGE_LIMIT
from services.rpc.claim_parts import claim_parts
from services.rpc.convert.drift import counts_from_pb
from services.rpc.convert.objects import baseline_to_pb, entry_fields, key_fields
from services.rpc.convert.operations import step_record_fields
from services.rpc.convert.plans import use_to_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import BODY, REMARKS, checked_view, diffs_parts, inflated, shown_part
from services.rpc.request_digest import content_digest
from services.rpc.server import Register
from services.system import Ids
from stack_svc import messages
from stack_svc.notify import NotifyingStore, Watchers
from stack_svc.rules import (
    attachments,
    defects,
    drift_checks,
    finish,
    journal_replay,
    operations,
    pages,
    plans,
    resource_edits,
    revisions,
    sanitize,
    stacks,
    updates,
    uses,
    watching,
)
from stack_svc.rules.operations import BeginRequest, BeginResult, ClaimResult, ClaimsRefused, PlanRef
from stack_svc.rules.requests import RequestId
from stack_svc.rules.urls import checked_urls
from stack_svc.store import operations as stored_operations
from stack_svc.store import plans as stored_plans
from stack_svc.store import revisions as stored_revisions
from stack_svc.store import stacks as stored_stacks
from stack_svc.store.drift_checks import DriftCheck
from stack_svc.store.operations import Operation, OperationFilter
from stack_svc.store.plans import Part
from stack_svc.store.revisions import Revision
from stack_svc.store.stacks import Choice, Stack, StackName
from stack_svc.store.store import ReadTransaction, Store, Transaction

SERVICES = ("pkger.stack.v1.StackService", "pkger.journal.v1.JournalService")
"""Full names, for health and reflection."""


def registrations(
    store: Store,
    ids: Ids,
    limit: int = MESSAGE_LIMIT,
    allow_jsonnet: bool = False,
    watchers: Watchers | None = None,
) -> list[Register]:
    """
    Both services over one store, for ``serving``.

    Args:
        store: The store.
        ids: Draws ids of stacks.
        limit: Largest message, in bytes, between the services.
        allow_jsonnet: Whether URLs of Jsonnet programs are accepted, as the parser evaluates them.
        watchers: The watchers of stacks; None: a new, empty set.
    """
    watchers = watchers or Watchers()
    announcing = NotifyingStore(store, watchers)
    return [
        partial(
            stack_pb2_grpc.add_StackServiceServicer_to_server, StackServicer(announcing, ids, allow_jsonnet, watchers)
        ),
        partial(journal_pb2_grpc.add_JournalServiceServicer_to_server, JournalServicer(announcing, ids, limit)),
    ]


class StackServicer(stack_pb2_grpc.StackServiceServicer):
    """StackService: requests of users and planners."""

    def __init__(self, store: Store, ids: Ids, allow_jsonnet: bool = False, watchers: Watchers | None = None) -> None:
        self._store = store
        self._ids = ids
        self._allow_jsonnet = allow_jsonnet
        self._watchers = watchers or Watchers()

    async def CreateStack(
        self, request: stack_pb2.CreateStackRequest, context: object
    ) -> stack_pb2.CreateStackResponse:
        """Create an empty stack."""
        named = StackName(messages.new_target_of(request.target), request.name)
        urls = checked_urls(request.urls, "urls", self._allow_jsonnet)
        target = named.target
        policy = messages.policy_of(request.policy)
        content = [target.platform, target.org, named.name, request.description, *urls, canonical_text(policy)]
        key = RequestId(request.request_id, content)
        stack_id = self._ids.token(stacks.ID_BYTES)
        stack = await self._store.write(
            lambda tx: stacks.create(tx, named, request.description, urls, key, stack_id, policy)
        )
        return stack_pb2.CreateStackResponse(stack=messages.stack_to_pb(stack))

    async def UpdateStack(
        self, request: stack_pb2.UpdateStackRequest, context: object
    ) -> stack_pb2.UpdateStackResponse:
        """Update name, description, URLs or policy of a stack."""
        choice = messages.choice_from_pb(request.stack)
        update = messages.update_from_pb(request, self._allow_jsonnet)
        key = RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: updates.update(tx, choice, update, key))
        return stack_pb2.UpdateStackResponse(stack=messages.stack_to_pb(stack))

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: object) -> stack_pb2.GetStackResponse:
        """Read one stack."""
        choice = messages.choice_from_pb(request.stack)
        stack, drift_check = await self._store.read(lambda tx: _with_drift_check(tx, choice))
        return stack_pb2.GetStackResponse(stack=messages.stack_to_pb(stack, drift_check))

    async def ListResources(
        self, request: stack_pb2.ListResourcesRequest, context: object
    ) -> stack_pb2.ListResourcesResponse:
        """Read one page of the inventory of a stack."""
        choice = messages.choice_from_pb(request.stack)
        after = pages.place_of(request.page_token, stacks.FIRST_RESOURCE)
        size = pages.size_of(request.page_size, 1000, 5000)
        inventory = await self._store.read(lambda tx: stacks.resources(tx, choice, after, size))
        record = inventory.stack.record
        page, token = pages.page_of(
            inventory.entries,
            size,
            lambda entry: _listed(entry, inventory.without_baseline),
            lambda entry: (record.id, record.generation, *entry.key),
        )
        return stack_pb2.ListResourcesResponse(resources=page, next_page_token=token, generation=record.generation)

    async def ListStacks(self, request: stack_pb2.ListStacksRequest, context: object) -> stack_pb2.ListStacksResponse:
        """Read one page of stacks."""
        stack_filter = messages.stacks_filter_from_pb(request)
        after, size = (
            pages.place_of(request.page_token, stored_stacks.START),
            pages.size_of(request.page_size, 100, 1000),
        )
        listed = await self._store.read(lambda tx: tx.stacks.page(stack_filter, after, size + 1))
        page, token = pages.page_of(
            listed, size, messages.stack_to_pb, lambda stack: (stack.record.name, stack.record.id)
        )
        return stack_pb2.ListStacksResponse(stacks=page, next_page_token=token)

    async def WatchStack(
        self, request: stack_pb2.WatchStackRequest, context: object
    ) -> AsyncIterator[stack_pb2.WatchStackResponse]:
        """Report the record of a stack and the operations on it, until it is removed."""
        position = messages.position_from_pb(request.position)
        stack_id = position.stack
        if not stack_id:
            choice = messages.choice_from_pb(request.stack)
            stack_id = (await self._store.read(lambda tx: watching.watched(tx, choice))).record.id
        with self._watchers.waiting(stack_id) as event:
            while True:
                seen = await self._store.read(partial(watching.snapshot, stack_id=stack_id, position=position))
                record = messages.record_digest(seen.stack, seen.drift)
                for change, position in watching.changes(position, seen, record):  # noqa: B020 - the next round starts there
                    yield messages.change_to_pb(stack_id, change, position, seen.drift)
                if seen.stack is None:
                    return
                await self._watchers.next_change(event)

    async def DeleteStack(
        self, request: stack_pb2.DeleteStackRequest, context: object
    ) -> stack_pb2.DeleteStackResponse:
        """Remove the record of a stack that owns nothing."""
        choice = messages.choice_from_pb(request.stack)
        await self._store.write(lambda tx: stacks.delete(tx, choice))
        return stack_pb2.DeleteStackResponse()

    async def ForgetResource(
        self, request: stack_pb2.ForgetResourceRequest, context: object
    ) -> stack_pb2.ForgetResourceResponse:
        """Forget a resource."""
        choice = messages.choice_from_pb(request.stack)
        key, request_id = messages.checked_key(request.key), RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: resource_edits.forget(tx, choice, key, request_id))
        return stack_pb2.ForgetResourceResponse(stack=messages.stack_to_pb(stack))

    async def RenameResource(
        self, request: stack_pb2.RenameResourceRequest, context: object
    ) -> stack_pb2.RenameResourceResponse:
        """Rename an object in the record."""
        choice = messages.choice_from_pb(request.stack)
        key, request_id = messages.checked_key(request.key), RequestId(request.request_id, [content_digest(request)])
        stack = await self._store.write(lambda tx: resource_edits.rename(tx, choice, key, request.new_name, request_id))
        return stack_pb2.RenameResourceResponse(stack=messages.stack_to_pb(stack))

    async def FindOwners(self, request: stack_pb2.FindOwnersRequest, context: object) -> stack_pb2.FindOwnersResponse:
        """Find the stacks that own or use the given resources."""
        target = messages.target_of(request.target)
        resources = [(sanitize.clean(each.kind), sanitize.clean(each.id)) for each in request.resources]
        owned, used, labels = await self._store.read(lambda tx: uses.holdings(tx, target, resources))
        answer = stack_pb2.FindOwnersResponse()
        for field, holders in ((answer.owners, owned), (answer.users, used)):
            for resource, holder in holders:
                field.append(messages.holder_to_pb(resource, holder, labels.get((holder.stack, resource), ())))
        return answer

    async def GetPlan(
        self, request: stack_pb2.GetPlanRequest, context: object
    ) -> AsyncIterator[stack_pb2.GetPlanResponse]:
        """Read one plan, in parts."""
        views = {REMARKS, *checked_view(request.view)}
        plan, header, parts = await self._store.read(lambda tx: plans.parts(tx, request.plan_id, views))
        yield stack_pb2.GetPlanResponse(part=plan_pb2.PlanPart(header=messages.plan_to_pb(plan, header)))
        for each in parts:
            part = plan_pb2.PlanPart.FromString(inflated(each.masked_part or each.part))
            yield stack_pb2.GetPlanResponse(part=part)

    async def ListRevisions(
        self, request: stack_pb2.ListRevisionsRequest, context: object
    ) -> stack_pb2.ListRevisionsResponse:
        """Read one page of the history of a stack, or of several stacks."""
        size = pages.size_of(request.page_size, 50, 500)
        if request.stack_ids:
            stack_ids = messages.stacks_from_pb(request)
            after = pages.place_of(request.page_token, stored_revisions.START)
            listed = await self._store.read(lambda tx: tx.revisions.page_of_stacks(stack_ids, after, size + 1))
        else:
            choice = messages.choice_from_pb(request.stack)
            (before,) = pages.place_of(request.page_token, (stored_revisions.NEWEST,))
            listed = await self._store.read(lambda tx: _history(tx, choice, before, size + 1))
        page, token = pages.page_of(
            listed,
            size,
            lambda each: messages.revision_to_pb(each[1], each[0]),
            lambda each: (each[0], each[1].number) if request.stack_ids else (each[1].number,),
        )
        return stack_pb2.ListRevisionsResponse(revisions=page, next_page_token=token)

    async def GetRevision(
        self, request: stack_pb2.GetRevisionRequest, context: object
    ) -> AsyncIterator[stack_pb2.GetRevisionResponse]:
        """Read one revision, in parts."""
        choice = messages.choice_from_pb(request.stack)
        [(stack_id, revision, text)] = await self._store.read(lambda tx: _revisions(tx, choice, number=request.number))
        yield stack_pb2.GetRevisionResponse(revision=messages.revision_to_pb(revision, stack_id))
        is_shown = not request.unmasked
        objects = await asyncio.to_thread(lambda: messages.revision_objects_to_pb(read_package(text), is_shown))
        for part in cut(objects):
            yield stack_pb2.GetRevisionResponse(objects=part)

    async def DiffRevisions(
        self, request: stack_pb2.DiffRevisionsRequest, context: object
    ) -> AsyncIterator[stack_pb2.DiffRevisionsResponse]:
        """Compare the packages of two revisions."""
        choice = messages.choice_from_pb(request.stack)
        numbers = {"old": request.old, "new": request.new}
        (_, _, old), (_, _, new) = await self._store.read(lambda tx: _revisions(tx, choice, **numbers))
        listed = await asyncio.to_thread(lambda: revisions.differences(read_package(old), read_package(new)))
        for part in diffs_parts(listed):
            yield stack_pb2.DiffRevisionsResponse(diffs=shown_part(part).diffs)

    async def ListPlans(self, request: stack_pb2.ListPlansRequest, context: object) -> stack_pb2.ListPlansResponse:
        """Read one page of plans."""
        target = messages.target_of(request.target) if request.HasField("target") else None
        after, size = pages.place_of(request.page_token, stored_plans.START), pages.size_of(request.page_size, 50, 500)
        listed = await self._store.read(lambda tx: plans.page(tx, target, request.stack_name, after, size))
        page, token = pages.page_of(
            listed, size, lambda each: messages.plan_to_pb(*each), lambda each: (each[0].create_time, each[0].id)
        )
        return stack_pb2.ListPlansResponse(plans=page, next_page_token=token)

    async def DeletePlan(self, request: stack_pb2.DeletePlanRequest, context: object) -> stack_pb2.DeletePlanResponse:
        """Remove a plan that no operation has run."""
        await self._store.write(lambda tx: plans.delete(tx, sanitize.clean(request.plan_id)))
        return stack_pb2.DeletePlanResponse()


class JournalServicer(journal_pb2_grpc.JournalServiceServicer):
    """JournalService: writes of planners and appliers, and reads of operations."""

    def __init__(self, store: Store, ids: Ids, limit: int = MESSAGE_LIMIT) -> None:
        self._store = store
        self._ids = ids
        self._limit = limit

    async def StorePlan(self, request: journal_pb2.StorePlanRequest, context: object) -> journal_pb2.StorePlanResponse:
        """Store a plan to be applied."""
        content = messages.plan_from_pb(request.plan, request.attachments)
        key = messages.request_from_pb(request.request)
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
            create_time=messages.timestamp(plan.create_time),
            expire_time=None if plan.expires is None else messages.timestamp(plan.expires),
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
        key = messages.request_from_pb(request.request)
        plan_id = await self._store.read(lambda tx: plans.of_request(tx, key))
        return journal_pb2.FindPlanResponse(plan_id=plan_id)

    async def FindNamelessStacks(
        self, request: journal_pb2.FindNamelessStacksRequest, context: object
    ) -> journal_pb2.FindNamelessStacksResponse:
        """Find the stacks without a name whose record has one of the given keys."""
        target = messages.target_of(request.target)
        keys = [Key(sanitize.clean(each.kind), sanitize.clean(each.name)) for each in request.keys]
        candidates = await self._store.read(lambda tx: stacks.nameless(tx, target, keys))
        return journal_pb2.FindNamelessStacksResponse(
            stacks=[
                journal_pb2.NamelessStack(
                    stack=messages.stack_to_pb(page.stack),
                    entries=[_listed(entry, page.without_baseline) for entry in page.entries],
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
        beginning = messages.beginning_from_pb(request, self._ids.token(stacks.ID_BYTES))
        begun, header, parts = await self._store.write(lambda tx: _begin(tx, beginning))
        if isinstance(begun, Operation):
            yield journal_pb2.BeginOperationResponse(operation=messages.operation_to_pb(begun))
            return
        yield journal_pb2.BeginOperationResponse(
            stack=messages.stack_to_pb(begun.stack),
            token=begun.lease.token,
            last_token=begun.lease.last_token,
            expire_time=messages.timestamp(begun.lease.expires),
            is_pending=begun.stack.is_pending,
            operation=messages.operation_to_pb(begun.operation),
            plan=plan_pb2.Plan.FromString(header) if header else None,
        )
        for each in parts:
            yield journal_pb2.BeginOperationResponse(plan_body=inflated(each.part))

    async def AdvanceOperation(
        self, request: journal_pb2.AdvanceOperationRequest, context: object
    ) -> journal_pb2.AdvanceOperationResponse:
        """Append to the journal."""
        writes = messages.writes_from_pb(request, self._limit)
        try:
            cancel_requested = await self._store.write(
                lambda tx: operations.advance(tx, request.operation_id, request.token, writes)
            )
        except ClaimsRefused as error:
            refused = map(messages.refused_to_pb, error.refused)
            return journal_pb2.AdvanceOperationResponse(cancel_requested=error.cancel_requested, refused=refused)
        return journal_pb2.AdvanceOperationResponse(cancel_requested=cancel_requested)

    async def RenewLease(
        self, request: journal_pb2.RenewLeaseRequest, context: object
    ) -> journal_pb2.RenewLeaseResponse:
        """Renew a lease, with a higher token if requested."""
        ttl = messages.microseconds(request.ttl)
        expires, cancel_requested = await self._store.write(
            lambda tx: operations.renew(tx, request.operation_id, request.token, ttl, request.raise_to)
        )
        return journal_pb2.RenewLeaseResponse(
            expire_time=messages.timestamp(expires), cancel_requested=cancel_requested
        )

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: object
    ) -> journal_pb2.FinishOperationResponse:
        """Store the outcome of an operation, end it and release its lease."""
        ending, writes = messages.ending_from_pb(request), messages.writes_from_pb(request, self._limit)
        try:
            ended = await self._store.write(
                lambda tx: finish.finish(tx, request.operation_id, request.token, ending, writes)
            )
        except ClaimsRefused as error:
            return journal_pb2.FinishOperationResponse(refused=map(messages.refused_to_pb, error.refused))
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
        ttl = messages.microseconds(request.ttl)
        claimed, steps = await self._store.write(lambda tx: _claim(tx, request.operation_id, request.holder, ttl))
        if isinstance(steps, Exception):
            raise steps
        operation = claimed.operation
        answer = journal_pb2.ClaimOperationResponse(
            stack=messages.stack_to_pb(claimed.stack),
            token=claimed.lease.token,
            last_token=claimed.lease.last_token,
            operation=messages.operation_to_pb(operation, claimed.blocked_steps),
            steps=map(step_record_fields, steps),
            sealed=operation.sealed,
            cancel_requested=operation.cancel_requested,
            last_seq=operation.last_seq,
            expire_time=messages.timestamp(claimed.lease.expires),
            is_pending=claimed.stack.is_pending,
            rollback=operation.rolling_back,
            position=operation.position,
        )
        for part in claim_parts(answer):
            yield part

    async def ReportDefect(
        self, request: journal_pb2.ReportDefectRequest, context: object
    ) -> journal_pb2.ReportDefectResponse:
        """Count a defect that ended an attempt to resume an operation."""
        blocks = messages.defect_from_pb(request.blocked_steps)
        stored = await self._store.write(
            lambda tx: defects.report_defect(
                tx, request.operation_id, request.token, request.problem, blocks, messages.blocked_event
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
            mark = partial(defects.mark_restored, operation_id=operation.id, make_event=messages.blocked_event)
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
        after = Key(*pages.place_of(request.page_token, ("", "")))
        size = pages.size_of(0, 1000, 1000)
        stack, listed = await self._store.read(
            lambda tx: (
                stacks.existing(tx, request.stack_id),
                tx.baselines.page(request.stack_id, after, size + 1),
            )
        )
        page, token = pages.page_of(listed, size, baseline_to_pb, lambda baseline: tuple(baseline.key))
        return journal_pb2.ListBaselinesResponse(
            baselines=page, next_page_token=token, generation=stack.record.generation
        )

    async def RecordImport(
        self, request: journal_pb2.RecordImportRequest, context: object
    ) -> journal_pb2.RecordImportResponse:
        """Import resources into the record of a stack."""
        imports, key = messages.imports_from_pb(request), messages.request_from_pb(request.request)
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
        return journal_pb2.RequestCancelResponse(effect=messages.cancel_effect_to_pb(cancelled))

    async def GetOperation(
        self, request: journal_pb2.GetOperationRequest, context: object
    ) -> journal_pb2.GetOperationResponse:
        """Read one operation."""
        operation_id = request.operation_id
        operation, blocked_steps = await self._store.read(
            lambda tx: (operations.existing(tx, operation_id), tx.operations.blocked_steps(operation_id))
        )
        return journal_pb2.GetOperationResponse(operation=messages.operation_to_pb(operation, blocked_steps))

    async def ListOperations(
        self, request: journal_pb2.ListOperationsRequest, context: object
    ) -> journal_pb2.ListOperationsResponse:
        """Read one page of operations."""
        after, size = (
            pages.place_of(request.page_token, stored_operations.START),
            pages.size_of(request.page_size, 50, 500),
        )
        operation_filter = messages.filter_from_pb(request)
        listed = await self._store.read(lambda tx: tx.operations.page(operation_filter, after, size + 1))
        page, token = pages.page_of(
            listed, size, messages.operation_to_pb, lambda operation: (operation.create_time, operation.id)
        )
        return journal_pb2.ListOperationsResponse(operations=page, next_page_token=token)

    async def ListEvents(
        self, request: journal_pb2.ListEventsRequest, context: object
    ) -> journal_pb2.ListEventsResponse:
        """Read events of an operation."""
        journal_page = await self._store.read(
            lambda tx: operations.event_rows(tx, request.operation_id, request.after_seq, pages.MOST_BYTES)
        )
        events, has_more = journal_replay.events_after(
            journal_page.rows, journal_page.has_more, request.after_seq, pages.MOST_BYTES
        )
        return journal_pb2.ListEventsResponse(
            events=events,
            has_more=has_more,
            state=messages.state_to_pb(journal_page.state),
        )


def _listed(entry: InventoryEntry, lacking: Collection[Key]) -> object_pb2.InventoryEntry:
    """An entry in a list; *lacking* are the keys of entries without a baseline."""
    return object_pb2.InventoryEntry(**entry_fields(entry), lacks_baseline=entry.key in lacking)


def _with_drift_check(reading: ReadTransaction, choice: Choice) -> tuple[Stack, DriftCheck | None]:
    """A stack, and its last drift detection."""
    stack = stacks.existing(reading, choice)
    return stack, reading.drift_checks.find(stack.record.id)


def _unfinished(reading: ReadTransaction) -> list[Operation]:
    """All unfinished operations, newest first."""
    unfinished = OperationFilter(states=[state for state in OperationState if state not in FINISHED])
    return reading.operations.page(unfinished, stored_operations.START, plans.EVERYTHING)


def _revisions(reading: ReadTransaction, choice: Choice, **numbers: int) -> list[tuple[str, Revision, str]]:
    """Revisions of a stack, with the id of the stack and the text of the package; *numbers* are by request field."""
    stack = stacks.existing(reading, choice)
    listed = [revisions.existing(reading, stack, number, field) for field, number in numbers.items()]
    return [(stack.record.id, each, attachments.text_of(reading, each.package_digest)) for each in listed]


def _history(reading: ReadTransaction, choice: Choice, before: int, most: int) -> list[tuple[str, Revision]]:
    """At most *most* revisions of a stack with numbers below *before*, newest first, each with the id of the stack."""
    stack_id = stacks.existing(reading, choice).record.id
    return [(stack_id, revision) for revision in reading.revisions.page(stack_id, before, most)]


def _begin(tx: Transaction, request: BeginRequest) -> tuple[BeginResult | Operation, bytes, list[Part]]:
    """Begin an operation; returns header and parts of the stored plan that it is to run, too, if there is one."""
    begun = operations.begin(tx, request)
    if not isinstance(request.choice, PlanRef):
        return begun, b"", []
    _, header, parts = plans.parts(tx, request.choice.plan, BODY)
    return begun, header, parts


def _claim(
    tx: Transaction, operation_id: str, holder: str, ttl: int
) -> tuple[ClaimResult, list[StepRecord] | Exception]:
    """Claim an operation. If its journal cannot be read, release the lease and count a defect."""
    claimed = operations.claim(tx, operation_id, holder, ttl)
    try:
        return claimed, journal_replay.steps_of(claimed.rows, claimed.operation.step_count)
    except Exception as error:
        operation, blocks = claimed.operation, messages.defect_from_pb([])
        blocks = blocks._replace(step_count=operation.blocks.step_count, body=claimed.blocked_steps)
        problem = f"its journal cannot be read: {error}"
        make_event = messages.blocked_event
        defects.count_defect(
            tx, operation, claimed.lease, claimed.stack, problem, blocks, make_event, claimed.operation.update_time
        )
        return claimed, error
