"""An operation from its beginning to its end, for whoever waits for it: as text, or event by event as data."""

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2
from rich.text import Text

from services.cli.consoles import console, talk
from services.cli.documents import print_records
from services.cli.errors import EXIT_CODES, Failed, InvalidPackageError, text_of
from services.cli.exit_codes import Exit
from services.cli.interrupts import Interrupts
from services.cli.live import SECOND, Live
from services.cli.plan_text import print_plan
from services.cli.progress import Progress, cancel_effect
from services.cli.session import Session
from services.core.errors import PkgerError
from services.rpc.call import deadline, loop_time
from services.rpc.convert.objects import violation_from_pb
from services.rpc.documents import document_of
from services.rpc.plan_parts import JoinedPlan

WATCHED_SECONDS = 60.0
"""How long an operation is looked for whose applier does not answer."""

Answer = (
    applier_pb2.ApplyResponse
    | applier_pb2.ApplyPlanResponse
    | applier_pb2.UninstallStackResponse
    | applier_pb2.RollbackStackResponse
    | applier_pb2.WatchOperationResponse
    | applier_pb2.RecoverOperationResponse
)
Begin = Callable[[], AsyncIterator[Answer]]
ReadPlan = Callable[[str], Awaitable[JoinedPlan]]


class Report(Protocol):
    """Tells of an operation."""

    def plan(self, made: JoinedPlan) -> None:
        """The plan that the operation runs."""

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Something happened."""

    def note(self, text: str) -> None:
        """Tell people something beside."""


class Lines:
    """An operation as data: its events, each as soon as it is there."""

    def __init__(self, output: str) -> None:
        self._output = output

    def plan(self, made: JoinedPlan) -> None:
        """Nothing: the first event names the plan."""

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Print the event."""
        print_records([document_of(event)], self._output)

    def note(self, text: str) -> None:
        """Tell people, who do not read the data."""
        console(stderr=True).print(Text(text))


class Words:
    """An operation as people follow it."""

    def __init__(self, progress: Progress, live: Live, full: bool) -> None:
        self._progress, self._live, self._full = progress, live, full

    def plan(self, made: JoinedPlan) -> None:
        """Print the plan."""
        with self._live.printing():
            print_plan(talk(), made, self._full)

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Print what people want to know of the event."""
        with self._live.printing():
            self._progress.show(event)

    def note(self, text: str) -> None:
        """Print it where progress is printed."""
        with self._live.printing():
            talk().print(Text(text, "bold red"))


class Following:
    """Follows one operation."""

    def __init__(
        self, services: Session, interrupts: Interrupts, live: Live, report: Report, progress: Progress
    ) -> None:
        """
        Args:
            services: Where the operation runs.
            interrupts: What makes it roll back, or ends the waiting.
            live: Shows that something is going on.
            report: Is told of all that happens.
            progress: Knows the steps, and how far they are.
        """
        self._services, self._interrupts = services, interrupts
        self._live, self._report, self._progress = live, report, progress
        self._stub = ApplierServiceStub(services.applier.channel)
        self._operation, self._seq = "", 0
        self._platform = ""

    async def run(
        self, begin: Begin, read_plan: ReadPlan, wait: float, shown: JoinedPlan | None
    ) -> tuple[JoinedPlan, operation_pb2.Finished]:
        """
        Begin an operation and follow it to its end; an interrupt makes it roll back, and the end is still awaited.

        Args:
            begin: Begins it.
            read_plan: Reads the plan of a name.
            wait: Seconds to wait for another operation of the stack to end.
            shown: Its plan, if that was shown; None: to be read and shown.

        Returns:
            Its plan and its last event.

        Raises:
            Failed: It did not begin, or nobody knows its end.
            InvalidPackageError: The package breaks rules.
        """
        made, violations = shown or JoinedPlan(), list[object_pb2.Violation]()
        cancelling: asyncio.Task[None] | None = None
        try:
            async for answer in self._lasting(self._patient(begin, wait)):
                if isinstance(answer, applier_pb2.ApplyResponse) and answer.HasField("violations"):
                    violations += answer.violations.violations
                    continue
                event = answer.event
                if event.HasField("accepted"):
                    cancelling = asyncio.create_task(self._cancel_on_interrupt())
                    if not shown:
                        made = await read_plan(event.accepted.plan)
                        self._report.plan(made)
                    self._begin_steps(made)
                self._report.event(event)
                if event.HasField("finished"):
                    return made, event.finished
        finally:
            if cancelling:
                cancelling.cancel()
                await asyncio.gather(cancelling, return_exceptions=True)
        if violations:
            raise InvalidPackageError(list(map(violation_from_pb, violations)))
        raise Failed("the applier ended the stream before the operation was over; `pkger plan` shows where things are")

    def _begin_steps(self, made: JoinedPlan) -> None:
        self._progress.begin(made.steps)
        self._platform = f"platform {made.header.target.platform}"
        self._live.show(self._progress.told, self._platform)

    async def watch(self, begin: Begin, read_plan: ReadPlan) -> operation_pb2.Finished:
        """
        Follow an operation that runs already; an interrupt is somebody else's matter.

        Raises:
            Failed: Nobody knows its end.
            PkgerError: It cannot be watched.
        """
        async for answer in self._lasting(begin()):
            if answer.event.HasField("accepted"):
                self._begin_steps(await read_plan(answer.event.accepted.plan))
            self._report.event(answer.event)
            if answer.event.HasField("finished"):
                return answer.event.finished
        raise Failed("the applier ended the stream before the operation was over; `pkger operations show` tells more")

    async def _patient(self, begin: Begin, wait: float) -> AsyncIterator[Answer]:
        """The answers, once no other operation is in the way; a refusal is final when *wait* seconds are over."""
        until, is_told = loop_time() + wait, False
        while True:
            try:
                async for answer in begin():
                    yield answer
            except PkgerError as error:
                is_locked = EXIT_CODES[error.reason] is Exit.LOCKED and error.metadata.get("state") != "BLOCKED"
                if self._operation or not is_locked or loop_time() >= until:
                    raise
                if not is_told:
                    self._report.note(f"waiting for another operation: {error}")
                    is_told = True
            else:
                return
            await self._interrupts.or_stop(asyncio.sleep(SECOND))

    async def _lasting(self, answers: AsyncIterator[Answer]) -> AsyncIterator[Answer]:
        """
        The answers to the last one, from whichever applier: when one dies, another one resumes the operation.

        Raises:
            Failed: No applier answered for a minute, or the time of the command is over.
            PkgerError: The operation did not begin.
        """
        until, problem = 0.0, ""
        while True:
            try:
                async for answer in answers:
                    event = answer.event
                    if event.operation and event.seq <= self._seq:
                        continue
                    self._operation, self._seq = event.operation or self._operation, event.seq or self._seq
                    if until:
                        until = 0.0
                        self._live.wait_for(self._platform)
                    yield answer
                    if event.HasField("finished"):
                        return
                if not self._operation:
                    return
            except PkgerError as error:
                if not self._operation:
                    raise
                problem = text_of(error)
            now = loop_time()
            if now >= min(until or math.inf, deadline.get()):
                break
            if not until:
                until = now + WATCHED_SECONDS
                self._live.wait_for("an applier")
                self._report.note("the applier does not answer; waiting for the one that goes on with the operation")
            await asyncio.sleep(SECOND)
            request = applier_pb2.WatchOperationRequest(operation=self._operation, after_seq=self._seq)
            watched = self._services.applier.stream(self._stub.WatchOperation, request, seconds=None)
            answers = watched
        way_on = f"`pkger operations watch {self._operation}` shows how it goes on"
        raise Failed(f"{problem}; the operation is not over: an applier will finish or undo it, {way_on}")

    async def _cancel_on_interrupt(self) -> None:
        await self._interrupts.event.wait()
        self._report.note("interrupted")
        request = applier_pb2.CancelOperationRequest(operation=self._operation)
        # An operation that is over just now needs no cancelling.
        with contextlib.suppress(PkgerError):
            answer = await self._services.applier.call(self._stub.CancelOperation, request)
            short = self._operation.rpartition("/")[2]
            self._report.note(f"the operation {cancel_effect(answer.effect, short)}")


def outcome_code(finished: operation_pb2.Finished) -> Exit:
    """The exit status for how an operation ended."""
    match finished.state:
        case operation_pb2.OPERATION_STATE_ROLLED_BACK:
            return Exit.ROLLED_BACK
        case operation_pb2.OPERATION_STATE_BLOCKED:
            return Exit.BLOCKED
        case operation_pb2.OPERATION_STATE_SUCCEEDED if not finished.leftover_count:
            return Exit.DONE
        case _:
            return Exit.ERROR
