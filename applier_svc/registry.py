"""The operations of this applier: starts, resumes, cancels, watches and drains them."""

import asyncio
import contextvars
import logging
import math
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import NamedTuple, Protocol

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2

from applier_svc.actions.run import ActionPeers, ActionSetRequest, ActionSetRun
from applier_svc.operation.events import Feed, dated
from applier_svc.operation.lease import AlreadyBegunError, claim
from applier_svc.operation.lifecycle import Operation, Peers
from applier_svc.operation.preconditions import refuse_unfit
from applier_svc.operation.requests import OperationRequest
from services.core.errors import (
    Internal,
    LimitReached,
    OperationNotFound,
    OperationUnfinished,
    PkgerError,
    ServiceUnavailable,
)
from services.engine.decisions import StepDecision, check_decisions
from services.engine.operation import OperationState
from services.rpc.call import deadline, loop_time, request_id
from services.rpc.client import Peer
from services.rpc.convert.operations import blocked_step_from_pb
from services.settings import MAX_ACTION_SETS
from services.system import Clock, Ids, MachineIds, machine_clock

log = logging.getLogger("pkger.applier")

_FINISHED = (
    operation_pb2.OPERATION_STATE_SUCCEEDED,
    operation_pb2.OPERATION_STATE_ROLLED_BACK,
    operation_pb2.OPERATION_STATE_FAILED,
    operation_pb2.OPERATION_STATE_CANCELLED,
)

_OVER = (*_FINISHED, operation_pb2.OPERATION_STATE_BLOCKED)
"""States in which an operation does not continue by itself."""


class Run(Protocol):
    """An operation that runs here."""

    @property
    def id(self) -> str:
        """Its id."""

    def cancel(self) -> None:
        """Ask it to stop."""


class _Running(NamedTuple):
    """
    An operation that runs here.

    Attributes:
        run: The operation.
        feed: Its events.
        task: Its work.
        is_child: Whether a phase of an action set began it.
    """

    run: Run
    feed: Feed
    task: asyncio.Task[None]
    is_child: bool


class Registry:
    """The running operations. They belong to the service: they continue when their callers disconnect."""

    def __init__(
        self,
        peers: Peers,
        actions: ActionPeers,
        holder: str,
        clock: Clock = machine_clock,
        ids: Ids = MachineIds(),
        most_action_sets: int = MAX_ACTION_SETS,
    ) -> None:
        """
        Args:
            peers: The services that operations call.
            actions: What action sets share.
            holder: Name of this applier in the leases of its operations.
            clock: Dates events.
            ids: Draws ids of operations.
            most_action_sets: Most unfinished action sets of this applier.
        """
        self._actions = actions
        self._most_action_sets = most_action_sets
        self._peers = peers
        self._holder = holder
        self._clock = clock
        self._ids = ids
        self._store = peers.stack
        self._stub = JournalServiceStub(peers.stack.channel)
        self._running: dict[str, _Running] = {}
        self._draining = False

    async def answers(self, request: OperationRequest) -> AsyncIterator[operation_pb2.OperationEvent]:
        """
        Start an operation and follow it; if the same request began one before, follow that one.

        Raises:
            PkgerError: The error that ended the operation.
        """
        while True:
            try:
                async for event in self.start(request).follow():
                    yield event
            except AlreadyBegunError as earlier:
                operation = earlier.operation
            else:
                return
            has_started = False
            async for event in self.watch(operation, after_seq=0):
                if not has_started:
                    yield dated(operation, operation_pb2.Begun(), self._clock)
                has_started = True
                yield event
            # A FAILED operation ended before anything was sent, so the request is served again.
            if has_started or (await self.get(operation)).state != operation_pb2.OPERATION_STATE_FAILED:
                return

    def start(self, request: OperationRequest, operation_id: str = "") -> Feed:
        """
        Start an operation and return its feed; it ends with ``AlreadyBegunError`` if the request began one before.

        Args:
            request: The request.
            operation_id: Its id, if it follows from a phase of an action set; empty: a new one.

        Raises:
            ServiceUnavailable: The service is about to end.
        """
        if request.parent is None:
            # A phase that runs may begin its operation as long as its action set runs here.
            self._refuse_when_draining()
        operation_id = operation_id or self._ids.token(8)
        feed = Feed(operation_id, self._clock)
        operation = Operation(operation_id, self._holder, self._peers, feed, deadline.get())
        self._run(operation, feed, self._begin(operation, request), is_child=request.parent is not None)
        return feed

    def start_action_set(self, request: ActionSetRequest) -> Feed:
        """
        Start an action set and return its feed; it ends with ``AlreadyBegunError`` if the request began one before.

        Raises:
            LimitReached: This applier has as many unfinished ones as it may have.
            ServiceUnavailable: The service is about to end.
        """
        self._refuse_when_draining()
        if not self._has_room:
            raise LimitReached("applier", self._most_action_sets)
        operation_id = self._ids.token(8)
        feed = Feed(operation_id, self._clock)
        run = ActionSetRun(operation_id, self._holder, self._actions, self, feed)
        self._run(run, feed, run.begin(request))
        return feed

    async def resume(self, operation_id: str, decisions: Sequence[StepDecision] = (), by_request: bool = False) -> Feed:
        """
        Claim an unfinished operation, resume it, and return the feed of its further events.

        Args:
            operation_id: Its id.
            decisions: The decisions for its blocked steps; undecided steps are retried.
            by_request: Whether a client requested it, which is also the consent to continue on a restored store.

        Raises:
            RequestInvalid: A decision does not fit; nothing was changed.
            OperationNotFound: It does not exist, or it is finished.
            StackLeased: Another applier runs it.
            OperationUnfinished: It waits for the consent.
            LimitReached: It is an action set, and this applier has as many as it may have.
            ServiceUnavailable: The store does not answer, or the service is about to end.
        """
        self._refuse_when_draining()
        if not self._has_room and (await self.get(operation_id)).kind == plan_pb2.OPERATION_KIND_ACTION:
            raise LimitReached("applier", self._most_action_sets)
        if decisions:
            operation = await self.get(operation_id)
            if operation.state in _FINISHED:
                raise OperationNotFound(operation_id)
            await refuse_unfit(decisions, operation, self._peers.platforms, self._store)
        lease, claimed = await claim(self._store, operation_id, self._holder, self._peers.timeouts)
        try:
            if not by_request:
                _refuse_without_consent(claimed.operation)
            # Another applier may have resumed it meanwhile, and other steps may block it now.
            check_decisions(decisions, [blocked_step_from_pb(each) for each in claimed.operation.blocked_steps])
        except BaseException:
            await lease.drop()
            await lease.expire_soon()
            raise
        log.info("operation resumed", extra={"operation_id": operation_id})
        feed = Feed(operation_id, self._clock, claimed.last_seq)
        if claimed.operation.kind == plan_pb2.OPERATION_KIND_ACTION:
            run = ActionSetRun(operation_id, self._holder, self._actions, self, feed)
            self._run(run, feed, run.resume(lease, claimed))
        else:
            resumed = Operation(operation_id, self._holder, self._peers, feed)
            work = resumed.resume(lease, claimed, decisions)
            self._run(resumed, feed, work, is_child=bool(claimed.operation.parent))
        return feed

    @property
    def _has_room(self) -> bool:
        """Whether it may have another unfinished action set."""
        running = sum(isinstance(each.run, ActionSetRun) for each in self._running.values())
        return running < self._most_action_sets

    async def recover(self, store: Peer) -> None:
        """
        Resume all abandoned operations; those that cannot be resumed now are left to the next call.

        Args:
            store: A separate connection: while the store is not up yet, other calls must not wait for this one.

        Raises:
            PkgerError: The store does not answer.
        """
        stub = JournalServiceStub(store.channel)
        answer = await store.call(stub.ListAbandonedOperations, journal_pb2.ListAbandonedOperationsRequest())
        for operation_id in answer.operation_ids:
            if operation_id in self._running or self._draining:
                continue
            try:
                await self.resume(operation_id)
            except LimitReached:
                # Another applier resumes it, or this one when an action set has ended.
                continue
            except PkgerError as error:
                if isinstance(error, ServiceUnavailable) and not error.status:
                    raise
                log.warning("operation not resumed", extra={"operation_id": operation_id, "problem": str(error)})
            except Exception:
                # A defect with one operation must not keep the next ones from being resumed.
                log.exception("operation not resumed", extra={"operation_id": operation_id})

    async def cancel(self, operation_id: str) -> operation_pb2.CancelEffect.ValueType:
        """
        Ask an operation to stop and roll back.

        Returns:
            The effect of the cancellation.

        Raises:
            OperationNotFound: It does not exist, or it is finished.
        """
        runs_here = operation_id in self._running
        if runs_here:
            self._running[operation_id].run.cancel()
        try:
            # Stored even if it runs here: after a crash of this applier, the next one has to know.
            request = journal_pb2.RequestCancelRequest(operation_id=operation_id)
            return (await self._store.call(self._stub.RequestCancel, request)).effect
        except OperationNotFound:
            # The operation may not be stored yet, or may just have ended.
            if not runs_here or await self._is_finished(operation_id):
                raise
            return operation_pb2.CANCEL_EFFECT_ROLLS_BACK

    async def _is_finished(self, operation_id: str) -> bool:
        """Whether an operation is finished; False if the store does not have it."""
        try:
            return (await self.get(operation_id)).state in _FINISHED
        except OperationNotFound:
            return False

    async def get(self, operation_id: str) -> operation_pb2.Operation:
        """
        Read one operation.

        Raises:
            OperationNotFound: It does not exist.
        """
        request = journal_pb2.GetOperationRequest(operation_id=operation_id)
        return (await self._store.call(self._stub.GetOperation, request)).operation

    async def page(self, request: journal_pb2.ListOperationsRequest) -> journal_pb2.ListOperationsResponse:
        """Read a page of operations."""
        return await self._store.call(self._stub.ListOperations, request)

    async def watch(self, operation_id: str, after_seq: int) -> AsyncIterator[operation_pb2.OperationEvent]:
        """
        The events of an operation after *after_seq*, up to its end. They are read from the store, which has the events
        of all appliers.

        Raises:
            OperationNotFound: It does not exist.
            ServiceUnavailable: The store does not answer.
        """
        while True:
            request = journal_pb2.ListEventsRequest(operation_id=operation_id, after_seq=after_seq)
            answer = await self._store.call(self._stub.ListEvents, request)
            for event in answer.events:
                after_seq = event.seq
                yield event
            if answer.has_more:
                continue
            if answer.state in _OVER:
                return
            if self._draining and operation_id not in self._running:
                # Another applier continues it; a watcher must not delay the end of this one.
                self._refuse_when_draining()
            await self._await_event(operation_id)

    async def drain(self, seconds: float) -> None:
        """
        Start no more operations and wait for the running ones. Those that take longer than *seconds* are cancelled, but
        action sets and their operations are left to the next applier.
        """
        self._draining = True
        tasks = [each.task for each in self._running.values()]
        if not tasks:
            return
        log.info("waiting for operations", extra={"operations": sorted(self._running)})
        for each in self._running.values():
            if isinstance(each.run, ActionSetRun):
                each.run.control.drain()
        await asyncio.wait(tasks, timeout=seconds)
        for each in list(self._running.values()):
            if isinstance(each.run, ActionSetRun):
                each.run.control.release()
            elif each.is_child:
                each.task.cancel()
            else:
                each.run.cancel()
        if late := [each.task for each in self._running.values()]:
            await asyncio.wait(late)

    async def _begin(self, operation: Operation, request: OperationRequest) -> None:
        """Begin *operation*; an unfinished operation on the stack is resumed and ended first."""
        try:
            await operation.begin(request)
        except OperationUnfinished as error:
            unfinished = error.metadata["operation"]
            _refuse_without_consent(await self.get(unfinished))
            left_behind = await self.resume(unfinished)
            await left_behind.ends()
            await operation.begin(request)

    async def _await_event(self, operation_id: str) -> None:
        """Wait for the next event of an operation that runs here; else, for the interval between reads."""
        if operation_id in self._running:
            await self._running[operation_id].feed.grows()
        else:
            await asyncio.sleep(self._peers.timeouts.watch)

    def _run(self, operation: Run, feed: Feed, work: Coroutine[None, None, None], is_child: bool = False) -> None:
        # The operation inherits the request id for its log, but not the deadline of its caller.
        context = contextvars.copy_context()
        context.run(deadline.set, math.inf)
        task = asyncio.get_running_loop().create_task(self._run_to_end(operation, feed, work), context=context)
        self._running[operation.id] = _Running(operation, feed, task, is_child)

    async def _run_to_end(self, operation: Run, feed: Feed, work: Coroutine[None, None, None]) -> None:
        try:
            await _end(operation.id, feed, work)
        finally:
            # After a pause longer than its lease, this applier may have claimed the operation again.
            run = self._running.get(operation.id)
            if run and run.run is operation:
                del self._running[operation.id]

    def _refuse_when_draining(self) -> None:
        if self._draining:
            raise ServiceUnavailable("applier", self._holder, "it is shutting down", answered=True)


def _refuse_without_consent(operation: operation_pb2.Operation) -> None:
    """
    Refuse to resume an operation on a restored store: that needs consent.

    Raises:
        OperationUnfinished: Names the operation.
    """
    if operation.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED:
        stack = operation.stack_name or operation.stack_id
        raise OperationUnfinished(stack, operation.id, OperationState.BLOCKED)


async def _end(operation: str, feed: Feed, work: Coroutine[None, None, None]) -> None:
    """Run *work*, and close the *feed* with its error, if any."""
    started = loop_time()
    try:
        await work
    except (PkgerError, AlreadyBegunError) as error:
        await feed.close(error)
    except Exception:
        log.exception("operation failed", extra={"operation_id": operation})
        await feed.close(Internal(request_id.get()))
    except BaseException:
        # The applier ends, and another one continues; followers read further events from the store.
        await feed.close(ServiceUnavailable("applier", "", "it is shutting down", answered=True))
        raise
    else:
        await feed.close()
    finally:
        duration = round((loop_time() - started) * 1000, 3)
        log.info("operation ended", extra={"operation_id": operation, "duration_ms": duration})
