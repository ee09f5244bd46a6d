"""One operation from its request, or from its journal, to its record: lease, plan, run, record."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import journal_pb2, stack_pb2

from applier_svc.deciding import blocked_steps, records_of
from applier_svc.effects import Effects
from applier_svc.failpoints import reach
from applier_svc.feed import Feed
from applier_svc.freshness import stale_now
from applier_svc.ids import Ids
from applier_svc.inventory import after_success, after_undo
from applier_svc.journal import Journal
from applier_svc.late_effects import kinds_touched, late_effects
from applier_svc.lease import Lease, take
from applier_svc.outcomes import Direction, Done, outcome_to_pb
from applier_svc.patience import Patience
from applier_svc.progress import Progress, progress_of
from applier_svc.resolver import UNREADABLE, Resolver
from applier_svc.run import Result, Run
from applier_svc.secrets import Secrets
from applier_svc.staleness import problem_of
from services.core.errors import (
    DigestMismatch,
    PkgerError,
    PlanExpired,
    PlanNotFound,
    PlanStale,
    PlanUsed,
    ResourceOwned,
    StackMoved,
)
from services.core.model import InventoryEntry, Key, Plan, PlatformTraits, StackRecord, by_key
from services.kinds.summary_ids import with_ids
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import entry_fields, target_from_pb, target_to_pb
from services.rpc.convert.plans import work_from_pb
from services.rpc.readiness import refuse_missing_values
from services.rpc.resources import platform_traits

log = logging.getLogger("pkger.applier")

_REFUSALS = (ResourceOwned, StackMoved)
"""Why a store that answers does not take a record."""

_STALE = (StackMoved, PlanStale)
"""What makes a stored plan one that can never be applied."""

_UNUSABLE = (PlanUsed, PlanStale, PlanExpired, PlanNotFound)
"""Why a store does not let an operation start with a plan that could be applied when it began."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request by its id and the digest of its content; without an id it may begin any number of operations."""

    id: str = ""
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """
    What a caller asks for, to be planned and run.

    Attributes:
        kind: Apply or uninstall.
        target: Where, as the caller says; a stack given by id brings its own target.
        stack: The stack to keep; None: nothing is recorded.
        desired: The request for the planner, without target and stack.
        plan_digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of secrets to write.
    """

    kind: operation_pb2.OperationKind.ValueType
    target: object_pb2.Target
    stack: planner_pb2.StackRef | None
    desired: planner_pb2.CreatePlanRequest
    plan_digest: str
    allow_missing: bool = False
    request: Request = Request()
    secrets: Secrets = field(default_factory=Secrets)


@dataclass(frozen=True, slots=True)
class Agreed:
    """
    A stored plan that a caller wants to be run.

    Attributes:
        plan: Its name.
        digest: Digest of the plan that the caller agreed to; empty: any.
        allow_missing: Whether to go on although values are missing.
        request: The request.
        secrets: Values of the secrets that the plan writes.
    """

    plan: str
    digest: str
    allow_missing: bool = False
    request: Request = Request()
    secrets: Secrets = field(default_factory=Secrets)


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

    def __init__(self, name: str, holder: str, peers: Peers, feed: Feed) -> None:
        self.name = name
        self._holder = holder
        self._peers = peers
        self._feed = feed
        self._cancelled = False

    def cancel(self) -> None:
        """Turn back as soon as the batches in flight have ended."""
        self._cancelled = True

    async def begin(self, wish: Wish | Agreed) -> None:
        """
        Do what a caller asks for; from the accepted event on, everything that happens is an event.

        Raises:
            AlreadyBegunError: The same request began an operation before.
            PkgerError: Before the accepted event, nothing was written: there is no plan, it is another one than agreed
                to, or the stack is taken. After it, the operation was cut off; whoever gets its lease carries it on.
        """
        lease, begun = await take(self._peers.stack, self._beginning(wish), self._peers.patience)
        try:
            reach("after_begin")
            journal = Journal(lease, self._feed, Progress())
            try:
                if isinstance(wish, Wish):
                    message = await self._plan(wish, lease)
                else:
                    message = await self._agreed_plan(wish, begun.plan, lease)
                traits = await self._platform(message.target.platform) if message else None
            except BaseException as error:
                await _give_up(lease, error, wish.plan if isinstance(wish, Agreed) else "")
                raise
            if message is None or traits is None:
                await _give_up(lease, "the package breaks rules")
                return
            plan = work_from_pb(message)
            try:
                await journal.start(message, is_stored=isinstance(wish, Agreed))
            except _UNUSABLE as error:
                await _give_up(lease, error)
                raise
            # The event has a copy of its own; that of a large plan is worth giving up before the work begins.
            del message
            await self._carry_out(plan, traits, Ids(plan), lease, journal, begun.operation, wish.secrets)
        finally:
            await lease.drop()

    async def resume(
        self,
        lease: Lease,
        claimed: journal_pb2.ClaimOperationResponse,
        decisions: Sequence[applier_pb2.StepDecision] = (),
    ) -> None:
        """
        Carry on what another applier began, from its journal; *decisions* fit the steps that block it.

        Raises:
            PkgerError: It was cut off again.
        """
        try:
            reach("after_claim")
            if not claimed.plan:
                await _give_up(lease, "its applier was gone before it sent anything")
                return
            plan = work_from_pb(plan_pb2.Plan.FromString(claimed.plan))
            ids = Ids(plan)
            journal = Journal(lease, self._feed, progress_of(claimed, plan, ids))
            traits = await self._platform(plan.target.platform)
            secrets = Secrets(are_gone=any(step.is_secret for step in plan.steps))
            taken_over = self._peers.patience.clock()
            await self._carry_out(plan, traits, ids, lease, journal, claimed.operation, secrets, taken_over, decisions)
        finally:
            await lease.drop()

    def _beginning(self, wish: Wish | Agreed) -> journal_pb2.BeginOperationRequest:
        request = journal_pb2.BeginOperationRequest(
            operation=self.name,
            holder=self._holder,
            request_id=wish.request.id,
            request_digest=wish.request.digest,
        )
        if isinstance(wish, Agreed):
            request.plan = wish.plan
            return request
        request.kind = wish.kind
        if wish.stack is None:
            request.none.CopyFrom(target_to_pb(target_from_pb(wish.target)))
        elif wish.stack.WhichOneof("stack") == "id":
            request.id = wish.stack.id
        else:
            # An apply makes a stack that it names by a new name.
            request.named.CopyFrom(stack_pb2.NamedStack(target=wish.target, name=wish.stack.name))
            request.create_missing = wish.kind == operation_pb2.OPERATION_KIND_APPLY
        return request

    async def _plan(self, wish: Wish, lease: Lease) -> plan_pb2.Plan | None:
        """The plan to run; None when the package breaks rules, which the feed then says."""
        request = planner_pb2.CreatePlanRequest(validate_only=True, target=wish.target)
        request.MergeFrom(wish.desired)
        if not lease.is_transient:
            request.stack.id = lease.stack.id
        stub = PlannerServiceStub(self._peers.planner.channel)
        answer = await self._peers.planner.call(stub.CreatePlan, request)
        if answer.HasField("invalid_package"):
            await self._feed.publish(answer.invalid_package)
            return None
        if wish.plan_digest and wish.plan_digest != answer.plan.digest:
            raise PlanStale(wish.plan_digest, f"the plan made now is {answer.plan.digest}")
        if not wish.allow_missing:
            refuse_missing_values(answer.plan)
        # An operation and the plan that it made for itself are found by one word.
        answer.plan.name = self.name.replace("operations/", "plans/")
        return answer.plan

    async def _agreed_plan(self, agreed: Agreed, stored: bytes, lease: Lease) -> plan_pb2.Plan:
        """
        The stored plan, if it still fits.

        Raises:
            DigestMismatch: It is not the one that the caller agreed to.
            RequestInvalid: It writes other secrets than were given.
            StackMoved: The stack is at another generation.
            PlanStale: What it touches has changed, or belongs to another stack.
            ValuesMissing: Somebody has to allow what is missing, or plan again with it.
        """
        message = plan_pb2.Plan.FromString(stored)
        if agreed.digest and agreed.digest != message.digest:
            raise DigestMismatch(message.name, agreed.digest, message.digest)
        stack = lease.stack
        if stack.generation != message.base_generation:
            raise StackMoved(stack.name or stack.id, message.base_generation, stack.generation)
        plan = work_from_pb(message)
        agreed.secrets.refuse_others(plan)
        driver = self._peers.platforms.driver(plan.target.platform)
        if parts := await stale_now(plan, stack, driver, self._peers.stack):
            raise PlanStale(message.name, problem_of(parts))
        if not agreed.allow_missing:
            refuse_missing_values(message)
        return message

    async def _platform(self, name: str) -> PlatformTraits:
        return await platform_traits(self._peers.platforms.driver(name))

    async def _carry_out(
        self,
        plan: Plan,
        traits: PlatformTraits,
        ids: Ids,
        lease: Lease,
        journal: Journal,
        operation: operation_pb2.Operation,
        secrets: Secrets,
        taken_over: float | None = None,
        decisions: Sequence[applier_pb2.StepDecision] = (),
    ) -> None:
        driver = self._peers.platforms.driver(plan.target.platform)
        patience = self._peers.patience
        resolver = Resolver(driver, self._peers.stack, traits, plan.target, patience, secrets.masked)
        effects = Effects(
            driver, traits, plan.target.org, self.name, ids, journal, lease, patience, resolver, secrets, taken_over
        )
        run = Run(plan, effects, journal, lambda: self._cancelled or lease.cancel_requested)
        try:
            if decisions:
                await _decide(run, decisions, operation.blocked_steps, plan, ids, journal.progress)
            result = await run.run()
        except BaseException:
            # Whatever cut it off: the sooner somebody can carry it on, the better.
            await lease.drop()
            await lease.let_go()
            raise
        ending = _Ending(plan, ids, lease.stack, lease.is_transient, lease.is_pending, operation.kind)
        if result.state == operation_pb2.OPERATION_STATE_SUCCEEDED:
            entries = after_success(plan, lease.stack, ids, result.leftovers, journal.progress.kept)
            if effects.may_be_late:
                await self._tell_late_effects(plan, entries, ids, journal, resolver, traits, secrets)
            try:
                await journal.finish(ending.outcome(entries), ending.told(entries, result))
            except _REFUSALS as error:
                result = await run.take_back(f"the outcome could not be recorded: {error}")
            else:
                return
        entries = after_undo(plan, lease.stack, ids, journal.progress)
        if result.state == operation_pb2.OPERATION_STATE_BLOCKED:
            # The record stays as it is until somebody has looked: the journal says what is different.
            blocked = blocked_steps(plan, journal.progress)
            await journal.finish(None, ending.told(lease.stack.resources, result), blocked)
            return
        if effects.may_be_late:
            await self._tell_late_effects(plan, entries, ids, journal, resolver, traits, secrets)
        await journal.finish(ending.record(entries), ending.told(entries, result))

    async def _tell_late_effects(
        self,
        plan: Plan,
        entries: Sequence[InventoryEntry],
        ids: Ids,
        journal: Journal,
        resolver: Resolver,
        traits: PlatformTraits,
        secrets: Secrets,
    ) -> None:
        """Wait once more, and tell what took effect meanwhile: it may not have been waited for (engine.md 5)."""
        await asyncio.sleep(self._peers.patience.settle)
        late = operation_pb2.LateEffects()
        try:
            live, owned = await resolver.live_and_owned(kinds_touched(plan))
            held = await resolver.secret_keys() if any(step.is_secret for step in plan.steps) else frozenset[str]()
        except UNREADABLE as error:
            late.problem = f"nobody could look what took effect late: {secrets.masked(str(error))}"
        else:
            owned |= {(entry.key.kind, entry.remote_id) for entry in entries}
            late.effects.extend(late_effects(plan, journal.progress, ids, live, owned, traits, held))
        if late.effects or late.problem:
            await journal.tell(late)


@dataclass(frozen=True, slots=True)
class _Ending:
    """What is recorded and told at the end of an operation."""

    plan: Plan
    ids: Ids
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


async def _decide(
    run: Run,
    decisions: Sequence[applier_pb2.StepDecision],
    blocked: Sequence[operation_pb2.BlockedStep],
    plan: Plan,
    ids: Ids,
    progress: Progress,
) -> None:
    known = [progress.done.get(step.number) for step in plan.steps]
    targets = [
        outcome.remote_id if isinstance(outcome, Done) else ids.of_resource(step)
        for step, outcome in zip(plan.steps, known, strict=True)
    ]
    # An operation is blocked in the direction in which it went.
    is_undo = blocked[0].direction == operation_pb2.DIRECTION_UNDO
    direction = Direction.UNDO if is_undo else Direction.DO
    await run.decide(records_of(decisions, blocked, targets), direction, ids)


async def _give_up(lease: Lease, why: BaseException | str, plan: str = "") -> None:
    """
    End an operation that did not start; a store that does not answer learns of it when the lease runs out.

    Args:
        lease: Its lease.
        why: What kept it from starting.
        plan: Name of the stored plan that it was to run; empty: none. An error that says so makes it stale.
    """
    stale = None
    if plan and isinstance(why, _STALE):
        stale = journal_pb2.StalePlan(plan=plan, problem=why.metadata.get("problem", str(why)))
    # What other errors say is for the log: it may quote anything.
    cause = str(why) if isinstance(why, PkgerError | str) else "a defect of the applier; its log says more"
    try:
        await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, stale, cause=cause)
    except PkgerError:
        log.warning("lease not given back", extra={"operation": lease.operation})


def _summary(plan: Plan, ids: Mapping[Key, str]) -> str:
    """The summary with all ids; the plan knew them all when nothing was to be done."""
    return with_ids(plan.summary, ids) if plan.steps else plan.summary
