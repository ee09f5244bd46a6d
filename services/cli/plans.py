"""``pkger plans``: what was planned and stored."""

from collections.abc import Mapping, Sequence

from pkger.model.v1 import plan_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.errors import told_plainly
from services.cli.names import full_name, word
from services.cli.plan_text import print_plan
from services.cli.session import Session, session
from services.cli.show import LISTED, console, moment, plan_document, print_json, print_more
from services.rpc.plan_parts import JoinedPlan, View

NEEDS = ("stack",)

SHOWN = (plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_RECORD)
"""What is printed of a plan."""

WHOLE = (*SHOWN, plan_pb2.PLAN_VIEW_SUMMARY)
"""What ``-o json`` tells of a plan."""


async def list_all(environ: Mapping[str, str], stack: str, output: str) -> None:
    """Print the newest plans, or the newest for stacks of one name."""
    with told_plainly():
        async with session(NEEDS, environ) as services:
            plans, has_more = await _newest(services, stack)
    if output == "json":
        print_json(console(), [_listing_document(plan) for plan in plans])
    else:
        _print_table(console(), plans)
        print_more(console(), has_more)


async def _newest(services: Session, stack: str) -> tuple[list[plan_pb2.Plan], bool]:
    """The newest plans, and whether there are older ones; a page may have fewer than it is asked for."""
    stub, request = StackServiceStub(services.stack.channel), stack_pb2.ListPlansRequest(stack_name=stack)
    plans: list[plan_pb2.Plan] = []
    while True:
        request.page_size = LISTED - len(plans)
        page = await services.stack.call(stub.ListPlans, request)
        plans += page.plans
        request.page_token = page.next_page_token
        if len(plans) >= LISTED or not request.page_token:
            return plans, bool(request.page_token)


async def show(name: str, environ: Mapping[str, str], output: str, full: bool) -> None:
    """
    Print one plan, *full* or folded.

    Raises:
        Failed: There is none of that name.
    """
    with told_plainly():
        async with session(NEEDS, environ) as services:
            plan = await stored(services, name, WHOLE if output == "json" else SHOWN)
    if output == "json":
        print_json(console(), plan_document(plan))
        return
    print_plan(console(), plan, full)
    _print_table(console(), [plan.header])


async def stored(services: Session, name: str, view: Sequence[View]) -> JoinedPlan:
    """
    The stored plan of that name, with or without its prefix, as far as *view* says.

    Raises:
        PlanNotFound: There is none.
    """
    stub = StackServiceStub(services.stack.channel)
    request = stack_pb2.GetPlanRequest(plan=full_name("plans", name), view=view)
    plan = JoinedPlan()
    async for answer in services.stack.stream(stub.GetPlan, request):
        plan.add(answer.part)
    return plan


def _state(plan: plan_pb2.Plan) -> str:
    return word(plan_pb2.PlanState, "PLAN_STATE", plan.state)


def _print_table(out: Console, plans: Sequence[plan_pb2.Plan]) -> None:
    table = Table("NAME", "STATE", "STACK", "TARGET", "MADE", "EXPIRES", "OPERATION", box=None, pad_edge=False)
    for plan in plans:
        row = (
            plan.name,
            _state(plan),
            plan.stack_name or plan.stack_id or "(none)",
            f"{plan.target.platform}/{plan.target.org}",
            moment(plan.create_time),
            moment(plan.expire_time) if plan.state == plan_pb2.PLAN_STATE_PENDING else "",
            plan.operation,
        )
        table.add_row(*map(Text, row))
    out.print(table)


def _listing_document(plan: plan_pb2.Plan) -> dict[str, object]:
    return {
        "name": plan.name,
        "state": _state(plan),
        "stack_id": plan.stack_id,
        "stack_name": plan.stack_name,
        "platform": plan.target.platform,
        "org": plan.target.org,
        "digest": plan.digest,
        "createdAt": plan.create_time.ToJsonString(),
        "expiresAt": plan.expire_time.ToJsonString() if plan.HasField("expire_time") else None,
        "operation": plan.operation,
    }
