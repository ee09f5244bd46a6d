"""StackService and JournalService on the wire: they translate and delegate, each call one transaction."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import sqlite_utils
from pkger.journal.v1 import journal_pb2, journal_pb2_grpc
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2, stack_pb2_grpc

from services.database import Database
from services.rpc.convert.objects import entry_fields, target_from_pb
from services.rpc.convert.operations import step_record_fields, step_record_from_pb
from services.rpc.server import Register
from stack_svc import endings, inventory, journal, messages, operations, pages, plan_views, plans, stacks, steps
from stack_svc.leases import Clock, machine_clock
from stack_svc.operations import Operation
from stack_svc.plans import StoredPlan
from stack_svc.stacks import Named

SERVICES = ("pkger.stack.v1.StackService", "pkger.journal.v1.JournalService")
"""Full names, for health and reflection."""


def registrations(database: Database, clock: Clock = machine_clock) -> list[Register]:
    """Both services over one database, for ``serving``; *clock* is read within the transactions."""
    return [
        partial(stack_pb2_grpc.add_StackServiceServicer_to_server, StackServicer(database, clock)),
        partial(journal_pb2_grpc.add_JournalServiceServicer_to_server, JournalServicer(database, clock)),
    ]


class StackServicer(stack_pb2_grpc.StackServiceServicer):
    """StackService: what people and planners ask of the store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def CreateStack(
        self, request: stack_pb2.CreateStackRequest, context: object
    ) -> stack_pb2.CreateStackResponse:
        """Make an empty stack."""
        named = Named(target_from_pb(request.target), request.name)
        stack = await self._database.write(
            lambda db: stacks.create(db, named, request.description, request.request_id, self._clock())
        )
        return stack_pb2.CreateStackResponse(stack=messages.stack_to_pb(stack))

    async def GetStack(self, request: stack_pb2.GetStackRequest, context: object) -> stack_pb2.GetStackResponse:
        """Read one stack."""
        choice = messages.choice_from_pb(request.target, request.stack)
        stack = await self._database.read(lambda db: stacks.header(db, choice))
        return stack_pb2.GetStackResponse(stack=messages.stack_to_pb(stack))

    async def ListResources(
        self, request: stack_pb2.ListResourcesRequest, context: object
    ) -> stack_pb2.ListResourcesResponse:
        """Read one page of what a stack owns."""
        choice = messages.choice_from_pb(request.target, request.stack)
        after = pages.place_of(request.page_token, stacks.FIRST_RESOURCE)
        size = pages.size_of(request.page_size, 1000, 5000)
        stack, found = await self._database.read(lambda db: stacks.resources(db, choice, after, size))
        record = stack.record
        page, token = pages.page_of(
            found,
            size,
            lambda entry: object_pb2.InventoryEntry(**entry_fields(entry)),
            lambda entry: (record.id, record.generation, *entry.key),
        )
        return stack_pb2.ListResourcesResponse(resources=page, next_page_token=token, generation=record.generation)

    async def ListStacks(self, request: stack_pb2.ListStacksRequest, context: object) -> stack_pb2.ListStacksResponse:
        """Read one page of stacks."""
        target = target_from_pb(request.target) if request.HasField("target") else None
        after, size = pages.place_of(request.page_token, stacks.START), pages.size_of(request.page_size, 100, 1000)
        found = await self._database.read(lambda db: stacks.page(db, target, after, size))
        page, token = pages.page_of(
            found, size, messages.stack_to_pb, lambda stack: (stack.record.name, stack.record.id)
        )
        return stack_pb2.ListStacksResponse(stacks=page, next_page_token=token)

    async def DeleteStack(
        self, request: stack_pb2.DeleteStackRequest, context: object
    ) -> stack_pb2.DeleteStackResponse:
        """Remove the record of a stack that owns nothing."""
        choice = messages.choice_from_pb(request.target, request.stack)
        await self._database.write(lambda db: stacks.delete(db, choice, self._clock()))
        return stack_pb2.DeleteStackResponse()

    async def FindOwners(self, request: stack_pb2.FindOwnersRequest, context: object) -> stack_pb2.FindOwnersResponse:
        """Tell which stacks own the given resources."""
        target = target_from_pb(request.target)
        resources = [(resource.kind, resource.id) for resource in request.resources]
        owners = await self._database.read(lambda db: inventory.owners(db, target, resources))
        return stack_pb2.FindOwnersResponse(owners=map(messages.ownership_to_pb, owners))

    async def GetPlan(
        self, request: stack_pb2.GetPlanRequest, context: object
    ) -> AsyncIterator[stack_pb2.GetPlanResponse]:
        """Read one plan, in parts."""
        wanted = messages.views_from_pb(request)
        plan, kept = await self._database.read(lambda db: self._kept(db, request.plan))
        parts = plan_views.plan_parts(messages.plan_to_pb(plan, kept.work.header), kept, wanted)
        # Each part is made in a thread: parsing a large plan would block all other calls.
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            yield stack_pb2.GetPlanResponse(part=part)

    async def ListPlans(self, request: stack_pb2.ListPlansRequest, context: object) -> stack_pb2.ListPlansResponse:
        """Read one page of plans."""
        target = target_from_pb(request.target) if request.HasField("target") else None
        after, size = pages.place_of(request.page_token, plans.START), pages.size_of(request.page_size, 50, 500)
        found = await self._database.read(
            lambda db: plans.page(db, target, request.stack_name, after, size, self._clock())
        )
        page, token = pages.page_of(
            found, size, lambda each: messages.plan_to_pb(*each), lambda each: (each[0].create_time, each[0].name)
        )
        return stack_pb2.ListPlansResponse(plans=page, next_page_token=token)

    def _kept(self, db: sqlite_utils.Database, name: str) -> tuple[StoredPlan, plan_views.Kept]:
        plan = plans.existing(db, name, self._clock())
        made = steps.in_effect(db, plan.operation) if plan.operation else {}
        return plan, plan_views.Kept(plans.work(db, name), plans.content(db, name), made)


class JournalServicer(journal_pb2_grpc.JournalServiceServicer):
    """JournalService: what planners and appliers write, and what is read of it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def StorePlan(self, request: journal_pb2.StorePlanRequest, context: object) -> journal_pb2.StorePlanResponse:
        """Keep a plan to be applied."""
        content = messages.plan_from_pb(request.plan)
        key = request.request
        plan = await self._database.write(lambda db: plans.store(db, content, key.id, key.digest, self._clock()))
        return journal_pb2.StorePlanResponse(
            plan=plan.name,
            create_time=messages.timestamp(plan.create_time),
            expire_time=messages.timestamp(plan.expires or 0),
        )

    async def FindPlan(self, request: journal_pb2.FindPlanRequest, context: object) -> journal_pb2.FindPlanResponse:
        """Tell which plan a request stored."""
        key = request.request
        name = await self._database.read(lambda db: plans.of_request(db, key.id, key.digest, self._clock()))
        return journal_pb2.FindPlanResponse(plan=name)

    async def BeginOperation(
        self, request: journal_pb2.BeginOperationRequest, context: object
    ) -> journal_pb2.BeginOperationResponse:
        """Take the lease of a stack for a new operation."""
        wanted = messages.beginning_from_pb(request)
        begun = await self._database.write(lambda db: journal.begin(db, wanted, self._clock()))
        if isinstance(begun, Operation):
            return journal_pb2.BeginOperationResponse(operation=messages.operation_to_pb(begun))
        return journal_pb2.BeginOperationResponse(
            stack=messages.stack_to_pb(begun.stack),
            resources=map(entry_fields, begun.stack.record.resources),
            token=begun.lease.token,
            expire_time=messages.timestamp(begun.lease.expires),
            is_pending=begun.stack.is_pending,
            operation=messages.operation_to_pb(begun.operation),
            **messages.work_fields(begun.plan),
        )

    async def StartOperation(
        self, request: journal_pb2.StartOperationRequest, context: object
    ) -> journal_pb2.StartOperationResponse:
        """Give an operation its plan."""
        accepted = messages.accepted_from_pb(request.accepted)
        source = messages.source_from_pb(request)
        await self._database.write(
            lambda db: journal.start(db, request.operation, request.token, source, accepted, self._clock())
        )
        return journal_pb2.StartOperationResponse()

    async def AdvanceOperation(
        self, request: journal_pb2.AdvanceOperationRequest, context: object
    ) -> journal_pb2.AdvanceOperationResponse:
        """Store intents, outcomes and events."""
        records = [step_record_from_pb(record) for record in request.steps]
        new_events = [messages.event_from_pb(event, "events") for event in request.events]
        cancel_requested = await self._database.write(
            lambda db: journal.advance(
                db,
                request.operation,
                request.token,
                records,
                new_events,
                request.seal,
                request.rollback,
                request.cause,
                self._clock(),
            )
        )
        return journal_pb2.AdvanceOperationResponse(cancel_requested=cancel_requested)

    async def RenewLease(
        self, request: journal_pb2.RenewLeaseRequest, context: object
    ) -> journal_pb2.RenewLeaseResponse:
        """Make the lease last its time again."""
        ttl = messages.microseconds(request.ttl)
        expires, cancel_requested = await self._database.write(
            lambda db: journal.renew(db, request.stack_id, request.token, ttl, self._clock())
        )
        return journal_pb2.RenewLeaseResponse(
            expire_time=messages.timestamp(expires), cancel_requested=cancel_requested
        )

    async def FinishOperation(
        self, request: journal_pb2.FinishOperationRequest, context: object
    ) -> journal_pb2.FinishOperationResponse:
        """Record what the operation left behind, end it and give the lease back."""
        ending = messages.ending_from_pb(request)
        generation = await self._database.write(
            lambda db: endings.finish(db, request.stack_id, request.token, ending, self._clock())
        )
        return journal_pb2.FinishOperationResponse(generation=generation)

    async def ListAbandonedOperations(
        self, request: journal_pb2.ListAbandonedOperationsRequest, context: object
    ) -> journal_pb2.ListAbandonedOperationsResponse:
        """Tell which operations anybody may claim."""
        names = await self._database.read(lambda db: operations.abandoned(db, self._clock()))
        return journal_pb2.ListAbandonedOperationsResponse(operations=names)

    async def ClaimOperation(
        self, request: journal_pb2.ClaimOperationRequest, context: object
    ) -> journal_pb2.ClaimOperationResponse:
        """Take over an unfinished operation."""
        ttl = messages.microseconds(request.ttl)
        claimed = await self._database.write(
            lambda db: journal.claim(db, request.operation, request.holder, ttl, self._clock())
        )
        operation = claimed.operation
        return journal_pb2.ClaimOperationResponse(
            stack=messages.stack_to_pb(claimed.stack),
            resources=map(entry_fields, claimed.stack.record.resources),
            token=claimed.lease.token,
            operation=messages.operation_to_pb(operation, claimed.blocked_steps),
            steps=map(step_record_fields, claimed.steps),
            sealed=operation.sealed,
            cancel_requested=operation.cancel_requested,
            last_seq=operation.last_seq,
            expire_time=messages.timestamp(claimed.lease.expires),
            is_pending=claimed.stack.is_pending,
            rollback=operation.rolling_back,
            **messages.work_fields(claimed.plan),
        )

    async def RequestCancel(
        self, request: journal_pb2.RequestCancelRequest, context: object
    ) -> journal_pb2.RequestCancelResponse:
        """Note that an operation is to turn back."""
        await self._database.write(lambda db: journal.request_cancel(db, request.operation))
        return journal_pb2.RequestCancelResponse()

    async def GetOperation(
        self, request: journal_pb2.GetOperationRequest, context: object
    ) -> journal_pb2.GetOperationResponse:
        """Read one operation."""
        name = request.operation
        operation, blocked_steps = await self._database.read(
            lambda db: (operations.existing(db, name), operations.blocked_steps(db, name))
        )
        return journal_pb2.GetOperationResponse(operation=messages.operation_to_pb(operation, blocked_steps))

    async def ListOperations(
        self, request: journal_pb2.ListOperationsRequest, context: object
    ) -> journal_pb2.ListOperationsResponse:
        """Read one page of operations."""
        after, size = pages.place_of(request.page_token, operations.START), pages.size_of(request.page_size, 50, 500)
        wanted = messages.filter_from_pb(request)
        found = await self._database.read(lambda db: operations.page(db, wanted, after, size))
        page, token = pages.page_of(
            found, size, messages.operation_to_pb, lambda operation: (operation.create_time, operation.name)
        )
        return journal_pb2.ListOperationsResponse(operations=page, next_page_token=token)

    async def ListEvents(
        self, request: journal_pb2.ListEventsRequest, context: object
    ) -> journal_pb2.ListEventsResponse:
        """Read events of an operation."""
        story = await self._database.read(
            lambda db: journal.told(db, request.operation, request.after_seq, pages.MOST_BYTES)
        )
        return journal_pb2.ListEventsResponse(
            events=messages.events_to_pb(story.bodies),
            has_more=story.has_more,
            state=messages.state_to_pb(story.state),
        )
