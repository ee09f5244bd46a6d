"""``pkger operations``: what appliers did and do."""

from collections.abc import AsyncIterator, Mapping, Sequence

from google.protobuf.json_format import MessageToDict
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.errors import Failed, told_plainly
from services.cli.interrupts import Interrupts
from services.cli.names import full_name, word
from services.cli.packages import APPLYING
from services.cli.plans import stored
from services.cli.progress import Progress, cancel_effect, left_over
from services.cli.session import Session, session
from services.cli.show import LISTED, console, moment, print_blocked, print_json, print_more
from services.core.errors import OperationNotFound

DECISIONS = {
    word(operation_pb2.Decision, "DECISION", number): number for number in operation_pb2.Decision.values() if number
}
"""What can be decided for a blocked step, by the word for it."""

_UNFINISHED = (
    operation_pb2.OPERATION_STATE_PREPARING,
    operation_pb2.OPERATION_STATE_APPLYING,
    operation_pb2.OPERATION_STATE_ROLLING_BACK,
    operation_pb2.OPERATION_STATE_BLOCKED,
)


async def list_all(environ: Mapping[str, str], unfinished: bool, output: str) -> None:
    """Print the newest operations, or those that are not finished."""
    with told_plainly():
        async with session(APPLYING, environ) as services:
            operations, has_more = await _newest(services, _UNFINISHED if unfinished else ())
    if output == "json":
        print_json(console(), [_document(operation) for operation in operations])
    else:
        _print_table(console(), operations)
        print_more(console(), has_more)


async def _newest(
    services: Session, states: Sequence[operation_pb2.OperationState.ValueType]
) -> tuple[list[operation_pb2.Operation], bool]:
    """The newest operations, and whether there are older ones; a page may have fewer than it is asked for."""
    request = applier_pb2.ListOperationsRequest(states=states)
    operations: list[operation_pb2.Operation] = []
    while True:
        request.page_size = LISTED - len(operations)
        page = await services.applier.call(_stub(services).ListOperations, request)
        operations += page.operations
        request.page_token = page.next_page_token
        if len(operations) >= LISTED or not request.page_token:
            return operations, bool(request.page_token)


async def show(name: str, environ: Mapping[str, str], output: str) -> None:
    """Print one operation."""
    with told_plainly():
        async with session(APPLYING, environ) as services:
            request = applier_pb2.GetOperationRequest(operation=_full(name))
            operation = (await services.applier.call(_stub(services).GetOperation, request)).operation
    if output == "json":
        print_json(console(), _document(operation))
        return
    _print_table(console(), [operation])
    if operation.cause:
        console().print(Text(operation.cause))
    if operation.state == operation_pb2.OPERATION_STATE_SUCCEEDED and operation.done_count < operation.step_count:
        console().print(Text(left_over(operation.step_count - operation.done_count)))
    if operation.state == operation_pb2.OPERATION_STATE_BLOCKED:
        print_blocked(console(), operation)


async def watch(name: str, environ: Mapping[str, str]) -> None:
    """
    Print what happens in an operation, from its beginning to its end.

    Raises:
        Failed: It did not do all.
    """
    with Interrupts() as interrupts, told_plainly():
        async with session(APPLYING, environ) as services:
            request = applier_pb2.WatchOperationRequest(operation=_full(name))
            events = services.applier.stream(_stub(services).WatchOperation, request, seconds=None)
            await interrupts.or_stop(_follow(services, events), _goes_on(name))


async def recover(name: str, decisions: Mapping[int, tuple[str, str]], environ: Mapping[str, str]) -> None:
    """
    Carry on an operation that is blocked, and print what happens.

    Args:
        name: Its name.
        decisions: A word of ``DECISIONS``, and the id of the resource for "adopt", by step number; the other steps are
            tried again.
        environ: The environment.

    Raises:
        Failed: It is still blocked, or took back what it did.
    """
    with Interrupts() as interrupts, told_plainly():
        async with session(APPLYING, environ) as services:
            blocked = applier_pb2.GetOperationRequest(operation=_full(name))
            answer = await interrupts.or_stop(services.applier.call(_stub(services).GetOperation, blocked))
            steps = await interrupts.or_stop(_steps(services, answer.operation.plan))
            request = applier_pb2.RecoverOperationRequest(
                operation=_full(name),
                decisions=[
                    applier_pb2.StepDecision(step=step, decision=DECISIONS[way], resource_id=resource_id)
                    for step, (way, resource_id) in sorted(decisions.items())
                ],
            )
            carried_on = services.applier.stream(_stub(services).RecoverOperation, request, seconds=None)
            await interrupts.or_stop(_follow(services, carried_on, steps), _goes_on(name))


async def cancel(name: str, environ: Mapping[str, str]) -> None:
    """
    Ask an operation to roll back, and print what happens to it.

    Raises:
        Failed: It cannot roll back any more.
    """
    with told_plainly():
        async with session(APPLYING, environ) as services:
            request = applier_pb2.CancelOperationRequest(operation=_full(name))
            try:
                answer = await services.applier.call(_stub(services).CancelOperation, request)
            except OperationNotFound:
                wanted = applier_pb2.GetOperationRequest(operation=_full(name))
                finished = (await services.applier.call(_stub(services).GetOperation, wanted)).operation
                raise Failed(f"{_full(name)} is over: {_word(finished.state)}") from None
    told = f"{_full(name)} {cancel_effect(answer.effect, name)}"
    if answer.effect == operation_pb2.CANCEL_EFFECT_SEALED:
        raise Failed(told)
    console().print(Text(f"{told}; `pkger operations watch {name}` shows it"))


def _goes_on(name: str) -> str:
    return (
        f"interrupted; the operation goes on: `pkger operations watch {name}` shows it,"
        f" `pkger operations cancel {name}` makes it roll back"
    )


Answers = AsyncIterator[applier_pb2.WatchOperationResponse | applier_pb2.RecoverOperationResponse]


async def _follow(services: Session, answers: Answers, steps: Sequence[plan_pb2.Step] = ()) -> None:
    progress = Progress(steps)
    async for answer in answers:
        if answer.event.HasField("accepted"):
            progress.steps = await _steps(services, answer.event.accepted.plan)
        progress.show(answer.event)
        if answer.event.HasField("finished"):
            finished = answer.event.finished
            state = _word(finished.state)
            if finished.leftover_count or finished.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
                end = f"{state}: {progress.end(finished)}"
                console().print(Text(end, "bold red"))
                raise Failed(f"{progress.cause(finished)}; {end}")
            console().print(Text(state, "bold"))


async def _steps(services: Session, plan: str) -> Sequence[plan_pb2.Step]:
    """The steps of the plan of that name; none while an operation has no plan."""
    return (await stored(services, plan, [plan_pb2.PLAN_VIEW_STEPS])).steps if plan else ()


def _stub(services: Session) -> ApplierServiceStub:
    return ApplierServiceStub(services.applier.channel)


def _full(name: str) -> str:
    return full_name("operations", name)


def _word(state: operation_pb2.OperationState.ValueType) -> str:
    return word(operation_pb2.OperationState, "OPERATION_STATE", state)


def _print_table(out: Console, operations: list[operation_pb2.Operation]) -> None:
    table = Table("NAME", "KIND", "STATE", "STACK", "TARGET", "STEPS", "BEGAN", box=None, pad_edge=False)
    for operation in operations:
        row = (
            operation.name,
            word(plan_pb2.OperationKind, "OPERATION_KIND", operation.kind),
            _word(operation.state),
            operation.stack_name or operation.stack_id or "(none)",
            f"{operation.target.platform}/{operation.target.org}",
            f"{operation.done_count} of {operation.step_count}",
            moment(operation.create_time),
        )
        table.add_row(*map(Text, row))
    out.print(table)


def _document(operation: operation_pb2.Operation) -> dict[str, object]:
    return MessageToDict(operation, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
