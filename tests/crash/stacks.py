"""Stacks in one organisation, and appliers that die all the time while they work on them."""

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
from tests.cluster import Cluster, Shown
from tests.crash.processes import Processes
from tests.crash.pulse import Pulse

APPLIERS = ("applier", "another")

_CUT_OFF = (Reason.SERVICE_UNAVAILABLE, Reason.LEASE_LOST, Reason.TOKEN_STALE)
"""Somebody died: asking again finds out what became of it."""

_AT_WORK = (Reason.STACK_LEASED, Reason.OPERATION_UNFINISHED)
"""The stack has an operation that is not over."""

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
"""What a stack may be answered because of the others, or of the person."""

_ATTEMPTS = 100
"""How often an applier that served may leave a request without an answer."""

_MOST_SKIPS = 5

Answer = operation_pb2.Finished | PkgerError | None
"""How an operation ended, or why there was none; None: the stack that was to be deleted is not there."""


@dataclass
class Shared:
    """
    One organisation, and what is going on in it.

    Attributes:
        services: The services; its applier is the first one.
        callers: The services as they are for those who call one of the appliers, each.
        processes: The same as processes.
        pulse: Beats with each event that somebody hears.
        person_wrote: How many writes the person has sent.
        planned: How many that were when the stored plan of an operation was made, by name of the plan.
        decided: Names of the operations that somebody had to decide about.
        heard: How often each answer was given.
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
        """Count *error*, which is to be a *foreseen* one."""
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
        """An operation, once it is over or blocked; some applier has to run."""
        stack = self.services.peers["stack"]
        request = journal_pb2.GetOperationRequest(operation=operation)
        while True:
            found = (await stack.call(JournalServiceStub(stack.channel).GetOperation, request)).operation
            if found.state in OVER:
                return found
            # What an applier does next is up to the end of a lease, which nobody announces.
            await asyncio.sleep(0.02)

    async def quiet(self) -> None:
        """Wait until all operations are over; what is BLOCKED is tried again, then skipped."""
        for operation in await self.operations():
            if operation.state not in OVER or operation.state == BLOCKED:
                await self.decide((await self.over(operation.name)).name)

    async def decide(self, name: str) -> None:
        """Bring an operation to its end that may be BLOCKED: try it again, then skip what blocks it."""
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
                # Somebody else has resumed it, or its applier died once more; then the end of its lease tells nobody.
                self.hear(error, (*_CUT_OFF, *_AT_WORK, Reason.OPERATION_NOT_FOUND, Reason.REQUEST_INVALID))
                await asyncio.sleep(0.1)
            else:
                self.note(f"{reason} {way}")
                way = ""

    async def _recover(self, operation: operation_pb2.Operation, decision: operation_pb2.Decision.ValueType) -> None:
        request = applier_pb2.RecoverOperationRequest(operation=operation.name)
        for blocked in operation.blocked_steps:
            assert decision in blocked.decisions, operation
            request.decisions.add(step=blocked.step.number, decision=decision)
        peer = self.services.peers["applier"]
        async for _ in peer.stream(ApplierServiceStub(peer.channel).RecoverOperation, request):
            await self.pulse.beat()


class Caller:
    """
    Asks any applier for what is to become of one stack, and asks again when it dies.

    Attributes:
        stack: Name of the stack.
        rng: Draws which applier.
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
            stack=ref, request_id=self._request_id(), then=plan_pb2.AFTER_UNINSTALL_DELETE
        )

        async def events(case: Case) -> AsyncIterator[operation_pb2.OperationEvent]:
            peer = case.services.peers["applier"]
            async for answer in peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request):
                yield answer.event

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
                self.shared.hear(error, (*_CUT_OFF, *_AT_WORK, *FINAL))
                answers.append(str(error))
                await self.shared.pulse.beat()
                if error.reason in FINAL:
                    return error
                if error.reason in _AT_WORK:
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
    Run an applier that dies at a failpoint, or is killed, again and again; until nothing more happens.

    Args:
        shared: Where.
        name: What it is called.
        rng: Draws how it dies.
        most_beats: How often something happens at most, before it is killed.
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
