"""The lease of a stack for one operation: taken, renewed, released; all writes to the journal go through it."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import operation_pb2
from pkger.model.v1.object_pb2 import StackRef
from pkger.stack.v1 import stack_pb2
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from applier_svc.execution.retries import repeated
from applier_svc.execution.timeouts import Timeouts
from applier_svc.operation.plans import OperationPlan, joined_plan
from services.core.errors import LeaseLost, OperationNotFound, PkgerError, ServiceUnavailable
from services.core.model import InventoryEntry, StackRecord
from services.engine.claims import Refusal
from services.engine.conclusion import RemoveStack, WriteRecord
from services.engine.decisions import BlockedStep, reason_of
from services.rpc.call import loop_time
from services.rpc.claim_parts import joined_claim
from services.rpc.client import Peer
from services.rpc.convert.claims import refusal_from_pb
from services.rpc.convert.objects import key_fields, stack_from_pb
from services.rpc.convert.operations import blocked_reason_to_pb, blocked_step_to_pb, record_to_pb
from services.rpc.convert.plans import use_to_pb
from services.rpc.parts import parts
from services.rpc.stack_records import read_record

log = logging.getLogger("pkger.applier")

Response = TypeVar("Response")

SHORTEST_LEASE = 1
"""Seconds (journal.proto)."""

MOST_BLOCKED_BYTES = 4 * 1024 * 1024
"""Most bytes of blocked steps in the message that ends an operation (journal.proto)."""

SHORTEST_CALL = 1.0
"""Shortest timeout of a call to the store, in seconds, however soon the lease expires."""


class AlreadyBegunError(Exception):
    """The request began *operation* before; no new one was begun."""

    def __init__(self, operation: str) -> None:
        super().__init__(operation)
        self.operation = operation


class Lease:
    """
    The right of one operation to change one stack, and the connection to its journal.

    Attributes:
        stack: The header of the stack as it was when the lease was taken.
        operation: Id of the operation.
        is_transient: Whether the stack is removed with the operation, which runs on behalf of no stack.
        is_pending: Whether the stack is removed unless the operation succeeds.
        cancel_requested: Whether a client asked to cancel the operation.
        token: Its current fencing token; ``raise_token`` changes it.
        last_token: The token of the lease on the stack before it; 0: there was none.
        shown_token: The highest token with which an operation of the stack has ended after it was shown to the
            platform; 0: there was none.
        is_shown: Whether the platform has answered a request with its token.
        is_new: Whether the stack was made for the operation, under an id that no platform knows.
    """

    def __init__(
        self,
        peer: Peer,
        stack: StackRecord,
        operation: str,
        token: int,
        taken: float,
        timeouts: Timeouts,
        is_transient: bool = False,
        is_pending: bool = False,
        position: int = 0,
        last_token: int = 0,
        shown_token: int = 0,
        is_new: bool = False,
        store_time: int = 0,
    ) -> None:
        """
        *taken* is when the lease was requested, by ``loop_time``, and *store_time* when it was granted, by the clock of
        the store; *position* is the position of the last write.
        """
        self.stack = stack
        self.operation = operation
        self.is_transient = is_transient
        self.is_pending = is_pending
        self.cancel_requested = False
        self._peer = peer
        self._stub = JournalServiceStub(peer.channel)
        self.token = token
        self.last_token = last_token
        self.shown_token = shown_token
        self.is_shown = False
        self.is_new = is_new
        self._position = position
        self._timeouts = timeouts
        self._expires = taken + timeouts.lease
        self._granted = (loop_time(), store_time)
        self._lost: LeaseLost | OperationNotFound | None = None
        # Each lock is held during a call to the store with the token. There are two, so that no renewal waits for a
        # slow write.
        self._write_turn, self._renewal_turn = asyncio.Lock(), asyncio.Lock()
        self._renewing = asyncio.create_task(self._renew_for_ever())

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        """
        Make sure that the lease lasts another *seconds* and a margin.

        Raises:
            LeaseLost: It has expired, or cannot be renewed in time; it stays lost.
            OperationNotFound: The store lacks the operation since it was restored from a backup; the lease stays lost.
        """
        needed = seconds + self._timeouts.margin
        if self._lost is None and self._left() < needed:
            await self._renew()
            if self._left() < needed:
                self._lost = self._lost or LeaseLost(self.stack.name or self.stack.id, self.token)
        if self._lost:
            raise self._lost
        return driver_pb2.Fence(
            scope=self.stack.id, token=self.token, operation_id=self.operation, transient=self.is_transient
        )

    @property
    def store_time(self) -> int:
        """
        The time by the clock of the store, in microseconds since 1970. It does not follow when that clock is set
        forward or back while this lease lasts.
        """
        granted, store_time = self._granted
        return store_time + round((loop_time() - granted) * 1_000_000)

    def check(self) -> None:
        """
        Refuse to work on with a lease that is over, as far as is known here.

        Raises:
            LeaseLost: It has expired.
            OperationNotFound: As for ``hold``.
        """
        if self._lost is None and self._left() <= 0:
            self._lost = LeaseLost(self.stack.name or self.stack.id, self.token)
        if self._lost:
            raise self._lost

    async def confirm(self) -> None:
        """
        Ask the store whether the lease lasts.

        Raises:
            LeaseLost: It has expired.
            ServiceUnavailable: The store did not answer while the lease lasted.
        """
        request = journal_pb2.RenewLeaseRequest(operation_id=self.operation, ttl=_ttl(self._timeouts))
        await self._store(self._stub.RenewLease, request)

    async def raise_token(self) -> None:
        """
        Get a higher token: a platform that fences and was shown it refuses requests with the previous one.

        Raises:
            LeaseLost: It has expired.
            ServiceUnavailable: The store did not answer while the lease lasted. It counts as lost, as its token is
                unknown.
        """
        # A concurrent call with the previous token would be refused with LeaseLost.
        async with self._write_turn, self._renewal_turn:
            if self._lost:
                raise self._lost
            raised = self.token + 1

            async def attempt() -> None:
                await self._renew_once(self.token, raised)

            try:
                await self._repeated(attempt)
            except BaseException:
                self._lost = self._lost or LeaseLost(self.stack.name or self.stack.id, self.token)
                raise
            self.token = raised

    async def advance(
        self, writes: Sequence[journal_pb2.JournalWrite], start: journal_pb2.Start | None = None
    ) -> list[Refusal]:
        """
        Make *writes* of the journal together, with retries for as long as the lease lasts.

        Args:
            writes: The writes, which get their positions.
            start: The write that gives the operation its plan; None: it has started. From then on, another applier
                resumes the operation if this one dies.

        Returns:
            The claims that are refused because of another stack; if there are any, nothing was stored.

        Raises:
            LeaseLost: Nothing was stored.
            PlanUsed: Nothing was stored; also ``PlanStale``, ``PlanExpired``, ``PlanNotFound`` and ``ResourceOwned``.
            ServiceUnavailable: It is unknown whether they were stored.
        """
        return list(map(refusal_from_pb, (await self._advance(writes, start)).refused))

    async def reserve(self, write: journal_pb2.JournalWrite) -> action_set_pb2.Reservation | None:
        """
        Make a *write* that reserves stacks, with retries for as long as the lease lasts.

        Returns:
            Who has one of the stacks; then nothing was stored. None: they are reserved.

        Raises:
            LeaseLost: Nothing was stored.
            ServiceUnavailable: It is unknown whether it was stored.
        """
        answer = await self._advance([write])
        return answer.reserved_by if answer.HasField("reserved_by") else None

    async def _advance(
        self, writes: Sequence[journal_pb2.JournalWrite], start: journal_pb2.Start | None = None
    ) -> journal_pb2.AdvanceOperationResponse:
        position = self._numbered(writes, start)
        request = journal_pb2.AdvanceOperationRequest(operation_id=self.operation, start=start, writes=writes)
        answer = await self._store(self._stub.AdvanceOperation, request)
        self.cancel_requested = self.cancel_requested or answer.cancel_requested
        if not answer.refused and not answer.HasField("reserved_by"):
            self._position = position
        return answer

    def _numbered(self, writes: Sequence[journal_pb2.JournalWrite], start: journal_pb2.Start | None) -> int:
        """Give *writes* the positions after the last write; returns the last position."""
        last = self._position + (start is not None)
        for write in writes:
            last += 1
            write.position = last
        return last

    async def finish(
        self,
        change: WriteRecord | RemoveStack | None,
        state: operation_pb2.OperationState.ValueType,
        finished: operation_pb2.OperationEvent | None,
        stale_plan: journal_pb2.StalePlan | None = None,
        blocked: Sequence[BlockedStep] = (),
        cause: str = "",
        seen_token: int = 0,
        writes: Sequence[journal_pb2.JournalWrite] = (),
        start: journal_pb2.Start | None = None,
    ) -> journal_pb2.FinishOperationResponse:
        """
        Make the last writes, record the result, end the operation and release the lease.

        Args:
            change: The change of the record; None: it stays as it is.
            state: The state in which the operation ends.
            finished: Its last event; None for one that did not start.
            stale_plan: The stored plan, if it is stale and the operation did not start because of that; else None.
            blocked: The blocked steps, if the state is BLOCKED.
            cause: Why the operation did not start; empty for any other end.
            seen_token: The highest token that the platform has seen, if the store does not know it; else 0.
            writes: The writes that were not made yet, as for ``advance``.
            start: The start that was not made yet, as for ``advance``.

        Returns:
            The new generation of the stack; or the entries that have to stay in its record, or refused claims: then
            nothing was recorded.

        Raises:
            ServiceUnavailable: It is unknown whether it was recorded.
            PkgerError: Nothing was recorded.
        """
        request = journal_pb2.FinishOperationRequest(
            operation_id=self.operation,
            position=self._numbered(writes, start) + 1,
            base_generation=self.stack.generation,
            state=state,
            cause=cause,
            start=start,
            writes=writes,
            token_shown=self.is_shown,
        )
        if state == operation_pb2.OPERATION_STATE_BLOCKED:
            request.blocked_reason = blocked_reason_to_pb(reason_of(blocked))
            shown = parts(map(blocked_step_to_pb, blocked), operation_pb2.BlockedStep.ByteSize, MOST_BLOCKED_BYTES)
            request.blocked_steps.extend(next(shown, []))
        if seen_token:
            request.blocked_reason = operation_pb2.BLOCKED_REASON_STORE_RESTORED
            request.seen_token = seen_token
        if stale_plan:
            request.stale_plan.CopyFrom(stale_plan)
        if finished:
            request.finished.CopyFrom(finished)
        match change:
            case WriteRecord():
                request.record.CopyFrom(record_to_pb(change))
            case RemoveStack(staying=keys, staying_labels=labels):
                left = journal_pb2.Remove(staying=map(key_fields, keys), staying_labels=map(use_to_pb, labels))
                request.remove.CopyFrom(left)
            case None:
                request.abandon.SetInParent()
        return await self._store(self._stub.FinishOperation, request)

    async def recorded(self) -> Sequence[InventoryEntry]:
        """
        The inventory of the stack, with entries that other stacks handed over since the operation began.

        Empty for an operation on behalf of no stack.

        Raises:
            ServiceUnavailable: The store did not answer while the lease lasted.
        """
        if self.is_transient:
            return ()

        async def attempt() -> StackRecord:
            return await read_record(self._peer, StackRef(id=self.stack.id))

        return (await self._repeated(attempt)).resources

    async def knows(self, operation: str) -> bool:
        """
        Whether the store has *operation*.

        Raises:
            ServiceUnavailable: The store did not answer while the lease lasted.
        """
        request = journal_pb2.GetOperationRequest(operation_id=operation)

        async def attempt() -> bool:
            try:
                await self._peer.call(self._stub.GetOperation, request)
            except OperationNotFound:
                return False
            return True

        return await self._repeated(attempt)

    async def expire_soon(self) -> None:
        """Shorten the lease of an interrupted operation, so that an applier can resume it soon."""
        ttl = Duration(seconds=SHORTEST_LEASE)
        request = journal_pb2.RenewLeaseRequest(operation_id=self.operation, token=self.token, ttl=ttl)
        with contextlib.suppress(PkgerError):
            await self._call(self._stub.RenewLease, request, SHORTEST_CALL)

    async def report_defect(self, problem: str, steps: Sequence[BlockedStep]) -> operation_pb2.OperationEvent | None:
        """
        Release the lease after a defect ended an attempt to resume the operation.

        Args:
            problem: The text of the defect, without values of secrets.
            steps: The open and the blocked steps.

        Returns:
            The last event, if the operation is BLOCKED now; None: it is not, or the store does not answer.
        """
        await self.drop()
        request = journal_pb2.ReportDefectRequest(
            operation_id=self.operation,
            problem=problem,
            blocked_steps=map(blocked_step_to_pb, steps),
        )
        with contextlib.suppress(PkgerError):
            answer = await self._store(self._stub.ReportDefect, request)
            return answer.finished if answer.HasField("finished") else None
        return None

    async def drop(self) -> None:
        """Stop renewing; a lease that was not released expires by itself."""
        self._renewing.cancel()
        await asyncio.gather(self._renewing, return_exceptions=True)

    def _left(self) -> float:
        return self._expires - loop_time()

    async def _store(self, method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response]", request: Any) -> Response:
        """Call the store with the token, with retries until the lease expires."""

        async def attempt() -> Response:
            return await self._call(method, request, max(self._left(), SHORTEST_CALL))

        async with self._write_turn:
            request.token = self.token
            return await self._repeated(attempt)

    async def _repeated(self, attempt: Callable[[], Awaitable[Response]]) -> Response:
        """Retry *attempt* until the store answers or the lease expires."""

        def is_over(state: RetryCallState) -> bool:
            return self._left() - state.upcoming_sleep <= 0

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ServiceUnavailable),
            wait=self._timeouts.between_attempts,
            stop=is_over,
            reraise=True,
        )
        try:
            return await repeated(retrying, attempt)
        except (LeaseLost, OperationNotFound) as error:
            self._lost = error
            raise

    async def _renew(self) -> None:
        """Renew the lease if the store answers; mark it as lost if the store says so."""
        try:
            async with self._renewal_turn:
                await self._renew_once(self.token)
        except (LeaseLost, OperationNotFound) as error:
            self._lost = error
        except PkgerError:
            # The next attempt follows after a third of the lease.
            return

    async def _renew_once(self, token: int, raise_to: int = 0) -> None:
        begin = loop_time()
        request = journal_pb2.RenewLeaseRequest(
            operation_id=self.operation, token=token, ttl=_ttl(self._timeouts), raise_to=raise_to
        )
        answer = await self._call(self._stub.RenewLease, request, self._timeouts.lease / 3)
        self._expires = begin + self._timeouts.lease
        self.cancel_requested = self.cancel_requested or answer.cancel_requested

    async def _renew_for_ever(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._timeouts.lease / 3)
            try:
                await self._renew()
            except Exception:
                # The next attempt may succeed; otherwise the lease expires.
                log.exception("lease not renewed", extra={"operation_id": self.operation})

    async def _call(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response]", request: Any, seconds: float
    ) -> Response:
        return await self._peer.call(method, request, seconds)


@dataclass(frozen=True, slots=True)
class Taken:
    """
    A new operation.

    Attributes:
        lease: The lease of its stack.
        operation: The operation.
        stack: The header of the stack.
        plan: The stored plan that it is to run; None: it has none yet.
    """

    lease: Lease
    operation: operation_pb2.Operation
    stack: stack_pb2.Stack
    plan: OperationPlan | None


async def take(peer: Peer, request: journal_pb2.BeginOperationRequest, timeouts: Timeouts) -> Taken:
    """
    Take the lease of the stack of *request* for a new operation; *timeouts* says how long it lasts.

    An operation on behalf of no stack gets a transient stack, which is removed with it.

    Raises:
        AlreadyBegunError: The same request began an operation before.
        StackNotFound: There is no such stack.
        StackLeased: Another operation has the lease.
        OperationUnfinished: Another operation on the stack has to be recovered first.
        PlanNotFound: There is no such plan.
        PlanUsed: The plan was applied before; also ``PlanStale`` and ``PlanExpired``.
    """
    request.ttl.CopyFrom(_ttl(timeouts))
    begin = loop_time()
    answer, pieces = journal_pb2.BeginOperationResponse(), list[bytes]()
    async for part in peer.stream(JournalServiceStub(peer.channel).BeginOperation, request):
        pieces.append(part.plan_body)
        answer.MergeFrom(part)
    operation = answer.operation
    if operation.id != request.operation_id:
        raise AlreadyBegunError(operation.id)
    plan = joined_plan(answer.plan, pieces) if answer.HasField("plan") else None
    is_transient = not operation.stack_id
    lease = Lease(
        peer,
        stack_from_pb(answer.stack),
        operation.id,
        answer.token,
        begin,
        timeouts,
        is_transient,
        answer.is_pending,
        last_token=answer.last_token,
        shown_token=answer.shown_token,
        # The new stack of a stored plan has the id that it had before the store was restored from a backup.
        is_new=(is_transient or answer.is_pending) and not answer.last_token and plan is None,
        store_time=_store_time(answer.expire_time, timeouts),
    )
    return Taken(lease, operation, answer.stack, plan)


async def claim(
    peer: Peer, operation: str, holder: str, timeouts: Timeouts
) -> tuple[Lease, journal_pb2.ClaimOperationResponse]:
    """
    Claim an unfinished operation: take its lease and read its journal.

    Raises:
        OperationNotFound: It does not exist, or it is finished.
        StackLeased: Another applier runs it.
    """
    begin = loop_time()
    request = journal_pb2.ClaimOperationRequest(operation_id=operation, holder=holder, ttl=_ttl(timeouts))
    answer = await joined_claim(peer.stream(JournalServiceStub(peer.channel).ClaimOperation, request))
    is_transient = not answer.operation.stack_id
    lease = Lease(
        peer,
        stack_from_pb(answer.stack),
        operation,
        answer.token,
        begin,
        timeouts,
        is_transient,
        answer.is_pending,
        answer.position,
        answer.last_token,
        answer.shown_token,
        store_time=_store_time(answer.expire_time, timeouts),
    )
    lease.cancel_requested = answer.cancel_requested
    return lease, answer


def _store_time(expires: Timestamp, timeouts: Timeouts) -> int:
    """When a lease was granted that expires at *expires* without renewal."""
    return int(expires.ToMicroseconds()) - int(timeouts.lease * 1_000_000)


def _ttl(timeouts: Timeouts) -> Duration:
    ttl = Duration()
    ttl.FromMilliseconds(int(timeouts.lease * 1000))
    return ttl
