"""Stacks in one organization, and appliers that die again and again while they work on these."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field, replace

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2

from applier_svc.failpoints import NAMES, VARIABLE
from services.core.errors import PkgerError, Reason
from tests.applier.world import BLOCKED, OVER, Case
from tests.cluster import Cluster, Shown, after_begun
from tests.crash.processes import Processes
from tests.crash.pulse import Pulse

APPLIERS = ("applier", "another")

_CUT_OFF = (Reason.SERVICE_UNAVAILABLE, Reason.LEASE_LOST, Reason.TOKEN_STALE)
"""Errors after a process died; a retry of the request gets the outcome."""

_BUSY = (Reason.STACK_LEASED, Reason.OPERATION_UNFINISHED)
"""Errors while the stack has an operation that has not ended."""

FINAL = (
    Reason.RESOURCE_OWNED,
    Reason.SHARED_DIFFERS,
    Reason.IN_USE,
    Reason.NAME_TAKEN,
    Reason.PLAN_STALE,
    Reason.PLAN_USED,
    Reason.STACK_MOVED,
    Reason.STACK_NOT_FOUND,
)
"""Errors that a request may end with because of other stacks or of the person."""

_ATTEMPTS = 100
"""How often a request is sent at most."""

_MOST_SKIPS = 5

Answer = operation_pb2.Finished | PkgerError | None
"""How an operation ended, or why there was none; None: the stack that was to be deleted is not there."""


@dataclass
class Shared:
    """
    One organization with its services, and counts of the events in it.

    Attributes:
        services: The services; its applier is the first one.
        callers: The services as seen by a client of each applier.
        processes: The processes of the services.
        pulse: Beats with each event that a client receives.
        person_wrote: How many writes the person has sent.
        planned: The value of *person_wrote* when a stored plan was made, by name of the plan.
        decided: Names of the operations in which a blocked step was skipped.
        heard: How often each answer was received.
    """

    services: Cluster
    callers: list[Cluster]
    processes: Processes
    pulse: Pulse = field(default_factory=Pulse)
    person_wrote: int = 0
    planned: dict[str, int] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    heard: dict[str, int] = field(default_factory=dict)

    def case(self, stack: str) -> Case:
        """A stack."""
        return Case(self.services, None, "default", stack)  # type: ignore[arg-type]

    def note(self, answer: str) -> None:
        """Count *answer*."""
        self.heard[answer] = self.heard.get(answer, 0) + 1

    def hear(self, error: PkgerError, foreseen: Collection[Reason]) -> None:
        """Count *error*; its reason has to be one of *foreseen*."""
        if error.reason not in foreseen:
            raise AssertionError(f"{error.reason}: {error}") from error
        self.note(str(error.reason))

    async def operations(self) -> list[operation_pb2.Operation]:
        """All operations, the newest first."""
        stack, found = self.services.peers["stack"], list[operation_pb2.Operation]()
        request = journal_pb2.ListOperationsRequest(page_size=500)
        while True:
            page = await stack.call(JournalServiceStub(stack.channel).ListOperations, request)
            found += page.operations
            if not page.next_page_token:
                return found
            request.page_token = page.next_page_token

    async def over(self, operation: str) -> operation_pb2.Operation:
        """Wait until an operation has ended or is blocked, and return it; an applier has to run."""
        stack = self.services.peers["stack"]
        request = journal_pb2.GetOperationRequest(operation_id=operation)
        while True:
            found = (await stack.call(JournalServiceStub(stack.channel).GetOperation, request)).operation
            if found.state in OVER:
                return found
            # An applier may wait for the end of a lease, which is no event that could be awaited.
            await asyncio.sleep(0.02)

    async def quiet(self) -> None:
        """Wait until all operations have ended; BLOCKED ones are retried, then their steps are skipped."""
        for operation in await self.operations():
            if operation.state not in OVER or operation.state == BLOCKED:
                await self.decide((await self.over(operation.id)).id)

    async def decide(self, name: str) -> None:
        """End an operation that may be BLOCKED: retry it, then skip the steps that block it."""
        ways, way = iter(("retry", *["skip"] * _MOST_SKIPS)), ""
        while (operation := await self.over(name)).state == BLOCKED:
            way = way or next(ways, "")
            assert way, f"no decision ends {name}: {operation.cause}"
            reason = operation_pb2.BlockedReason.Name(operation.blocked_reason)
            assert operation.blocked_steps, f"{name} does not say what blocks it: {reason}, {operation.cause}"
            if way == "skip":
                self.decided.add(name)
            try:
                await self._recover(operation, operation_pb2.Decision.Value(f"DECISION_{way.upper()}"))
            except PkgerError as error:
                # Another client has resumed it, or its applier died again. The end of a lease cannot be awaited.
                self.hear(error, (*_CUT_OFF, *_BUSY, Reason.OPERATION_NOT_FOUND, Reason.REQUEST_INVALID))
                await asyncio.sleep(0.1)
            else:
                self.note(f"{reason} {way}")
                way = ""

    async def _recover(self, operation: operation_pb2.Operation, decision: operation_pb2.Decision.ValueType) -> None:
        request = applier_pb2.RecoverOperationRequest(operation_id=operation.id)
        for blocked in operation.blocked_steps:
            assert decision in blocked.decisions, operation
            request.decisions.add(step=blocked.step.number, decision=decision)
        peer = self.services.peers["applier"]
        async for _ in peer.stream(ApplierServiceStub(peer.channel).RecoverOperation, request):
            await self.pulse.beat()


class Caller:
    """
    Sends requests about one stack to any applier, and retries them when the applier dies.

    Attributes:
        stack: Name of the stack.
        rng: Draws the applier.
    """

    def __init__(self, shared: Shared, stack: str, rng: random.Random) -> None:
        self.stack = stack
        self.rng = rng
        self.shared = shared
        self._count = 0

    async def apply(self, package: str) -> Answer:
        """Apply *package*."""
        request_id = self._request_id()
        return await self._ask(lambda case: case.events(package, request_id=request_id))

    async def apply_plan(self, plan: Shown) -> Answer:
        """Apply a stored plan."""
        request_id = self._request_id()
        return await self._ask(lambda case: case.services.apply_plan(plan.name, plan.digest, request_id=request_id))

    async def uninstall(self) -> Answer:
        """Uninstall the stack, and delete it."""
        ref = object_pb2.StackRef(name=self.stack)
        request = applier_pb2.UninstallStackRequest(
            stack=ref, request_id=self._request_id(), after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE
        )

        async def events(case: Case) -> AsyncIterator[operation_pb2.OperationEvent]:
            peer = case.services.peers["applier"]
            async for event in after_begun(peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request)):
                yield event

        return await self._ask(events)

    async def _ask(self, asked: Callable[[Case], AsyncIterator[operation_pb2.OperationEvent]]) -> Answer:
        answers = list[str]()
        for _ in range(_ATTEMPTS):
            await self.shared.processes.one_serves(APPLIERS)
            case = replace(self.shared.case(self.stack), services=self.rng.choice(self.shared.callers))
            try:
                last = None
                async for event in asked(case):
                    last = event
                    await self.shared.pulse.beat()
            except PkgerError as error:
                self.shared.hear(error, (*_CUT_OFF, *_BUSY, *FINAL))
                answers.append(str(error))
                await self.shared.pulse.beat()
                if error.reason in FINAL:
                    return error
                if error.reason in _BUSY:
                    await self.shared.decide(error.metadata["operation"])
            else:
                if last is None:
                    self.shared.note("not there")
                    return None
                if last.HasField("finished"):
                    self.shared.note(operation_pb2.OperationState.Name(last.finished.state))
                    return last.finished
        raise AssertionError(f"{self.stack} gets no answer, but {answers}")

    def _request_id(self) -> str:
        self._count += 1
        return f"{self.stack}/{self._count}"


async def live(shared: Shared, name: str, rng: random.Random, most_beats: int) -> None:
    """
    Run an applier that dies at a failpoint, or is killed, and start it again, until the pulse has ended.

    Args:
        shared: The organization.
        name: The name of the applier.
        rng: Draws how it dies.
        most_beats: Most beats of the pulse before it is killed.
    """
    processes = shared.processes
    while not shared.pulse.is_over:
        failpoint = f"{rng.choice(NAMES)}:{rng.randrange(1, 4)}" if rng.random() < 0.5 else ""
        await processes.start("applier", {VARIABLE: failpoint}, called=name)
        ways = [
            asyncio.ensure_future(processes.ended(name)),
            asyncio.ensure_future(shared.pulse.passed(rng.randrange(5, most_beats))),
        ]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for waiting in ways:
            waiting.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await processes.kill(name)
        shared.note("killed")


async def survive(shared: Shared) -> None:
    """Run appliers that do not die."""
    await asyncio.gather(*(shared.processes.start("applier", called=name) for name in APPLIERS))
