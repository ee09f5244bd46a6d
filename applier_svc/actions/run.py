"""One run of an action set: begun from a request, or resumed from its journal."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from applier_svc.actions.call import FunctionTable, Operations, Services
from applier_svc.actions.context import RunContext
from applier_svc.actions.holders import Holders
from applier_svc.actions.journal import ActionJournal
from applier_svc.actions.runner import ActionSetRunner, Control
from applier_svc.actions.secrets import ActionSecrets, SecretPlaces
from applier_svc.actions.views import shape_of as shape_of_actions
from applier_svc.execution.timeouts import Timeouts
from applier_svc.failpoints import reach
from applier_svc.operation.events import Feed
from applier_svc.operation.interruption import Defect, leave, release
from applier_svc.operation.lease import Lease, take
from applier_svc.operation.requests import RequestId
from services.actions.definitions import SecretPlace
from services.actions.folding import ActionSetProgress, Shape, folded
from services.actions.pinned import PinnedActionSet, read_pinned, reserved_stacks
from services.core.errors import ActionSetExists, ArtifactGone, LimitReached
from services.rpc.convert.action_sets import new_action_set
from services.rpc.convert.phases import records_from_pb
from services.system import Clock

RUNNING_PHASES = 16
"""Most phases that run at the same time in one applier."""

log = logging.getLogger("pkger.applier")

_REFUSALS = (ActionSetExists, ArtifactGone, LimitReached)
"""Errors with which the store refuses to start an action set."""


@dataclass(frozen=True, slots=True)
class ActionPeers:
    """
    What all runs of action sets of one applier share.

    Attributes:
        services: The services that functions call.
        functions: The functions that it has.
        places: Where it reads secrets.
        holders: The operations for which they wait.
        slots: Bounds the phases that run at the same time.
        timeouts: The timeouts of leases.
        clock: The time of day.
    """

    services: Services
    functions: FunctionTable
    places: SecretPlaces
    holders: Holders
    slots: asyncio.Semaphore
    timeouts: Timeouts
    clock: Clock


@dataclass(frozen=True, slots=True)
class ActionSetRequest:
    """
    A request to run an action set.

    Attributes:
        pinned: The action set.
        request: Id and digest of the request.
        author: Its author.
        secrets: The values of secrets that came with it, by NAME.KEY.
    """

    pinned: PinnedActionSet
    request: RequestId = field(default_factory=RequestId)
    author: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


class ActionSetRun:
    """
    One run of an action set.

    Attributes:
        id: Id of its operation.
        control: What others tell it.
    """

    def __init__(self, operation_id: str, holder: str, peers: ActionPeers, operations: Operations, feed: Feed) -> None:
        self.id = operation_id
        self.control = Control()
        self._holder = holder
        self._peers = peers
        self._operations = operations
        self._feed = feed

    def cancel(self) -> None:
        """Stop once running phases have ended."""
        self.control.cancel()

    async def begin(self, request: ActionSetRequest) -> None:
        """
        Run a new action set; from the accepted event on, it exists.

        Raises:
            AlreadyBegunError: The same request began one before.
            PkgerError: Before the accepted event, nothing was stored. After it, it was interrupted; the next holder of
                its lease resumes it.
        """
        pinned = request.pinned
        begin_request = journal_pb2.BeginOperationRequest(
            operation_id=self.id,
            holder=self._holder,
            author=request.author,
            kind=plan_pb2.OPERATION_KIND_ACTION,
            target=_target(pinned),
        )
        if request.request.id:
            begin_request.request.CopyFrom(journal_pb2.RequestKey(id=request.request.id, digest=request.request.digest))
        taken = await take(self._peers.services.stack, begin_request, self._peers.timeouts)
        lease = taken.lease
        try:
            reach("after_begin")
            journal = ActionJournal(lease, self._feed, ActionSetProgress(shape_of(pinned, self._peers.functions)))
            try:
                await journal.start(new_action_set(pinned, self._peers.functions.signatures))
            except _REFUSALS as error:
                await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, cause=str(error))
                raise
            except BaseException:
                await release(lease)
                raise
            secrets = ActionSecrets(self._peers.places, request.secrets)
            context = self._context(pinned, request.author, lease, journal, secrets)
            await self._to_the_end(ActionSetRunner(context, self.control, _create_time(taken.operation)), lease)
        finally:
            await lease.drop()

    async def resume(self, lease: Lease, claimed: journal_pb2.ClaimOperationResponse) -> None:
        """
        Resume the action set from its journal.

        A defect that ends the attempt is reported to the store, which blocks the operation after several defects.

        Raises:
            PkgerError: It was interrupted again.
        """
        try:
            reach("after_claim")
            if claimed.operation.state == operation_pb2.OPERATION_STATE_PREPARING:
                problem = "its applier was gone before it started"
                await lease.finish(None, operation_pb2.OPERATION_STATE_FAILED, None, cause=problem)
                return
            pinned = read_pinned(claimed.action_set.pinned_json)
            shape = shape_of(pinned, self._peers.functions)
            journal = ActionJournal(lease, self._feed, folded(shape, map(records_from_pb, claimed.records)))
            secrets = ActionSecrets(self._peers.places, {}, are_lost=_needs_request_values(pinned))
            context = self._context(pinned, claimed.operation.author, lease, journal, secrets)
            is_restored = claimed.operation.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED
            runner = ActionSetRunner(context, self.control, _create_time(claimed.operation), is_restored)
            await runner.take_over()
            await self._to_the_end(runner, lease)
        except BaseException as error:
            # The text of a defect may quote secrets.
            defect = Defect(f"{type(error).__name__} in the applier; see its log")
            await leave(lease, self._feed, error, defect)
        finally:
            await lease.drop()

    async def _to_the_end(self, runner: ActionSetRunner, lease: Lease) -> None:
        """Run it until it has ended, or this applier is told to stop."""
        try:
            has_ended = await runner.run()
        except BaseException:
            await release(lease)
            raise
        if not has_ended:
            await release(lease)

    def _context(
        self, pinned: PinnedActionSet, author: str, lease: Lease, journal: ActionJournal, secrets: ActionSecrets
    ) -> RunContext:
        peers = self._peers
        return RunContext(
            pinned=pinned,
            operation=self.id,
            author=author,
            lease=lease,
            journal=journal,
            secrets=secrets,
            functions=peers.functions,
            services=peers.services,
            operations=self._operations,
            holders=peers.holders,
            slots=peers.slots,
            clock=peers.clock,
            jitter=peers.timeouts.jitter,
        )


def shape_of(pinned: PinnedActionSet, functions: FunctionTable) -> Shape:
    """What the order of an action set depends on."""
    return replace(shape_of_actions(pinned), must_reserve=bool(reserved_stacks(pinned, functions.signatures)))


def _target(pinned: PinnedActionSet) -> object_pb2.Target:
    """The target of the first object; the default one if there is none."""
    target = next((each.object for each in pinned.actions if each.object), None)
    return object_pb2.Target(platform=target.platform, org=target.org) if target else object_pb2.Target()


def _needs_request_values(pinned: PinnedActionSet) -> bool:
    """Whether values of secrets came with the request, which only its first applier had."""
    sources = (source for each in pinned.actions for by_key in each.secrets.values() for source in by_key.values())
    return any(source.place is SecretPlace.REQUEST for source in sources)


def _create_time(operation: operation_pb2.Operation) -> int:
    return int(operation.create_time.ToMicroseconds())
