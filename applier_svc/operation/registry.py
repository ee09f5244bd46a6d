"""Operations of this service: started, carried on, cancelled, watched, waited for."""

import asyncio
import contextvars
import logging
import math
from collections.abc import AsyncIterator, Coroutine, Sequence

import grpc
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import operation_pb2

from applier_svc.operation.events import Begun, Feed, Message
from applier_svc.operation.lease import AlreadyBegunError, claim
from applier_svc.operation.lifecycle import Operation, Peers
from applier_svc.operation.preconditions import refuse_unfit
from applier_svc.operation.requests import NewRequest, PlanRequest
from services.core.errors import (
    Internal,
    OperationNotFound,
    OperationUnfinished,
    PkgerError,
    ServiceUnavailable,
)
from services.engine.decisions import StepDecision, check_decisions
from services.engine.operation import OperationState
from services.machine import Clock, Ids, MachineIds, machine_clock
from services.rpc.call import deadline, loop_time, request_id
from services.rpc.client import Peer
from services.rpc.convert.operations import blocked_step_from_pb

log = logging.getLogger("pkger.applier")

_FINISHED = (
    operation_pb2.OPERATION_STATE_SUCCEEDED,
    operation_pb2.OPERATION_STATE_ROLLED_BACK,
    operation_pb2.OPERATION_STATE_FAILED,
)

_OVER = (*_FINISHED, operation_pb2.OPERATION_STATE_BLOCKED)
"""Nothing more happens by itself in such an operation, finished or not."""


class Registry:
    """The running operations. They belong to the service: a caller that goes away stops none of them."""

    def __init__(self, peers: Peers, holder: str, clock: Clock = machine_clock, ids: Ids = MachineIds()) -> None:
        """
        Args:
            peers: What operations call.
            holder: Name of this applier in the leases of its operations.
            clock: Dates events.
            ids: Draws names of operations.
        """
        self._peers = peers
        self._holder = holder
        self._clock = clock
        self._ids = ids
        self._store = peers.stack
        self._stub = JournalServiceStub(peers.stack.channel)
        self._running: dict[str, tuple[Operation, Feed, asyncio.Task[None]]] = {}
        self._draining = False

    async def answers(self, asked: NewRequest | PlanRequest) -> AsyncIterator[Message]:
        """
        Start an operation and follow it; the one that the same request began before, if it did.

        Raises:
            PkgerError: What the operation ended with.
        """
        while True:
            try:
                async for message in self.start(asked).follow():
                    yield message
            except AlreadyBegunError as earlier:
                operation = earlier.operation
            else:
                return
            has_started = False
            async for event in self.watch(operation, after_seq=0):
                if not has_started:
                    yield Begun(operation)
                has_started = True
                yield event
            # One that FAILED ended before it started, as if the request had never been made.
            if has_started or (await self.get(operation)).state != operation_pb2.OPERATION_STATE_FAILED:
                return

    def start(self, asked: NewRequest | PlanRequest) -> Feed:
        """
        Start an operation and return its feed; it ends with ``AlreadyBegunError`` when the request began another one.

        Raises:
            ServiceUnavailable: The service is about to end.
        """
        self._refuse_when_draining()
        name = f"operations/{self._ids.token(8)}"
        feed = Feed(name, self._clock)
        operation = Operation(name, self._holder, self._peers, feed, deadline.get())
        self._run(operation, feed, self._begin(operation, asked))
        return feed

    async def resume(self, name: str, decisions: Sequence[StepDecision] = (), by_request: bool = False) -> Feed:
        """
        Take over an unfinished operation and return the feed of what happens from now on.

        Args:
            name: Its name.
            decisions: What somebody decided for the steps that block it; the others are tried again.
            by_request: Whether somebody asked for just that, which is the consent to go on with a restored store.

        Raises:
            RequestInvalid: A decision does not fit; nothing has happened.
            OperationNotFound: There is none, or it is finished.
            StackLeased: Somebody is at work on it.
            OperationUnfinished: It waits for the consent.
            ServiceUnavailable: The store does not answer, or the service is about to end.
        """
        self._refuse_when_draining()
        if decisions:
            operation = await self.get(name)
            if operation.state in _FINISHED:
                raise OperationNotFound(name)
            await refuse_unfit(decisions, operation, self._peers.platforms, self._store)
        lease, claimed = await claim(self._store, name, self._holder, self._peers.timeouts)
        try:
            if not by_request:
                _refuse_without_consent(claimed.operation)
            # Somebody else may have carried it on meanwhile, and been blocked by something else.
            check_decisions(decisions, [blocked_step_from_pb(each) for each in claimed.operation.blocked_steps])
        except BaseException:
            await lease.drop()
            await lease.expire_soon()
            raise
        log.info("operation carried on", extra={"operation": name})
        feed = Feed(name, self._clock, claimed.last_seq)
        resumed = Operation(name, self._holder, self._peers, feed)
        self._run(resumed, feed, resumed.resume(lease, claimed, decisions))
        return feed

    async def recover(self, store: Peer) -> None:
        """
        Carry on what other appliers, or this one, left behind until now; one that cannot be is left to the next call.

        Args:
            store: A connection of its own: a store that is not there yet must not make other calls wait to connect.

        Raises:
            PkgerError: The store does not answer.
            AioRpcError: Something between the services answers in place of the store.
        """
        stub = JournalServiceStub(store.channel)
        answer = await store.call(stub.ListAbandonedOperations, journal_pb2.ListAbandonedOperationsRequest())
        for name in answer.operations:
            if name in self._running or self._draining:
                continue
            try:
                await self.resume(name)
            except ServiceUnavailable:
                raise
            except (PkgerError, grpc.aio.AioRpcError) as error:
                log.warning("operation not carried on", extra={"operation": name, "problem": str(error)})
            except Exception:
                # It must not keep those behind it from being carried on.
                log.exception("operation not carried on", extra={"operation": name})

    async def cancel(self, name: str) -> operation_pb2.CancelEffect.ValueType:
        """
        Ask an operation to turn back.

        Returns:
            What happens to it.

        Raises:
            OperationNotFound: There is none of that name, or it is finished.
        """
        runs_here = name in self._running
        if runs_here:
            self._running[name][0].cancel()
        try:
            # Also of one that runs here: should this applier crash, the next one has to know.
            request = journal_pb2.RequestCancelRequest(operation=name)
            return (await self._store.call(self._stub.RequestCancel, request)).effect
        except OperationNotFound:
            # One that runs here may not have been in the store yet, or have just ended.
            if not runs_here or await self._is_finished(name):
                raise
            return operation_pb2.CANCEL_EFFECT_ROLLS_BACK

    async def _is_finished(self, name: str) -> bool:
        """Whether an operation is over; one that the store does not know is not."""
        try:
            return (await self.get(name)).state in _FINISHED
        except OperationNotFound:
            return False

    async def get(self, name: str) -> operation_pb2.Operation:
        """
        Read one operation.

        Raises:
            OperationNotFound: There is none of that name.
        """
        request = journal_pb2.GetOperationRequest(operation=name)
        return (await self._store.call(self._stub.GetOperation, request)).operation

    async def page(self, request: journal_pb2.ListOperationsRequest) -> journal_pb2.ListOperationsResponse:
        """Read a page of operations."""
        return await self._store.call(self._stub.ListOperations, request)

    async def watch(self, name: str, after_seq: int) -> AsyncIterator[operation_pb2.OperationEvent]:
        """
        The events of an operation after *after_seq*, to its end, from the store: it knows those of any applier.

        Raises:
            OperationNotFound: There is none of that name.
            ServiceUnavailable: The store does not answer.
        """
        while True:
            request = journal_pb2.ListEventsRequest(operation=name, after_seq=after_seq)
            with self._store.answering():
                answer = await self._store.call(self._stub.ListEvents, request)
            for event in answer.events:
                after_seq = event.seq
                yield event
            if answer.has_more:
                continue
            if answer.state in _OVER:
                return
            await self._await_event(name)

    async def drain(self, seconds: float) -> None:
        """Let running operations end and start no more; those that take longer than *seconds* turn back."""
        self._draining = True
        tasks = [task for _, _, task in self._running.values()]
        if not tasks:
            return
        log.info("waiting for operations", extra={"operations": sorted(self._running)})
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for operation, _, task in list(self._running.values()):
            if task in late:
                operation.cancel()
        if late:
            await asyncio.wait(late)

    async def _begin(self, operation: Operation, asked: NewRequest | PlanRequest) -> None:
        """Begin; an operation that was left behind on the stack, or got stuck, is brought to its end first."""
        try:
            await operation.begin(asked)
        except OperationUnfinished as error:
            name = error.metadata["operation"]
            _refuse_without_consent(await self.get(name))
            left_behind = await self.resume(name)
            await left_behind.ends()
            await operation.begin(asked)

    async def _await_event(self, name: str) -> None:
        """Wait for the next event of an operation that runs here; for a moment, when it runs elsewhere."""
        if name in self._running:
            await self._running[name][1].grows()
        else:
            await asyncio.sleep(self._peers.timeouts.watch)

    def _run(self, operation: Operation, feed: Feed, work: Coroutine[None, None, None]) -> None:
        # The request id stays for the log; the caller's deadline is the caller's alone.
        context = contextvars.copy_context()
        context.run(deadline.set, math.inf)
        task = asyncio.get_running_loop().create_task(self._run_to_end(operation, feed, work), context=context)
        self._running[operation.name] = (operation, feed, task)

    async def _run_to_end(self, operation: Operation, feed: Feed, work: Coroutine[None, None, None]) -> None:
        try:
            await _end(operation.name, feed, work)
        finally:
            # After a pause longer than its lease, this applier may have taken it over once more.
            run = self._running.get(operation.name)
            if run and run[0] is operation:
                del self._running[operation.name]

    def _refuse_when_draining(self) -> None:
        if self._draining:
            raise ServiceUnavailable("applier", self._holder, "it is shutting down")


def _refuse_without_consent(operation: operation_pb2.Operation) -> None:
    """
    Leave an operation alone that somebody has to agree to go on with.

    Raises:
        OperationUnfinished: Names it.
    """
    if operation.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED:
        stack = operation.stack_name or operation.stack_id
        raise OperationUnfinished(stack, operation.name, OperationState.BLOCKED)


async def _end(operation: str, feed: Feed, work: Coroutine[None, None, None]) -> None:
    """Do *work*, and close the *feed* with what it ended with."""
    started = loop_time()
    try:
        await work
    except (PkgerError, AlreadyBegunError) as error:
        await feed.close(error)
    except Exception:
        log.exception("operation failed", extra={"operation": operation})
        await feed.close(Internal(request_id.get()))
    else:
        await feed.close()
    finally:
        duration = round((loop_time() - started) * 1000, 3)
        log.info("operation ended", extra={"operation": operation, "duration_ms": duration})
