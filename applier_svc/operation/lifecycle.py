"""One operation, begun from a request or resumed from its journal: lease, plan, run, record."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from applier_svc.execution.secrets import Secrets
from applier_svc.execution.timeouts import Timeouts
from applier_svc.failpoints import reach
from applier_svc.operation.completion import Place, Work, complete
from applier_svc.operation.events import Begun, Feed
from applier_svc.operation.journal import Journal
from applier_svc.operation.lease import Lease, take
from applier_svc.operation.preconditions import stale_now
from applier_svc.operation.requests import NewRequest, PlanRequest, beginning
from services.core.errors import (
    DigestMismatch,
    EncodingInvalid,
    Internal,
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
from services.engine.staleness import problem_of, refuse_lost_kinds
from services.rpc.call import loop_time, request_id, until
from services.rpc.client import Peer, Platforms
from services.rpc.convert.operations import step_record_from_pb
from services.rpc.convert.plans import work_from_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import JoinedPlan, joined
from services.rpc.readiness import refuse_deletes, refuse_missing_values
from services.rpc.resources import platform_traits, read_record

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
        header: Its header.
        new_plan: The plan as it is to be stored; None: it is stored already.
        plan: The plan as values of the engine.
        place: Its driver and store.
    """

    header: plan_pb2.Plan
    new_plan: journal_pb2.NewPlan | None
    plan: Plan
    place: Place


_VIEW = (plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD, plan_pb2.PLAN_VIEW_CONTENT)
"""The parts of a plan that an apply needs or stores."""


class Operation:
    """
    One run of one plan.

    Attributes:
        name: Its name, the same in all its events.
    """

    def __init__(self, name: str, holder: str, peers: Peers, feed: Feed, plan_until: float = math.inf) -> None:
        """*plan_until*: The deadline of the caller, by ``loop_time``, which counts until there is a plan."""
        self.name = name
        self._plan_until = plan_until
        self._holder = holder
        self._peers = peers
        self._feed = feed
        self._cancelled = False

    def cancel(self) -> None:
        """Roll back once the batches in flight have ended."""
        self._cancelled = True

    async def begin(self, asked: NewRequest | PlanRequest) -> None:
        """
        Run the operation that a caller requests; from the accepted event on, its progress is published as events.

        Raises:
            AlreadyBegunError: The same request began an operation before.
            PkgerError: Before the accepted event, nothing was written: there is no plan, it is not the approved one, or
                the stack is leased. After it, the operation was interrupted; the next holder of its lease resumes it.
        """
        lease, begun = await take(self._peers.stack, beginning(asked, self.name, self._holder), self._peers.timeouts)
        try:
            reach("after_begin")
            await self._feed.publish(Begun(self.name))
            prepared = await self._prepared(asked, begun, lease)
            if prepared is None:
                await _end_unstarted(lease, "the package breaks rules")
                return
            place = prepared.place
            journal = Journal(lease, self._feed, Progress(prepared.plan), place.traits)
            try:
                await journal.start(prepared.header, prepared.new_plan)
            except _UNUSABLE as error:
                await _end_unstarted(lease, error)
                raise
            operation = operation_pb2.Operation()
            operation.CopyFrom(begun.operation)
            # Free the messages of a large plan before the run.
            del prepared, begun
            try:
                await complete(Work(operation, lease, journal, asked.secrets), place, self._is_cancelled)
            except BaseException:
                await _release(lease)
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
        # No driver has answered yet, and neither plan nor journal has values of secrets.
        secrets, progress = Secrets(), None
        try:
            reach("after_claim")
            if not claimed.HasField("plan"):
                await _end_unstarted(lease, "its applier was gone before it sent anything")
                return
            plan = work_from_pb(claimed.plan, journal_pb2.PlanBody.FromString(claimed.body))
            rollback_cause = (claimed.operation.cause or "it was rolling back") if claimed.rollback else ""
            progress = recovered(plan, list(map(step_record_from_pb, claimed.steps)), claimed.sealed, rollback_cause)
            secrets = Secrets(are_lost=writes_secrets(progress))
            taken_over = loop_time()
            place = await self._place_again(plan)
            journal = Journal(lease, self._feed, progress, place.traits)
            work = Work(claimed.operation, lease, journal, secrets, taken_over)
            await complete(work, place, self._is_cancelled, decisions)
        except Exception as error:
            if isinstance(error, PkgerError):
                await _release(lease)
                raise
            log.exception("operation not resumed", extra={"operation": self.name})
            steps = steps_of_defect(progress) if progress else ()
            problem = f"{type(error).__name__}: {secrets.masked(str(error))}"
            if finished := await lease.report_defect(problem, steps):
                await self._feed.publish(finished)
            else:
                raise Internal(request_id.get()) from error
        except BaseException:
            await _release(lease)
            raise
        finally:
            await lease.drop()

    async def _prepared(
        self, asked: NewRequest | PlanRequest, begun: journal_pb2.BeginOperationResponse, lease: Lease
    ) -> _Prepared | None:
        """The plan to run; None if the package breaks rules. Without a plan, the operation is ended."""
        try:
            # Nothing is written yet, so the deadline of the caller counts; its error names the unavailable service.
            with until(self._plan_until):
                if isinstance(asked, NewRequest):
                    return await self._planned(asked, lease)
                return await self._stored(asked, begun, lease)
        except BaseException as error:
            await _end_unstarted(lease, error, asked.plan if isinstance(asked, PlanRequest) else "")
            raise

    async def _planned(self, asked: NewRequest, lease: Lease) -> _Prepared | None:
        """Make the plan; None if the package breaks rules: then the violations are published."""
        request = planner_pb2.CreatePlanRequest(validate_only=True, will_run=True, target=asked.target, view=_VIEW)
        request.MergeFrom(asked.desired)
        if not lease.is_transient:
            request.stack.id = lease.stack.id
        stub = PlannerServiceStub(self._peers.planner.channel)
        answers = self._peers.planner.stream(stub.CreatePlan, request)
        made = await joined(answers)
        if not isinstance(made, JoinedPlan):
            for violations in cut(object_pb2.Violations(violations=made)):
                await self._feed.publish(violations)
            return None
        header = made.header
        if asked.digest and asked.digest != header.digest:
            raise PlanStale(asked.digest, f"the plan made now is {header.digest}")
        if not asked.allow_missing:
            refuse_missing_values(made.remarks, header.rollback_of)
        refuse_deletes(header, asked.max_deletes)
        # An operation and the plan that it makes share one id.
        header.name = self.name.replace("operations/", "plans/")
        plan = work_from_pb(header, made.body)
        place = await self._place(plan)
        new_plan = journal_pb2.NewPlan(header=header, body=made.body.SerializeToString(), content=made.content)
        return _Prepared(header, new_plan, plan, place)

    async def _stored(self, asked: PlanRequest, begun: journal_pb2.BeginOperationResponse, lease: Lease) -> _Prepared:
        """
        The stored plan, if it can still be applied.

        Raises:
            DigestMismatch: It is not the plan that the caller approved.
            RequestInvalid: It writes other secrets than the request has.
            StackMoved: The stack is at another generation.
            PlanStale: A resource that it touches has changed, or another stack owns it.
            ValuesMissing: It lacks values, and the request does not allow that.
            DeletesExceeded: It deletes more than the request, or the policy of the stack, allows.
        """
        header = begun.plan
        if asked.digest and asked.digest != header.digest:
            raise DigestMismatch(header.name, asked.digest, header.digest)
        stack = lease.stack
        if stack.generation != header.base_generation:
            raise StackMoved(stack.name or stack.id, header.base_generation, stack.generation)
        body = journal_pb2.PlanBody.FromString(begun.body)
        plan = work_from_pb(header, body)
        asked.secrets.refuse_others(plan)
        place = await self._place(plan)
        if not lease.is_transient:
            stack = await read_record(place.store, stack.target, object_pb2.StackRef(id=stack.id))
        if parts := await stale_now(plan, stack, place.traits, place.driver, place.store):
            raise PlanStale(header.name, problem_of(parts))
        if not asked.allow_missing:
            refuse_missing_values(body.remarks, header.rollback_of)
        refuse_deletes(header, asked.max_deletes)
        return _Prepared(header, None, plan, place)

    async def _place(self, plan: Plan) -> Place:
        """
        The driver and store of *plan*.

        Raises:
            KindUnsupported: The platform no longer supports a kind that the plan needs.
        """
        driver = self._peers.platforms.driver(plan.target.platform)
        traits = await platform_traits(driver)
        refuse_lost_kinds(plan, traits)
        return Place(driver, traits, self._peers.stack, self._peers.timeouts)

    async def _place_again(self, plan: Plan) -> Place:
        """As ``_place``, for a resumed operation: a failure is logged, as it may have no caller to report it to."""
        try:
            return await self._place(plan)
        except PkgerError as error:
            log.warning("operation not resumed", extra={"operation": self.name, "problem": str(error)})
            raise

    def _is_cancelled(self) -> bool:
        return self._cancelled


async def _release(lease: Lease) -> None:
    """Shorten the lease of an interrupted operation, so that it can be resumed soon."""
    await lease.drop()
    await lease.expire_soon()


async def _end_unstarted(lease: Lease, why: BaseException | str, plan: str = "") -> None:
    """
    End an operation that did not start; if the store does not answer, it ends when the lease expires.

    Args:
        lease: Its lease.
        why: Why it did not start.
        plan: Name of the stored plan that it was to run; empty: none. Some errors mark the plan as stale.
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
            # The text of a defect may quote secrets.
            cause = "a defect of the applier; see its log"
    try:
        await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, stale, cause=cause)
    except PkgerError:
        log.warning("lease not released", extra={"operation": lease.operation})
