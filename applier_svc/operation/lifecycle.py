"""One operation from its request, or from its journal, to its record: lease, plan, run, record."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import journal_pb2

from applier_svc.execution.secrets import Secrets
from applier_svc.execution.timeouts import Timeouts
from applier_svc.failpoints import reach
from applier_svc.operation.completion import Place, Work, complete
from applier_svc.operation.events import Feed
from applier_svc.operation.journal import Journal
from applier_svc.operation.lease import Lease, take
from applier_svc.operation.preconditions import stale_now
from applier_svc.operation.requests import NewRequest, PlanRequest, beginning
from services.core.errors import (
    DigestMismatch,
    EncodingInvalid,
    PkgerError,
    PlanExpired,
    PlanNotFound,
    PlanStale,
    PlanUsed,
    SourceTooLarge,
    SourceUndecodable,
    SourceUnreadable,
    StackMoved,
)
from services.core.model import Plan
from services.engine.decisions import StepDecision
from services.engine.late_writes import writes_secrets
from services.engine.progress import Progress, recovered
from services.engine.staleness import problem_of
from services.rpc.call import until
from services.rpc.client import Peer, Platforms
from services.rpc.convert.operations import step_record_from_pb
from services.rpc.convert.plans import work_from_pb
from services.rpc.readiness import refuse_missing_values
from services.rpc.resources import platform_traits

log = logging.getLogger("pkger.applier")

_OF_SOURCES = (EncodingInvalid, SourceTooLarge, SourceUndecodable, SourceUnreadable)
"""What may quote the text or the address of a package, where credentials may stand."""

_STALE = (StackMoved, PlanStale)
"""What makes a stored plan one that can never be applied."""

_UNUSABLE = (PlanUsed, PlanStale, PlanExpired, PlanNotFound)
"""Why a store does not let an operation start with a plan that could be applied when it began."""


@dataclass(frozen=True, slots=True)
class Peers:
    """What an operation calls, and how long it waits for it."""

    planner: Peer
    stack: Peer
    platforms: Platforms
    timeouts: Timeouts


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plan that fits, as a message and as what is worked with, and where it is carried out."""

    message: plan_pb2.Plan
    plan: Plan
    place: Place


class Operation:
    """
    One run of one plan.

    Attributes:
        name: Its name, the same in all its events.
    """

    def __init__(self, name: str, holder: str, peers: Peers, feed: Feed, plan_until: float = math.inf) -> None:
        """*plan_until*: when its caller stops waiting for the plan, on the monotonic clock."""
        self.name = name
        self._plan_until = plan_until
        self._holder = holder
        self._peers = peers
        self._feed = feed
        self._cancelled = False

    def cancel(self) -> None:
        """Turn back as soon as the batches in flight have ended."""
        self._cancelled = True

    async def begin(self, asked: NewRequest | PlanRequest) -> None:
        """
        Do what a caller asks for; from the accepted event on, everything that happens is an event.

        Raises:
            AlreadyBegunError: The same request began an operation before.
            PkgerError: Before the accepted event, nothing was written: there is no plan, it is another one than agreed
                to, or the stack is taken. After it, the operation was cut off; whoever gets its lease carries it on.
        """
        lease, begun = await take(self._peers.stack, beginning(asked, self.name, self._holder), self._peers.timeouts)
        try:
            reach("after_begin")
            prepared = await self._prepared(asked, begun.plan, lease)
            if prepared is None:
                await _give_up(lease, "the package breaks rules")
                return
            journal = Journal(lease, self._feed, Progress(prepared.plan))
            place = prepared.place
            try:
                await journal.start(prepared.message, is_stored=isinstance(asked, PlanRequest))
            except _UNUSABLE as error:
                await _give_up(lease, error)
                raise
            # The event has a copy of its own; that of a large plan is worth giving up before the work begins.
            del prepared
            await complete(Work(begun.operation, lease, journal, asked.secrets), place, self._is_cancelled)
        finally:
            await lease.drop()

    async def resume(
        self, lease: Lease, claimed: journal_pb2.ClaimOperationResponse, decisions: Sequence[StepDecision] = ()
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
            turned_back = (claimed.operation.cause or "it had turned back") if claimed.turned_back else ""
            progress = recovered(plan, list(map(step_record_from_pb, claimed.steps)), claimed.sealed, turned_back)
            secrets = Secrets(are_gone=writes_secrets(progress))
            taken_over = self._peers.timeouts.clock()
            journal = Journal(lease, self._feed, progress)
            place = await self._place(plan.target.platform)
            work = Work(claimed.operation, lease, journal, secrets, taken_over)
            await complete(work, place, self._is_cancelled, decisions)
        finally:
            await lease.drop()

    async def _prepared(self, asked: NewRequest | PlanRequest, stored: bytes, lease: Lease) -> _Prepared | None:
        """The plan to run; None when the package breaks rules. The operation is over when there is none."""
        try:
            # Nothing is written yet, so the deadline of the caller holds: its error names the service that is away.
            with until(self._plan_until):
                if isinstance(asked, NewRequest):
                    return await self._planned(asked, lease)
                return await self._agreed(asked, stored, lease)
        except BaseException as error:
            await _give_up(lease, error, asked.plan if isinstance(asked, PlanRequest) else "")
            raise

    async def _planned(self, asked: NewRequest, lease: Lease) -> _Prepared | None:
        """The plan made now; None when the package breaks rules, which the feed then says."""
        request = planner_pb2.CreatePlanRequest(validate_only=True, target=asked.target)
        request.MergeFrom(asked.desired)
        if not lease.is_transient:
            request.stack.id = lease.stack.id
        stub = PlannerServiceStub(self._peers.planner.channel)
        answer = await self._peers.planner.call(stub.CreatePlan, request)
        if answer.HasField("invalid_package"):
            await self._feed.publish(answer.invalid_package)
            return None
        if asked.plan_digest and asked.plan_digest != answer.plan.digest:
            raise PlanStale(asked.plan_digest, f"the plan made now is {answer.plan.digest}")
        if not asked.allow_missing:
            refuse_missing_values(answer.plan)
        # An operation and the plan that it made for itself are found by one word.
        answer.plan.name = self.name.replace("operations/", "plans/")
        place = await self._place(answer.plan.target.platform)
        return _Prepared(answer.plan, work_from_pb(answer.plan), place)

    async def _agreed(self, asked: PlanRequest, stored: bytes, lease: Lease) -> _Prepared:
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
        if asked.digest and asked.digest != message.digest:
            raise DigestMismatch(message.name, asked.digest, message.digest)
        stack = lease.stack
        if stack.generation != message.base_generation:
            raise StackMoved(stack.name or stack.id, message.base_generation, stack.generation)
        plan = work_from_pb(message)
        asked.secrets.refuse_others(plan)
        place = await self._place(plan.target.platform)
        if parts := await stale_now(plan, stack, place.traits, place.driver, place.store):
            raise PlanStale(message.name, problem_of(parts))
        if not asked.allow_missing:
            refuse_missing_values(message)
        return _Prepared(message, plan, place)

    async def _place(self, platform: str) -> Place:
        driver = self._peers.platforms.driver(platform)
        return Place(driver, await platform_traits(driver), self._peers.stack, self._peers.timeouts)

    def _is_cancelled(self) -> bool:
        return self._cancelled


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
    match why:
        case error if isinstance(error, _OF_SOURCES):
            cause = "the package cannot be read"
        case PkgerError() | str():
            cause = str(why)
        case _:
            # It may quote anything.
            cause = "a defect of the applier; its log says more"
    try:
        await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, stale, cause=cause)
    except PkgerError:
        log.warning("lease not given back", extra={"operation": lease.operation})
