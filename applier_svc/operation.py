"""One operation from its request to its record: lease, plan, run, record."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import journal_pb2

from applier_svc.effects import Effects
from applier_svc.feed import Feed
from applier_svc.ids import Ids
from applier_svc.inventory import after_success, after_undo
from applier_svc.journal import MemoryJournal
from applier_svc.lease import Lease, NoLease, take
from applier_svc.outcomes import outcome_to_pb
from applier_svc.patience import Patience
from applier_svc.run import Result, Run
from services.core.errors import PkgerError, PlanStale
from services.core.model import InventoryEntry, Key, Plan, PlatformTraits, StackRecord, by_key
from services.kinds.summary_ids import with_ids
from services.rpc.client import Peer, Platforms
from services.rpc.convert.drivers import platform_from_pb
from services.rpc.convert.objects import entry_to_pb, target_from_pb
from services.rpc.convert.plans import work_from_pb

log = logging.getLogger("pkger.applier")


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What a caller asks for.

    Attributes:
        kind: Apply or uninstall.
        target: Where, as the caller says; a stack given by id brings its own target.
        stack: The stack to keep; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        plan_digest: Digest of the plan that the caller agreed to; empty: any.
    """

    kind: operation_pb2.OperationKind.ValueType
    target: object_pb2.Target
    stack: planner_pb2.StackRef | None
    desired: planner_pb2.CreatePlanRequest
    plan_digest: str


@dataclass(frozen=True, slots=True)
class Peers:
    """What an operation calls, and how long it waits for it."""

    planner: Peer
    stack: Peer
    platforms: Platforms
    patience: Patience


class Operation:
    """
    One run of one plan.

    Attributes:
        name: Its name, the same in all its events.
    """

    def __init__(self, name: str, holder: str, wish: Wish, peers: Peers, feed: Feed) -> None:
        self.name = name
        self._holder = holder
        self._wish = wish
        self._peers = peers
        self._feed = feed
        self._cancelled = False

    def cancel(self) -> None:
        """Turn back as soon as the batches in flight have ended."""
        self._cancelled = True

    async def run(self) -> None:
        """
        Do it; from the accepted event on, everything that happens is an event.

        Raises:
            PkgerError: Nothing was written: there is no plan, it is another one than agreed to, or the stack is taken.
        """
        wish, peers = self._wish, self._peers
        if wish.stack is None:
            await self._under(NoLease(target_from_pb(wish.target)))
            return
        lease = await take(peers.stack, wish.stack, wish.target, self.name, wish.kind, self._holder, peers.patience)
        try:
            await self._under(lease)
        finally:
            await lease.drop()

    async def _under(self, lease: Lease | NoLease) -> None:
        try:
            message = await self._plan(lease.stack)
            traits = await self._platform(message.target.platform) if message else None
        except BaseException:
            await lease.abandon()
            raise
        if message is None or traits is None:
            await lease.abandon()
            return
        plan = work_from_pb(message)
        await self._feed.tell(operation_pb2.Accepted(plan=message))
        # The event has a copy of its own; that of a large plan is worth giving up before the work begins.
        del message
        try:
            finished = await self._carry_out(plan, traits, lease)
        except Exception as error:
            # Whoever waits for the end is told of it, whatever defect led to it.
            log.exception("operation cut off", extra={"operation": self.name})
            state = operation_pb2.OPERATION_STATE_BLOCKED
            finished = operation_pb2.Finished(state=state, cause=f"a defect of the applier: {error!r}")
        await self._feed.tell(finished)

    async def _plan(self, stack: StackRecord) -> plan_pb2.Plan | None:
        """The plan to run; None when the package breaks rules, which the feed then says."""
        request = planner_pb2.CreatePlanRequest(validate_only=True, target=self._wish.target)
        request.MergeFrom(self._wish.desired)
        if stack.id:
            request.stack.id = stack.id
        stub = PlannerServiceStub(self._peers.planner.channel)
        answer = await self._peers.planner.call(stub.CreatePlan, request)
        if answer.HasField("invalid_package"):
            await self._feed.refuse(answer.invalid_package)
            return None
        if self._wish.plan_digest and self._wish.plan_digest != answer.plan.digest:
            raise PlanStale(self._wish.plan_digest, answer.plan.digest)
        return answer.plan

    async def _platform(self, name: str) -> PlatformTraits:
        driver = self._peers.platforms.driver(name)
        return platform_from_pb(
            await driver.call(DriverServiceStub(driver.channel).Describe, driver_pb2.DescribeRequest())
        )

    async def _carry_out(self, plan: Plan, traits: PlatformTraits, lease: Lease | NoLease) -> operation_pb2.Finished:
        ids, journal, patience = Ids(plan), MemoryJournal(), self._peers.patience
        driver = self._peers.platforms.driver(plan.target.platform)
        effects = Effects(driver, traits, plan.target.org, self.name, ids, journal, lease, patience)
        run = Run(plan, effects, journal, self._feed.tell, lambda: self._cancelled)
        result = await run.run()
        if result.state == operation_pb2.OPERATION_STATE_SUCCEEDED:
            entries = after_success(plan, lease.stack, ids, result.leftovers)
            try:
                stack_id = await lease.finish(self._outcome(plan, entries), leaving=patience.reserve)
                return self._finished(plan, entries, result, stack_id)
            except PkgerError as error:
                result = await run.take_back(f"the outcome could not be recorded: {error}")
        if run.sealed:
            entries = after_success(plan, lease.stack, ids, result.leftovers)
        else:
            entries = after_undo(plan, lease.stack, ids, journal)
        try:
            unchanged = by_key(entries) == by_key(lease.stack.resources)
            stack_id = await (lease.abandon() if unchanged else lease.finish(_record(plan, entries)))
        except PkgerError as error:
            stack_id = lease.stack.id
            cause = f"{result.cause}; and what is left could not be recorded: {error}"
            result = replace(result, state=operation_pb2.OPERATION_STATE_BLOCKED, cause=cause)
        return self._finished(plan, entries, result, stack_id)

    def _outcome(self, plan: Plan, entries: Sequence[InventoryEntry]) -> journal_pb2.Record | journal_pb2.Remove:
        if self._wish.kind == operation_pb2.OPERATION_KIND_UNINSTALL and not entries:
            return journal_pb2.Remove()
        return _record(plan, entries)

    def _finished(
        self, plan: Plan, entries: Sequence[InventoryEntry], result: Result, stack_id: str
    ) -> operation_pb2.Finished:
        succeeded = result.state == operation_pb2.OPERATION_STATE_SUCCEEDED
        # The end of a stack that owns nothing has no step, but the record goes away.
        is_apply = self._wish.kind == operation_pb2.OPERATION_KIND_APPLY
        known = {entry.key: entry.remote_id for entry in entries}
        return operation_pb2.Finished(
            state=result.state,
            cause=result.cause,
            summary_json=_summary(plan, known) if succeeded else "",
            inventory=map(entry_to_pb, entries),
            leftovers=[outcome_to_pb(number, outcome) for number, outcome in result.leftovers.items()],
            no_change=succeeded and is_apply and plan.no_change,
            stack_id=stack_id,
        )


def _summary(plan: Plan, ids: Mapping[Key, str]) -> str:
    """The summary with all ids; the plan knew them all when nothing was to be done."""
    return with_ids(plan.summary, ids) if plan.steps else plan.summary


def _record(plan: Plan, entries: Sequence[InventoryEntry]) -> journal_pb2.Record:
    return journal_pb2.Record(
        resources=map(entry_to_pb, entries), sources=plan.sources, platform_changed=bool(plan.steps)
    )
