"""``pkger plans``: list, show and delete stored plans."""

from collections.abc import Mapping, Sequence

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from rich.console import Console

from services.cli.errors import plain_errors
from services.cli.operations.plan_reading import SHOWN, WHOLE, plan_documents, stored
from services.cli.output.consoles import console
from services.cli.output.documents import print_document, print_records
from services.cli.output.enum_words import word
from services.cli.output.facts import LARGEST_PAGE, LISTED, moment, print_facts, print_more
from services.cli.output.plan_text import print_plan
from services.cli.output.tables import print_table
from services.cli.process.session import APPLYING, Session, session
from services.rpc.message_json import document_of
from services.rpc.paging import first_items
from services.views.ids import fill_in

NEEDS = ("stack",)


async def list_all(
    environ: Mapping[str, str], stack: str, place: tuple[str, str], output: str, limit: int | None
) -> None:
    """
    Print the newest plans; at most *limit* of them.

    Args:
        environ: The environment.
        stack: Name of the stack of the plans; empty: all stacks.
        place: Platform and organization of the plans; an empty one is the default, both empty: all targets.
        output: How to print.
        limit: How many; None: ``LISTED``.
    """
    request = stack_pb2.ListPlansRequest(stack_name=stack)
    if any(place):
        request.target.platform, request.target.org = place
    with plain_errors():
        async with session(NEEDS, environ) as services:
            listed = limit or LISTED
            request.page_size = min(listed, LARGEST_PAGE)
            stub = StackServiceStub(services.stack.channel)
            plans, has_more = await first_items(
                services.stack, stub.ListPlans, request, lambda page: page.plans, listed
            )
    if output == "text":
        _print_table(console(), plans)
    else:
        print_document([document_of(plan) for plan in plans], output)
    print_more(has_more)


async def show(plan_id: str, environ: Mapping[str, str], output: str, full: bool) -> None:
    """
    Print one plan, *full* or folded; as data, with the ids of the resources that its operation created.

    Raises:
        CommandFailed: There is no plan of that id.
    """
    with plain_errors():
        async with session(NEEDS, environ) as services:
            plan = await stored(services, plan_id, SHOWN if output == "text" else WHOLE)
        if output != "text" and plan.header.state == plan_pb2.PLAN_STATE_APPLIED:
            async with session(APPLYING, environ) as services:
                fill_in(plan, await _events(services, plan.header.operation_id))
    if output != "text":
        print_records(plan_documents(plan), output)
        return
    print_plan(console(), plan, full)
    header = plan.header
    facts = {
        "state": _state(header),
        "stack": header.stack_name or header.stack_id or "(none)",
        "target": f"{header.target.platform}/{header.target.org}",
        "made": moment(header.create_time),
        "expires": moment(header.expire_time) if header.state == plan_pb2.PLAN_STATE_PENDING else "",
        "operation": header.operation_id,
    }
    print_facts(console(), f"plan {header.id}", facts)


async def delete(plan_id: str, environ: Mapping[str, str]) -> None:
    """
    Delete a plan that no operation has run.

    Raises:
        CommandFailed: There is no plan of that id, or an operation has run it.
    """
    with plain_errors():
        async with session(NEEDS, environ) as services:
            request = stack_pb2.DeletePlanRequest(plan_id=plan_id)
            await services.stack.call(StackServiceStub(services.stack.channel).DeletePlan, request)


async def _events(services: Session, operation_id: str) -> list[operation_pb2.OperationEvent]:
    """All events of an operation that has ended."""
    request = applier_pb2.WatchOperationRequest(operation_id=operation_id)
    stub = ApplierServiceStub(services.applier.channel)
    return [answer async for answer in services.applier.stream(stub.WatchOperation, request)]


def _state(plan: plan_pb2.Plan) -> str:
    return word(plan_pb2.PlanState, "PLAN_STATE", plan.state)


def _print_table(out: Console, plans: Sequence[plan_pb2.Plan]) -> None:
    rows = [
        (
            plan.id,
            _state(plan),
            plan.stack_name or plan.stack_id or "(none)",
            f"{plan.target.platform}/{plan.target.org}",
            moment(plan.create_time),
        )
        for plan in plans
    ]
    print_table(out, ("ID", "STATE", "STACK", "TARGET", "MADE"), rows)
