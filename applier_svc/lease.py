"""The lease of a stack for one operation: taken, kept, given back."""

import asyncio
import contextlib
import time

from google.protobuf.duration_pb2 import Duration
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import journal_pb2, stack_pb2
from pkger.stack.v1.journal_pb2_grpc import JournalServiceStub
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from services.core.errors import LeaseLost, PkgerError, ServiceUnavailable
from services.core.model import StackRecord, Target
from services.rpc.client import Peer
from services.rpc.convert import stack_from_pb, target_to_pb

TTL_SECONDS = 30.0
"""How long a lease lasts without renewal; it is renewed every third of that (engine.md 6)."""

MARGIN_SECONDS = 2.0
"""How much longer than the request a lease has to last, for clocks that do not run alike."""


class Lease:
    """
    The right to change one stack, as one operation has it.

    Attributes:
        stack: The stack as it was when the lease was taken.
    """

    def __init__(self, peer: Peer, stack: StackRecord, token: int, taken: float) -> None:
        self.stack = stack
        self._peer = peer
        self._stub = JournalServiceStub(peer.channel)
        self._token = token
        self._expires = taken + TTL_SECONDS
        self._lost: LeaseLost | None = None
        self._renewing = asyncio.create_task(self._renew_for_ever())

    async def hold(self, seconds: float) -> driver_pb2.Fence:
        """
        See to it that the lease lasts another *seconds* and a margin.

        Raises:
            LeaseLost: It is over, or cannot be renewed in time.
        """
        if self._lost is None and self._expires - time.monotonic() < seconds + MARGIN_SECONDS:
            with contextlib.suppress(ServiceUnavailable):
                await self._renew()
        if self._lost or self._expires - time.monotonic() < seconds + MARGIN_SECONDS:
            raise self._lost or LeaseLost(self.stack.name or self.stack.id, self._token)
        return driver_pb2.Fence(scope=self.stack.id, token=self._token)

    async def finish(self, outcome: journal_pb2.Record | journal_pb2.Abandon | journal_pb2.Remove) -> None:
        """
        Record the outcome and give the lease back, trying again while the store does not answer.

        Raises:
            LeaseLost: The lease is over; nothing was recorded.
            StackMoved: The record is another one than the plan was made from; nothing was recorded.
            ServiceUnavailable: Nobody knows whether it was recorded.
        """
        request = journal_pb2.FinishOperationRequest(
            stack_id=self.stack.id, token=self._token, base_generation=self.stack.generation
        )
        match outcome:
            case journal_pb2.Record():
                request.record.CopyFrom(outcome)
            case journal_pb2.Remove():
                request.remove.CopyFrom(outcome)
            case _:
                request.abandon.CopyFrom(outcome)
        try:
            async for attempt in AsyncRetrying(
                retry=retry_if_exception_type(ServiceUnavailable),
                wait=wait_random_exponential(multiplier=0.2, max=4),
                stop=stop_after_delay(TTL_SECONDS / 2),
                reraise=True,
            ):
                with attempt:
                    await self._peer.call(self._stub.FinishOperation, request, seconds=TTL_SECONDS / 2)
        finally:
            await self.drop()

    async def abandon(self) -> None:
        """Give the lease back with nothing recorded; one that cannot be given back runs out by itself."""
        with contextlib.suppress(PkgerError):
            await self.finish(journal_pb2.Abandon())

    async def drop(self) -> None:
        """Stop renewing; what was not given back runs out by itself."""
        self._renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._renewing

    async def _renew(self) -> None:
        asked = time.monotonic()
        request = journal_pb2.RenewLeaseRequest(stack_id=self.stack.id, token=self._token, ttl=_ttl())
        try:
            await self._peer.call(self._stub.RenewLease, request, seconds=TTL_SECONDS / 3)
        except LeaseLost as error:
            self._lost = error
        else:
            self._expires = asked + TTL_SECONDS

    async def _renew_for_ever(self) -> None:
        while self._lost is None:
            await asyncio.sleep(TTL_SECONDS / 3)
            with contextlib.suppress(ServiceUnavailable):
                await self._renew()


class NoLease:
    """
    Stands where a lease does in an operation on behalf of no stack: nothing to hold, nothing to record.

    Attributes:
        stack: An empty record with the target of the operation.
    """

    def __init__(self, stack: StackRecord) -> None:
        self.stack = stack

    async def hold(self, seconds: float) -> None:
        """Nobody competes for a stack that is not there."""

    async def finish(self, outcome: journal_pb2.Record | journal_pb2.Abandon | journal_pb2.Remove) -> None:
        """Record nothing."""

    async def abandon(self) -> None:
        """Give nothing back."""


async def take(
    peer: Peer,
    ref: planner_pb2.StackRef,
    target: Target,
    operation: str,
    kind: operation_pb2.OperationKind.ValueType,
    holder: str,
) -> Lease:
    """
    Take the lease of the stack that *ref* names; an apply makes a stack that it names by a new name.

    Raises:
        StackNotFound: There is no such stack.
        StackLeased: Another operation has it.
    """
    request = journal_pb2.BeginOperationRequest(operation=operation, kind=kind, holder=holder, ttl=_ttl())
    if ref.WhichOneof("stack") == "id":
        request.id = ref.id
    else:
        request.named.CopyFrom(stack_pb2.NamedStack(target=target_to_pb(target), name=ref.name))
        request.create_missing = kind == operation_pb2.OPERATION_KIND_APPLY
    asked = time.monotonic()
    answer = await peer.call(JournalServiceStub(peer.channel).BeginOperation, request)
    return Lease(peer, stack_from_pb(answer.stack), answer.token, asked)


def _ttl() -> Duration:
    return Duration(seconds=int(TTL_SECONDS))
