"""The lease of a stack for one operation: taken, kept, given back."""

import asyncio
import contextlib
from typing import Any, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import journal_pb2, stack_pb2
from pkger.stack.v1.journal_pb2_grpc import JournalServiceStub
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from applier_svc.patience import Patience
from services.core.errors import LeaseLost, PkgerError, ServiceUnavailable, StackMoved
from services.core.model import StackRecord, Target
from services.rpc.client import Peer
from services.rpc.convert.objects import stack_from_pb

Response = TypeVar("Response")

SHORTEST_CALL = 1.0
"""What a last call to the store is given, in seconds, however little is left of the lease."""


class Lease:
    """
    The right to change one stack, as one operation has it.

    Attributes:
        stack: The stack as it was when the lease was taken.
    """

    def __init__(self, peer: Peer, stack: StackRecord, token: int, taken: float, patience: Patience) -> None:
        """*taken* is when the lease was asked for, by the clock of *patience*."""
        self.stack = stack
        self._peer = peer
        self._stub = JournalServiceStub(peer.channel)
        self._token = token
        self._patience = patience
        self._expires = taken + patience.lease
        self._lost: LeaseLost | None = None
        self._renewing = asyncio.create_task(self._renew_for_ever())

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        """
        See to it that the lease lasts another *seconds* and a margin.

        Raises:
            LeaseLost: It is over, or cannot be renewed in time; it stays lost.
        """
        needed = seconds + self._patience.margin
        if self._lost is None and self._left() < needed:
            await self._renew()
            if self._left() < needed:
                self._lost = self._lost or LeaseLost(self.stack.name or self.stack.id, self._token)
        if self._lost:
            raise self._lost
        return driver_pb2.Fence(scope=self.stack.id, token=self._token)

    async def finish(self, outcome: journal_pb2.Record | journal_pb2.Remove, leaving: float = 0.0) -> str:
        """
        Record the outcome and give the lease back.

        A store that does not answer is asked again, which it takes for the same write, while more than *leaving*
        seconds are left of the lease.

        Returns:
            Id of the stack; empty when it went away.

        Raises:
            ServiceUnavailable: Nobody knows whether it was recorded.
            PkgerError: Nothing was recorded.
        """
        request = self._finish_request()
        if isinstance(outcome, journal_pb2.Record):
            request.record.CopyFrom(outcome)
        else:
            request.remove.CopyFrom(outcome)

        async def attempt() -> journal_pb2.FinishOperationResponse:
            seconds = max(self._left() - leaving, SHORTEST_CALL)
            return await self._call(self._stub.FinishOperation, request, seconds)

        def is_over(state: RetryCallState) -> bool:
            return self._left() - state.upcoming_sleep <= leaving

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ServiceUnavailable),
            wait=self._patience.between_attempts(),
            stop=is_over,
            reraise=True,
        )
        try:
            answer: journal_pb2.FinishOperationResponse = await retrying(attempt)
        except LeaseLost as error:
            self._lost = error
            raise
        return answer.stack.id

    async def abandon(self) -> str:
        """
        Give the lease back with nothing recorded; one that cannot be given back runs out by itself.

        Returns:
            Id of the stack; empty when it went away, as one does that the operation made.

        Raises:
            StackMoved: An outcome that ``finish`` did not know the fate of is recorded after all.
        """
        request = self._finish_request()
        request.abandon.SetInParent()
        try:
            answer = await self._call(self._stub.FinishOperation, request, self._patience.lease / 3)
        except PkgerError:
            return self.stack.id
        if answer.stack.generation != self.stack.generation:
            raise StackMoved(self.stack.name or self.stack.id, self.stack.generation, answer.stack.generation)
        return answer.stack.id

    async def drop(self) -> None:
        """Stop renewing; what was not given back runs out by itself."""
        self._renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._renewing

    def _left(self) -> float:
        return self._expires - self._patience.clock()

    def _finish_request(self) -> journal_pb2.FinishOperationRequest:
        return journal_pb2.FinishOperationRequest(
            stack_id=self.stack.id, token=self._token, base_generation=self.stack.generation
        )

    async def _renew(self) -> None:
        """Renew if the store answers; when it says that the lease is over, note it."""
        asked = self._patience.clock()
        request = journal_pb2.RenewLeaseRequest(stack_id=self.stack.id, token=self._token, ttl=_ttl(self._patience))
        try:
            await self._call(self._stub.RenewLease, request, self._patience.lease / 3)
        except LeaseLost as error:
            self._lost = error
        except PkgerError:
            # Not renewed this time: the lease has two more thirds of its time, or ends.
            return
        else:
            self._expires = asked + self._patience.lease

    async def _renew_for_ever(self) -> None:
        while self._lost is None:
            await asyncio.sleep(self._patience.lease / 3)
            await self._renew()

    async def _call(
        self, method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response]", request: Any, seconds: float
    ) -> Response:
        try:
            return await self._peer.call(method, request, seconds)
        except grpc.aio.AioRpcError as error:
            # Something between the services answered in place of the store.
            raise ServiceUnavailable(self._peer.name, self._peer.address, str(error.details())) from error


class NoLease:
    """
    Stands where a lease does in an operation on behalf of no stack: nothing to hold, nothing to record.

    Attributes:
        stack: An empty record with the target of the operation.
    """

    def __init__(self, target: Target) -> None:
        self.stack = StackRecord("", target, "", 0)

    async def hold(self, seconds: float) -> None:
        """Nobody competes for a stack that is not there."""

    async def finish(self, outcome: journal_pb2.Record | journal_pb2.Remove, leaving: float = 0.0) -> str:
        """Record nothing."""
        return ""

    async def abandon(self) -> str:
        """Give nothing back."""
        return ""


async def take(
    peer: Peer,
    ref: planner_pb2.StackRef,
    target: object_pb2.Target,
    operation: str,
    kind: operation_pb2.OperationKind.ValueType,
    holder: str,
    patience: Patience,
) -> Lease:
    """
    Take the lease of the stack that *ref* names; an apply makes a stack that it names by a new name.

    Raises:
        StackNotFound: There is no such stack.
        StackLeased: Another operation has it.
    """
    request = journal_pb2.BeginOperationRequest(operation=operation, kind=kind, holder=holder, ttl=_ttl(patience))
    if ref.WhichOneof("stack") == "id":
        request.id = ref.id
    else:
        request.named.CopyFrom(stack_pb2.NamedStack(target=target, name=ref.name))
        request.create_missing = kind == operation_pb2.OPERATION_KIND_APPLY
    asked = patience.clock()
    answer = await peer.call(JournalServiceStub(peer.channel).BeginOperation, request)
    return Lease(peer, stack_from_pb(answer.stack), answer.token, asked, patience)


def _ttl(patience: Patience) -> Duration:
    ttl = Duration()
    ttl.FromMilliseconds(int(patience.lease * 1000))
    return ttl
