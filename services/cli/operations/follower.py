"""Follows an operation to its end: as text for users, or event by event as data."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2
from rich.text import Text

from services.cli.errors import CommandFailed, InvalidPackageError, text_of
from services.cli.exit_codes import Exit
from services.cli.operations.progress import Progress, cancel_effect
from services.cli.output.consoles import console, progress_console
from services.cli.output.documents import print_records
from services.cli.output.plan_text import print_plan
from services.cli.output.status_line import SECOND, StatusLine
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session
from services.core.errors import OperationNotFound, PkgerError, ServiceUnavailable
from services.rpc.call import deadline, loop_time
from services.rpc.convert.objects import violation_from_pb
from services.rpc.message_json import document_of
from services.rpc.plan_parts import JoinedPlan

WATCHED_SECONDS = 60.0
"""How long to ask appliers about an operation after its applier stopped answering."""

Events = AsyncIterator[operation_pb2.OperationEvent]
Begin = Callable[[], Events]
ReadPlan = Callable[[str], Awaitable[JoinedPlan]]


class EventReport(Protocol):
    """Reports an operation."""

    def plan(self, plan: JoinedPlan) -> None:
        """Report the plan that the operation runs."""

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Report an event."""

    def note(self, text: str) -> None:
        """Report a remark for the user that is not an event."""


class DataReport:
    """An operation as data: its events, each as it arrives."""

    def __init__(self, output: str) -> None:
        self._output = output

    def plan(self, plan: JoinedPlan) -> None:
        """Print nothing: the first event names the plan."""

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Print the event."""
        print_records([document_of(event)], self._output)

    def note(self, text: str) -> None:
        """Print on standard error, as standard output is for data."""
        console(stderr=True).print(Text(text))


class TextReport:
    """An operation as text for users."""

    def __init__(self, progress: Progress, status: StatusLine, full: bool) -> None:
        self._progress, self._status, self._full = progress, status, full

    def plan(self, plan: JoinedPlan) -> None:
        """Print the plan."""
        with self._status.printing():
            print_plan(progress_console(), plan, self._full)

    def event(self, event: operation_pb2.OperationEvent) -> None:
        """Print the event, as ``Progress`` shows it."""
        with self._status.printing():
            self._progress.show(event)

    def note(self, text: str) -> None:
        """Print the remark between the lines of progress."""
        with self._status.printing():
            progress_console().print(Text(text, "bold red"))


class OperationFollower:
    """Follows one operation."""

    def __init__(
        self, services: Session, interrupts: Interrupts, status: StatusLine, report: EventReport, progress: Progress
    ) -> None:
        """
        Args:
            services: Connections to the services.
            interrupts: An interrupt cancels the operation, or ends the wait for another one.
            status: Shows the progress in one line.
            report: Receives the plan and the events.
            progress: The state of the steps.
        """
        self._services, self._interrupts = services, interrupts
        self._status, self._report, self._progress = status, report, progress
        self._stub = ApplierServiceStub(services.applier.channel)
        self._operation, self._seq = "", 0
        self._platform = "the services"

    async def run(
        self, begin: Begin, read_plan: ReadPlan, wait: float, shown: JoinedPlan | None
    ) -> tuple[JoinedPlan, operation_pb2.Finished]:
        """
        Start an operation and follow it to its end; an interrupt cancels it, and its end is still awaited.

        Args:
            begin: Starts it.
            read_plan: Reads a plan by its id.
            wait: Seconds to wait for another operation of the stack to end.
            shown: Its plan, if that is already shown; None: the plan is read and shown.

        Returns:
            Its plan and its last event.

        Raises:
            CommandFailed: It did not start, or its end is unknown.
            InvalidPackageError: The package breaks rules.
        """
        plan, violations = shown or JoinedPlan(), list[object_pb2.Violation]()
        cancelling: asyncio.Task[None] | None = None
        try:
            async for event in self._resumed(self._retried(begin, wait)):
                violations += event.package_invalid.violations
                # The first event has the id of the operation, which can be cancelled while its plan is made.
                cancelling = cancelling or asyncio.create_task(self._cancel_on_interrupt())
                if event.HasField("accepted"):
                    if not shown:
                        plan = await self._read(event.accepted.plan_id, read_plan)
                        self._report.plan(plan)
                    self._begin_steps(plan)
                self._report.event(event)
                if event.HasField("finished"):
                    return plan, event.finished
        finally:
            if cancelling:
                cancelling.cancel()
                await asyncio.gather(cancelling, return_exceptions=True)
        if violations:
            raise InvalidPackageError(list(map(violation_from_pb, violations)))
        raise CommandFailed(
            "the applier ended the stream before the operation ended; `pkger plan` shows what is left to do"
        )

    async def _read(self, plan: str, read_plan: ReadPlan) -> JoinedPlan:
        """
        The plan of the operation that has begun.

        Raises:
            CommandFailed: It cannot be read.
        """
        try:
            return await read_plan(plan)
        except PkgerError as error:
            raise CommandFailed(f"{text_of(error)}; the operation continues: {self._hint}") from error

    @property
    def _hint(self) -> str:
        return f"`pkger operations watch {self._operation}` shows its progress"

    def _begin_steps(self, plan: JoinedPlan) -> None:
        self._progress.begin(plan.steps)
        if platform := plan.header.target.platform:
            self._platform = f"platform {platform}"
        self._status.show(self._progress.summary, self._platform)

    async def watch(self, begin: Begin, read_plan: ReadPlan) -> operation_pb2.Finished:
        """
        Follow an operation that already runs; the caller handles interrupts.

        Raises:
            CommandFailed: Its end is unknown.
            PkgerError: It cannot be watched.
        """
        finished: operation_pb2.Finished | None = None
        async for event in self._resumed(begin()):
            if event.HasField("accepted"):
                self._begin_steps(await read_plan(event.accepted.plan_id))
            self._report.event(event)
            finished = event.finished if event.HasField("finished") else finished
        if finished:
            return finished
        raise CommandFailed(
            "the applier ended the stream before the operation ended; `pkger operations show` shows its state"
        )

    async def run_actions(self, operation_id: str, left: str) -> operation_pb2.Finished:
        """
        Follow an action set to its end; an interrupt cancels it, and its end is still awaited.

        Args:
            operation_id: The id of its operation.
            left: What to say when a second interrupt ends the wait.

        Raises:
            CommandFailed: Its end is unknown, or it was interrupted twice.
            PkgerError: It cannot be watched.
        """
        self._operation = operation_id
        cancelling = asyncio.create_task(self._cancel_on_interrupt())
        request = applier_pb2.WatchOperationRequest(operation_id=operation_id)
        try:
            watching = self.watch(
                lambda: self._services.applier.stream(self._stub.WatchOperation, request, seconds=math.inf), _no_plan
            )
            return await self._interrupts.or_leave(watching, left)
        finally:
            cancelling.cancel()
            await asyncio.gather(cancelling, return_exceptions=True)

    async def _retried(self, begin: Begin, wait: float) -> Events:
        """The events of *begin*, which is retried for *wait* seconds while another operation holds the stack."""
        until, is_reported = loop_time() + wait, False
        while True:
            try:
                async for event in begin():
                    yield event
            except PkgerError as error:
                if self._operation or error.exit_status != "LOCKED" or loop_time() >= until:
                    raise
                if not is_reported:
                    self._report.note(f"waiting for another operation: {error}")
                    is_reported = True
            else:
                return
            await self._interrupts.or_stop(asyncio.sleep(SECOND))

    async def _resumed(self, events: Events) -> Events:
        """
        The events up to the last event, from any applier: when one dies, another one resumes the operation.

        Raises:
            CommandFailed: No applier answered for ``WATCHED_SECONDS``, or the deadline of the command has passed.
            PkgerError: The operation did not start.
        """
        until, problem, has_ended = 0.0, "", False
        broken: PkgerError | None = None
        while True:
            try:
                async for event in events:
                    if 0 < event.seq <= self._seq:
                        continue
                    self._operation, self._seq = event.operation_id, event.seq or self._seq
                    if until:
                        until = 0.0
                        self._status.wait_for(self._platform)
                    yield event
                    has_ended = event.HasField("finished")
                    # A BLOCKED operation that was recovered has further events.
                    if has_ended and event.finished.state != operation_pb2.OPERATION_STATE_BLOCKED:
                        return
                if has_ended or not (self._seq or broken):
                    return
            except PkgerError as error:
                if has_ended:
                    return
                if not self._operation or not (self._seq or _is_of_applier(error)):
                    raise
                broken, problem = broken or error, text_of(error)
            else:
                if broken and not self._seq:
                    raise await self._without_plan()
            now = loop_time()
            if now >= min(until or math.inf, deadline.get()):
                break
            if not until:
                until = now + WATCHED_SECONDS
                self._status.wait_for("an applier")
                self._report.note("the stream of the applier broke; waiting for an applier that resumes the operation")
            await asyncio.sleep(SECOND)
            request = applier_pb2.WatchOperationRequest(operation_id=self._operation, after_seq=self._seq)
            events = self._services.applier.stream(self._stub.WatchOperation, request, seconds=math.inf)
        rest = f"the operation has not ended: an applier will finish it or roll it back; {self._hint}"
        raise CommandFailed(f"{problem}; {rest}")

    async def _without_plan(self) -> CommandFailed:
        """The error for an operation that ended before it had a plan, when its applier died."""
        request = applier_pb2.GetOperationRequest(operation_id=self._operation)
        operation = (await self._services.applier.call(self._stub.GetOperation, request)).operation
        problem = f"operation {operation.id} ended before it had a plan: {operation.cause}"
        return CommandFailed(f"{problem}; nothing was written, apply again")

    async def _cancel_on_interrupt(self) -> None:
        await self._interrupts.event.wait()
        self._report.note("interrupted")
        request = applier_pb2.CancelOperationRequest(operation_id=self._operation)
        try:
            answer = await self._services.applier.call(self._stub.CancelOperation, request)
        except OperationNotFound:
            return  # It has just ended.
        except PkgerError as error:
            self._report.note(f"the operation was not cancelled: {text_of(error)}")
            return
        self._report.note(f"the operation {cancel_effect(answer.effect, self._operation)}")


async def _no_plan(_plan: str) -> JoinedPlan:
    """The plan of an action set, which has none."""
    return JoinedPlan()


def _is_of_applier(error: PkgerError) -> bool:
    """Whether the applier did not answer, so the operation may continue; other errors end it before it has a plan."""
    return isinstance(error, ServiceUnavailable) and error.metadata.get("service") == "applier"


def outcome_code(finished: operation_pb2.Finished) -> Exit:
    """The exit status for the end of an operation."""
    match finished.state:
        case operation_pb2.OPERATION_STATE_ROLLED_BACK:
            return Exit.ROLLED_BACK
        case operation_pb2.OPERATION_STATE_BLOCKED:
            return Exit.BLOCKED
        case operation_pb2.OPERATION_STATE_SUCCEEDED if not finished.leftover_count:
            return Exit.DONE
        case _:
            return Exit.ERROR
