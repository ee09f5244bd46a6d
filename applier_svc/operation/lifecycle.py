"""One operation, begun from a request or resumed from its journal: lease, plan, run, record."""

import logging
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from pkger.journal.v1 import journal_pb2, planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

from applier_svc.execution.secrets import Secrets
from applier_svc.execution.timeouts import Timeouts
from applier_svc.failpoints import reach
from applier_svc.operation.completion import OperationRun, PlatformContext, complete
from applier_svc.operation.events import Feed
from applier_svc.operation.interruption import Defect, leave, release
from applier_svc.operation.journal import Journal
from applier_svc.operation.lease import Lease, Taken, take
from applier_svc.operation.plans import OperationPlan, read_plan
from applier_svc.operation.preconditions import stale_now
from applier_svc.operation.requests import OperationRequest
from services.core.errors import (
    DigestMismatch,
    EncodingInvalid,
    PkgerError,
    PlanExpired,
    PlanNotFound,
    PlanStale,
    PlanTooLarge,
    PlanUsed,
    ResourceOwned,
    SourceTooLarge,
    SourceUndecodable,
    SourceUnreadable,
    StackMoved,
)
from services.core.model import Plan
from services.engine.decisions import StepDecision, steps_of_defect
from services.engine.late_writes import writes_secrets
from services.engine.progress import Progress, recovered
from services.engine.stale_plan import problem_of, refuse_lost_kinds
from services.rpc.call import loop_time, until
from services.rpc.client import Peer, Platforms
from services.rpc.convert.objects import stack_from_pb
from services.rpc.convert.operations import step_record_from_pb
from services.rpc.convert.plans import work_from_pb
from services.rpc.missing_values import refuse_deletes, refuse_missing_values
from services.rpc.parts import cut
from services.rpc.plan_parts import JoinedPlan, joined
from services.rpc.resources import platform_traits
from services.rpc.stack_records import read_stack

log = logging.getLogger("pkger.applier")

_OF_SOURCES = (EncodingInvalid, SourceTooLarge, SourceUndecodable, SourceUnreadable)
"""Errors that may quote the text or the URL of a package, which may have credentials."""

_STALE = (StackMoved, PlanStale)
"""Errors after which a stored plan can never be applied."""

_UNUSABLE = (PlanUsed, PlanStale, PlanExpired, PlanNotFound, PlanTooLarge, ResourceOwned)
"""Errors with which the store refuses to start an operation, though its plan was valid when it began."""


@dataclass(frozen=True, slots=True)
class Peers:
    """The services that an operation calls, and its timeouts."""

    planner: Peer
    stack: Peer
    platforms: Platforms
    timeouts: Timeouts


@dataclass(frozen=True, slots=True)
class _Prepared:
    """
    A plan that can be applied.

    Attributes:
        stored: The plan as messages.
        plan: The plan as values of the engine.
        place: Its driver and store.
    """

    stored: OperationPlan
    plan: Plan
    place: PlatformContext


class Operation:
    """
    One run of one plan.

    Attributes:
        id: Its id, the same in all its events.
    """

    def __init__(self, operation_id: str, holder: str, peers: Peers, feed: Feed, plan_until: float = math.inf) -> None:
        """*plan_until*: The deadline of the caller, by ``loop_time``, which counts until there is a plan."""
        self.id = operation_id
        self._plan_until = plan_until
        self._holder = holder
        self._peers = peers
        self._feed = feed
        self._cancelled = False

    def cancel(self) -> None:
        """Roll back once the batches in flight have ended."""
        self._cancelled = True

    async def begin(self, request: OperationRequest) -> None:
        """
        Run the operation that a caller requests; from the accepted event on, its progress is published as events.

        Raises:
            AlreadyBegunError: The same request began an operation before.
            PkgerError: Before the accepted event, nothing was written: there is no plan, it is not the approved one, or
                the stack is leased. After it, the operation was interrupted; the next holder of its lease resumes it.
        """
        begin_request = request.begin_request(self.id, self._holder)
        taken = await take(self._peers.stack, begin_request, self._peers.timeouts)
        lease = taken.lease
        try:
            reach("after_begin")
            await self._feed.announce(operation_pb2.Begun())
            prepared = await self._prepared(request, taken)
            if prepared is None:
                await _end_unstarted(lease, "the package breaks rules")
                return
            place = prepared.place
            journal = Journal(lease, self._feed, Progress(prepared.plan), place.traits, prepared.stored)
            try:
                await complete(
                    OperationRun(taken.operation, lease, journal, request.secrets), place, self._is_cancelled
                )
            except BaseException as error:
                if isinstance(error, _UNUSABLE) and not journal.has_started:
                    await _end_unstarted(lease, error)
                else:
                    await release(lease)
                raise
        finally:
            await lease.drop()

    async def resume(
        self, lease: Lease, claimed: journal_pb2.ClaimOperationResponse, decisions: Sequence[StepDecision] = ()
    ) -> None:
        """
        Resume the operation from its journal; *decisions* fit the steps that block it.

        A defect that ends the attempt is reported to the store, which blocks the operation after several defects.

        Raises:
            PkgerError: It was interrupted again.
        """
        # There is no secret to mask yet: no driver has answered, and neither plan nor journal has values of secrets.
        secrets, progress = Secrets(), None
        try:
            reach("after_claim")
            if claimed.operation.state == operation_pb2.OPERATION_STATE_PREPARING:
                await _end_unstarted(lease, "its applier was gone before it sent anything")
                return
            stored = await read_plan(self._peers.stack, claimed.operation.plan_id)
            plan = work_from_pb(stored.header, stored.body)
            rollback_cause = (claimed.operation.cause or "it was rolling back") if claimed.rollback else ""
            progress = recovered(plan, list(map(step_record_from_pb, claimed.steps)), claimed.sealed, rollback_cause)
            secrets = Secrets(are_lost=writes_secrets(progress))
            taken_over = loop_time()
            place = await self._place_again(plan)
            journal = Journal(lease, self._feed, progress, place.traits)
            work = OperationRun(claimed.operation, lease, journal, secrets, taken_over)
            await complete(work, place, self._is_cancelled, decisions)
        except BaseException as error:
            steps = steps_of_defect(progress) if progress else ()
            defect = Defect(f"{type(error).__name__}: {secrets.masked(str(error))}", steps)
            await leave(lease, self._feed, error, defect)
        finally:
            await lease.drop()

    async def _prepared(self, request: OperationRequest, taken: Taken) -> _Prepared | None:
        """The plan to run; None if the package breaks rules. Without a plan, the operation is ended."""
        try:
            # Nothing is written yet, so the deadline of the caller counts; its error names the unavailable service.
            with until(self._plan_until):
                return await self._checked(request, taken)
        except BaseException as error:
            await _end_unstarted(taken.lease, error, request.stored_plan)
            raise

    async def _checked(self, request: OperationRequest, taken: Taken) -> _Prepared | None:
        """
        The plan to run, made now or stored before; None if the package breaks rules: then the violations are published.

        Raises:
            DigestMismatch: The stored plan is not the one that the caller approved.
            RequestInvalid: The stored plan writes other secrets than the request has.
            StackMoved: The stack is at another generation than the stored plan.
            PlanStale: The plan made now is not the one that the caller approved. Or a resource that the stored plan
                touches has changed, or another stack owns it.
            ValuesMissing: The plan lacks values, and the request does not allow that.
            DeletesExceeded: It deletes more than the request, or the policy of the stack, allows.
        """
        stored = taken.plan
        if stored is None and not isinstance(request.plan, str):
            stored = await self._planned(request.plan, taken)
        if stored is None:
            return None
        header = stored.header
        expected = request.options.expected_plan_digest
        if expected and expected != header.digest:
            if taken.plan:
                raise DigestMismatch(header.id, expected, header.digest)
            problem = f"the package, the stack or the platform; the plan made now is {header.digest}"
            raise PlanStale(expected, problem)
        if stored.is_stored and not taken.plan:
            stored = await read_plan(self._peers.stack, header.id)
        plan = work_from_pb(header, stored.body)
        place = await self._place(plan)
        # A plan that was made under the lease is not stale.
        if taken.plan:
            request.secrets.refuse_others(plan)
            await self._refuse_stale(header, plan, place, taken)
        refuse_missing_values(header, stored.body.remarks, request.options)
        refuse_deletes(header, request.options)
        return _Prepared(stored, plan, place)

    async def _planned(self, desired: planner_pb2.CreatePlanRequest, taken: Taken) -> OperationPlan | None:
        """Have the plan made: header and remarks; None if the package breaks rules."""
        request = planning_pb2.PlanOperationRequest(operation_id=self.id, request=desired)
        if taken.lease.is_transient:
            request.stack.target.CopyFrom(taken.stack.target)
        else:
            request.stack.CopyFrom(taken.stack)
            request.request.stack.CopyFrom(object_pb2.StackRef(id=taken.stack.id))
        stub = PlanningServiceStub(self._peers.planner.channel)
        baselines_digest = ""

        async def answers() -> AsyncIterator[planner_pb2.CreatePlanResponse]:
            nonlocal baselines_digest
            async for message in self._peers.planner.stream(stub.PlanOperation, request):
                baselines_digest = message.baselines_digest or baselines_digest
                yield message.answer

        plan = await joined(answers())
        if isinstance(plan, JoinedPlan):
            return OperationPlan(plan.header, plan.body, not plan.header.no_change, baselines_digest)
        await self._feed.announce(*cut(object_pb2.Violations(violations=plan)))
        return None

    async def _refuse_stale(self, header: plan_pb2.Plan, plan: Plan, place: PlatformContext, taken: Taken) -> None:
        """
        Refuse a stored plan that no longer fits.

        Raises:
            StackMoved: The stack is at another generation.
            PlanStale: A resource that it touches has changed, or another stack owns it.
        """
        stack = taken.lease.stack
        if stack.generation != header.base_generation:
            raise StackMoved(stack.name or stack.id, header.base_generation, stack.generation)
        if header.no_change:
            # It touches no resource.
            return
        if not taken.lease.is_transient:
            stack = stack_from_pb(*await read_stack(place.store, object_pb2.StackRef(id=stack.id), taken.stack))
        if parts := await stale_now(plan, stack, place.traits, place.driver, place.store):
            raise PlanStale(header.id, problem_of(parts))

    async def _place(self, plan: Plan) -> PlatformContext:
        """
        The driver and store of *plan*.

        Raises:
            KindUnsupported: The platform no longer supports a kind that the plan needs.
        """
        driver = self._peers.platforms.driver(plan.target.platform)
        traits = await platform_traits(driver)
        refuse_lost_kinds(plan, traits)
        return PlatformContext(driver, traits, self._peers.stack, self._peers.timeouts)

    async def _place_again(self, plan: Plan) -> PlatformContext:
        """As ``_place``, for a resumed operation: a failure is logged, as it may have no caller to report it to."""
        try:
            return await self._place(plan)
        except PkgerError as error:
            log.warning("operation not resumed", extra={"operation_id": self.id, "problem": str(error)})
            raise

    def _is_cancelled(self) -> bool:
        return self._cancelled


async def _end_unstarted(lease: Lease, why: BaseException | str, plan: str = "") -> None:
    """
    End an operation that did not start; if the store does not answer, it ends when the lease expires.

    Args:
        lease: Its lease.
        why: Why it did not start.
        plan: Id of the stored plan that it was to run; empty: none. Some errors mark the plan as stale.
    """
    stale = None
    if plan and isinstance(why, _STALE):
        stale = journal_pb2.StalePlan(plan_id=plan, problem=why.metadata.get("problem", str(why)))
    match why:
        case error if isinstance(error, _OF_SOURCES):
            cause = "the package cannot be read"
        case PkgerError() | str():
            cause = str(why)
        case _:
            # The text of a defect may quote secrets.
            cause = "a defect of the applier; see its log"
    try:
        await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, stale, cause=cause)
    except PkgerError:
        log.warning("lease not released", extra={"operation_id": lease.operation})
