"""One operation from its request to its record: lease, plan, run, record."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import journal_pb2, stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from applier_svc.effects import Effects
from applier_svc.feed import Feed
from applier_svc.ids import Ids
from applier_svc.inventory import after_success, after_undo, same
from applier_svc.journal import MemoryJournal
from applier_svc.lease import Lease, NoLease, take
from applier_svc.outcomes import outcome_to_pb
from applier_svc.run import Result, Run
from services.core.errors import LeaseLost, PkgerError, PlanStale, ServiceUnavailable, StackNotFound
from services.core.model import InventoryEntry, Plan, StackRecord, Target
from services.kinds.summary_ids import with_ids
from services.rpc.client import Peer, Platforms
from services.rpc.convert import entry_to_pb, plan_from_pb, stack_from_pb, target_to_pb

log = logging.getLogger("pkger.applier")


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What a caller asks for.

    Attributes:
        kind: Apply or uninstall.
        target: Where; for a stack given by id, the stack's own target counts.
        stack: The stack to keep; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        plan_digest: Digest of the plan that the caller agreed to; empty: any.
    """

    kind: operation_pb2.OperationKind.ValueType
    target: Target
    stack: planner_pb2.StackRef | None
    desired: planner_pb2.CreatePlanRequest
    plan_digest: str


@dataclass(frozen=True, slots=True)
class Peers:
    """What an operation calls."""

    planner: Peer
    stack: Peer
    platforms: Platforms


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
        if self._wish.stack is None:
            await self._under(NoLease(StackRecord("", self._wish.target, "", 0)))
            return
        lease = await take(
            self._peers.stack, self._wish.stack, self._wish.target, self.name, self._wish.kind, self._holder
        )
        try:
            await self._under(lease)
        finally:
            await lease.drop()

    async def _under(self, lease: Lease | NoLease) -> None:
        try:
            plan_message = await self._plan(lease.stack)
        except BaseException:
            await lease.abandon()
            raise
        if plan_message is None:
            await lease.abandon()
            return
        await self._feed.tell(operation_pb2.Accepted(plan=plan_message))
        plan = plan_from_pb(plan_message)
        ids, journal = Ids(plan), MemoryJournal()
        driver = self._peers.platforms.driver(plan.target.platform)
        effects = Effects(driver, plan.target.org, self.name, ids, journal, lease)
        run = Run(plan, effects, journal, self._feed.tell, lambda: self._cancelled)
        result = await run.run()
        if result.state == operation_pb2.OPERATION_STATE_SUCCEEDED:
            entries = after_success(plan, lease.stack, ids, result.leftovers)
            try:
                await self._record_success(lease, plan, entries)
            except PkgerError as error:
                result = await run.take_back(f"the outcome could not be recorded: {error}")
        if result.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
            entries = after_undo(plan, lease.stack, ids, journal.created_and_left(plan))
            result = await self._record_failure(lease, plan, entries, result)
        await self._feed.tell(self._finished(plan, lease.stack, entries, ids, result))

    async def _plan(self, stack: StackRecord) -> plan_pb2.Plan | None:
        """The plan to run; None when the package breaks rules, which the feed then says."""
        request = planner_pb2.CreatePlanRequest(validate_only=True)
        request.MergeFrom(self._wish.desired)
        if stack.id:
            request.stack.id = stack.id
        else:
            request.target.CopyFrom(target_to_pb(stack.target))
        stub = PlannerServiceStub(self._peers.planner.channel)
        answer = await self._peers.planner.call(stub.CreatePlan, request)
        if answer.HasField("invalid_package"):
            await self._feed.refuse(answer.invalid_package)
            return None
        if self._wish.plan_digest and self._wish.plan_digest != answer.plan.digest:
            raise PlanStale(self._wish.plan_digest, answer.plan.digest)
        return answer.plan

    async def _record_success(self, lease: Lease | NoLease, plan: Plan, entries: Sequence[InventoryEntry]) -> None:
        """
        Record what the stack owns now.

        Raises:
            PkgerError: It is certainly not recorded.
        """
        outcome: journal_pb2.Record | journal_pb2.Remove = _record(entries, plan)
        if self._wish.kind == operation_pb2.OPERATION_KIND_UNINSTALL and not entries:
            outcome = journal_pb2.Remove()
        try:
            await lease.finish(outcome)
        except (ServiceUnavailable, LeaseLost) as error:
            # An answer that got lost looks like that too; then the record has the outcome.
            if not await self._is_recorded(lease.stack, entries):
                raise
            log.warning("recorded, though the answer was lost", extra={"operation": self.name, "error": str(error)})

    async def _record_failure(
        self, lease: Lease | NoLease, plan: Plan, entries: Sequence[InventoryEntry], result: Result
    ) -> Result:
        """Record where things are after an undo; when that fails too, the operation is blocked."""
        try:
            if same(entries, lease.stack):
                await lease.abandon()
            else:
                await lease.finish(_record(entries, plan))
        except PkgerError as error:
            cause = f"{result.cause}; and what is left could not be recorded: {error}"
            return Result(operation_pb2.OPERATION_STATE_BLOCKED, cause, result.leftovers)
        return result

    async def _is_recorded(self, stack: StackRecord, entries: Sequence[InventoryEntry]) -> bool:
        stub = StackServiceStub(self._peers.stack.channel)
        try:
            answer = await self._peers.stack.call(stub.GetStack, stack_pb2.GetStackRequest(id=stack.id))
        except StackNotFound:
            return not entries
        except PkgerError:
            return False
        return same(entries, stack_from_pb(answer.stack))

    def _finished(
        self, plan: Plan, stack: StackRecord, entries: Sequence[InventoryEntry], ids: Ids, result: Result
    ) -> operation_pb2.Finished:
        succeeded = result.state == operation_pb2.OPERATION_STATE_SUCCEEDED
        known = {entry.key: entry.remote_id for entry in entries}
        return operation_pb2.Finished(
            state=result.state,
            cause=result.cause,
            summary_json=with_ids(plan.summary, known) if succeeded else "",
            inventory=map(entry_to_pb, entries),
            leftovers=[outcome_to_pb(number, outcome) for number, outcome in result.leftovers.items()],
            no_change=succeeded and plan.no_change,
            stack_id=stack.id if entries else "",
        )


def _record(entries: Sequence[InventoryEntry], plan: Plan) -> journal_pb2.Record:
    return journal_pb2.Record(
        resources=map(entry_to_pb, entries), sources=plan.sources, platform_changed=bool(plan.steps)
    )
