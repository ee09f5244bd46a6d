"""``pkger operations``: list, show, watch, recover and cancel operations."""

import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from rich.console import Console
from rich.text import Text

from services.cli.errors import CommandFailed, plain_errors
from services.cli.operations.blocked_steps import print_blocked
from services.cli.operations.follower import DataReport, EventReport, OperationFollower, TextReport, outcome_code
from services.cli.operations.plan_reading import stored
from services.cli.operations.progress import Progress, cancel_effect, left_over
from services.cli.output.consoles import console, progress_console
from services.cli.output.documents import print_document
from services.cli.output.enum_words import word
from services.cli.output.facts import LARGEST_PAGE, LISTED, moment, print_facts, print_more
from services.cli.output.interaction import Interaction
from services.cli.output.status_line import StatusLine
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, Session, session
from services.core.errors import OperationNotFound
from services.rpc.message_json import document_of
from services.rpc.paging import first_items
from services.rpc.plan_parts import JoinedPlan

DECISIONS = {
    word(operation_pb2.Decision, "DECISION", number): number for number in operation_pb2.Decision.values() if number
}
"""The decisions for a blocked step, by their texts."""

_UNFINISHED = (
    operation_pb2.OPERATION_STATE_PREPARING,
    operation_pb2.OPERATION_STATE_APPLYING,
    operation_pb2.OPERATION_STATE_ROLLING_BACK,
    operation_pb2.OPERATION_STATE_BLOCKED,
)


async def list_all(
    environ: Mapping[str, str], unfinished: bool, place: tuple[str, str], output: str, limit: int | None
) -> None:
    """
    Print the newest operations; at most *limit* of them.

    Args:
        environ: The environment.
        unfinished: Whether to list only unfinished operations.
        place: Platform and organization of the operations; an empty one is the default, both empty: all targets.
        output: How to print.
        limit: How many; None: ``LISTED``.
    """
    listed = limit or LISTED
    request = applier_pb2.ListOperationsRequest(
        states=_UNFINISHED if unfinished else (), page_size=min(listed, LARGEST_PAGE)
    )
    if any(place):
        request.target.platform, request.target.org = place
    with plain_errors():
        async with session(APPLYING, environ) as services:
            stub = ApplierServiceStub(services.applier.channel)
            operations, has_more = await first_items(
                services.applier, stub.ListOperations, request, lambda page: page.operations, listed
            )
    if output == "text":
        _print_table(console(), operations)
    else:
        print_document([document_of(operation) for operation in operations], output)
    print_more(has_more)


async def show(operation_id: str, environ: Mapping[str, str], output: str) -> None:
    """Print one operation."""
    with plain_errors():
        async with session(APPLYING, environ) as services:
            request = applier_pb2.GetOperationRequest(operation_id=operation_id)
            operation = (await services.applier.call(_stub(services).GetOperation, request)).operation
    if output != "text":
        print_document(document_of(operation), output)
        return
    _print_facts(console(), operation)
    if operation.cause:
        console().print(Text(operation.cause))
    if operation.action_set:
        console().print(Text(f"`pkger actionsets show {operation.action_set}` shows its phases"))
    elif operation.state == operation_pb2.OPERATION_STATE_SUCCEEDED and operation.done_count < operation.step_count:
        console().print(Text(left_over(operation.step_count - operation.done_count)))
    if operation.state == operation_pb2.OPERATION_STATE_BLOCKED:
        print_blocked(console(), operation)


async def watch(operation_id: str, environ: Mapping[str, str], interaction: Interaction) -> None:
    """
    Print the events of an operation, from the first to the last.

    Raises:
        CommandFailed: It did not succeed, or left steps to do.
    """

    async def typed(_services: Session) -> str:
        return operation_id

    await watch_one(typed, _interrupted(operation_id), environ, interaction)


async def watch_one(
    id_of: Callable[[Session], Coroutine[Any, Any, str]],
    left: str,
    environ: Mapping[str, str],
    interaction: Interaction,
) -> None:
    """
    Print the events of an operation, from the first to the last.

    Args:
        id_of: Finds its id.
        left: What to say when an interrupt ends the watch.
        environ: The environment.
        interaction: How it is shown.

    Raises:
        CommandFailed: It did not succeed, or left steps to do.
    """
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors():
            async with session(APPLYING, environ) as services:
                operation_id = await interrupts.or_stop(id_of(services))
                request = applier_pb2.WatchOperationRequest(operation_id=operation_id)
                progress = Progress()
                following = _following(services, interrupts, status, progress, interaction)
                work = following.watch(
                    lambda: services.applier.stream(_stub(services).WatchOperation, request, seconds=math.inf),
                    lambda plan: _steps(services, plan),
                )
                _print_end(progress, await interrupts.or_stop(work, left), interaction)


async def recover(
    operation_id: str, decisions: Mapping[int, tuple[str, str]], environ: Mapping[str, str], interaction: Interaction
) -> None:
    """
    Recover a blocked operation, and print its events.

    Args:
        operation_id: Its id.
        decisions: A key of ``DECISIONS``, and the id of the resource for "adopt", by step number; other steps are
            retried.
        environ: The environment.
        interaction: How it is shown.

    Raises:
        CommandFailed: It is blocked again, or rolled back.
    """
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors():
            async with session(APPLYING, environ) as services:
                blocked = applier_pb2.GetOperationRequest(operation_id=operation_id)
                answer = await interrupts.or_stop(services.applier.call(_stub(services).GetOperation, blocked))
                joined_plan = await interrupts.or_stop(_steps(services, answer.operation.plan_id))
                request = applier_pb2.RecoverOperationRequest(
                    operation_id=operation_id,
                    decisions=[
                        applier_pb2.StepDecision(step=step, decision=DECISIONS[decision], resource_id=resource_id)
                        for step, (decision, resource_id) in sorted(decisions.items())
                    ],
                )
                progress = Progress(joined_plan.steps)
                if answer.operation.state == operation_pb2.OPERATION_STATE_BLOCKED:
                    await interrupts.or_stop(_recall(services, progress, operation_id))
                following = _following(services, interrupts, status, progress, interaction)
                work = following.watch(
                    lambda: services.applier.stream(_stub(services).RecoverOperation, request, seconds=math.inf),
                    lambda plan: _steps(services, plan),
                )
                _print_end(progress, await interrupts.or_stop(work, _interrupted(operation_id)), interaction)


async def _recall(services: Session, progress: Progress, operation_id: str) -> None:
    """Let *progress* know the events of a blocked operation so far: an earlier decision may have given up an undo."""
    request = applier_pb2.WatchOperationRequest(operation_id=operation_id)
    async for event in services.applier.stream(_stub(services).WatchOperation, request):
        progress.recall(event)


def _following(
    services: Session, interrupts: Interrupts, status: StatusLine, progress: Progress, interaction: Interaction
) -> OperationFollower:
    report: EventReport = (
        TextReport(progress, status, interaction.full)
        if interaction.output == "text"
        else DataReport(interaction.output)
    )
    status.show(progress.summary, "the applier")
    return OperationFollower(services, interrupts, status, report, progress)


def _print_end(progress: Progress, finished: operation_pb2.Finished, interaction: Interaction) -> None:
    if progress.actions.name:
        progress.actions.refuse_failure(finished)
        return
    state = _word(finished.state)
    if finished.leftover_count or finished.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
        end = f"{state}: {progress.end(finished)}"
        if interaction.output == "text":
            progress_console().print(Text(end, "bold red"))
        raise CommandFailed(progress.failure(finished, end), outcome_code(finished))
    if interaction.output == "text":
        progress_console().print(Text(state, "bold"))


async def cancel(operation_id: str, environ: Mapping[str, str], output: str) -> None:
    """
    Cancel an operation, and print the effect.

    Raises:
        CommandFailed: It has ended, or is past its seal.
    """
    with plain_errors():
        async with session(APPLYING, environ) as services:
            request = applier_pb2.CancelOperationRequest(operation_id=operation_id)
            try:
                answer = await services.applier.call(_stub(services).CancelOperation, request)
            except OperationNotFound:
                state_request = applier_pb2.GetOperationRequest(operation_id=operation_id)
                finished = (await services.applier.call(_stub(services).GetOperation, state_request)).operation
                raise CommandFailed(f"operation {operation_id} has already ended: {_word(finished.state)}") from None
    effect = f"operation {operation_id} {cancel_effect(answer.effect, operation_id)}"
    if answer.effect == operation_pb2.CANCEL_EFFECT_SEALED:
        raise CommandFailed(effect)
    if output != "text":
        print_document(document_of(answer), output)
    else:
        console().print(Text(f"{effect}; `pkger operations watch {operation_id}` shows it"))


def _interrupted(operation_id: str) -> str:
    return (
        f"interrupted; the operation continues: `pkger operations watch {operation_id}` shows it,"
        f" `pkger operations cancel {operation_id}` rolls it back"
    )


async def _steps(services: Session, plan: str) -> JoinedPlan:
    """The plan of that id with its steps; an empty one for an operation without a plan."""
    return await stored(services, plan, [plan_pb2.PLAN_VIEW_STEPS]) if plan else JoinedPlan()


def _stub(services: Session) -> ApplierServiceStub:
    return ApplierServiceStub(services.applier.channel)


def _word(state: operation_pb2.OperationState.ValueType) -> str:
    return word(operation_pb2.OperationState, "OPERATION_STATE", state)


def _print_table(out: Console, operations: Sequence[operation_pb2.Operation]) -> None:
    rows = [
        (
            operation.id,
            word(plan_pb2.OperationKind, "OPERATION_KIND", operation.kind),
            _word(operation.state),
            _subject(operation),
            f"{operation.done_count}/{operation.step_count}",
            moment(operation.create_time),
        )
        for operation in operations
    ]
    print_table(out, ("ID", "KIND", "STATE", "STACK", "STEPS", "BEGAN"), rows)


def _subject(operation: operation_pb2.Operation) -> str:
    """What an operation works on: its stack, or its action set."""
    if operation.action_set:
        return f"action set {operation.action_set}"
    return operation.stack_name or operation.stack_id or "(none)"


def _print_facts(out: Console, operation: operation_pb2.Operation) -> None:
    print_facts(
        out,
        f"operation {operation.id}",
        {
            "kind": word(plan_pb2.OperationKind, "OPERATION_KIND", operation.kind),
            "state": _word(operation.state),
            "action set": operation.action_set,
            "parent": operation.parent,
            "stack": "" if operation.action_set else operation.stack_name or operation.stack_id or "(none)",
            "target": f"{operation.target.platform}/{operation.target.org}",
            "phases" if operation.action_set else "steps": f"{operation.done_count} of {operation.step_count}",
            "began": moment(operation.create_time),
            "ended": moment(operation.end_time) if operation.HasField("end_time") else "",
            "plan": operation.plan_id,
        },
    )
