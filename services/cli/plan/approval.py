"""Makes plans that a user has to approve: asks for missing values, and shows the plan."""

from dataclasses import dataclass, field

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.console import Console

from services.cli.errors import CommandFailed, InvalidPackageError
from services.cli.output.plan_text import print_plan
from services.cli.output.status_line import StatusLine
from services.cli.packages.sources import sendable
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import Session
from services.cli.process.terminal import Terminal
from services.core.model import Target
from services.core.text_lists import deletes_text
from services.rpc.convert.objects import target_from_pb, violation_from_pb
from services.rpc.missing_values import refuse_deletes, refuse_missing_values
from services.rpc.plan_parts import JoinedPlan, joined

_LISTED_ORGS = 10
"""How many organizations a warning names."""


@dataclass(frozen=True, slots=True)
class Approval:
    """
    How a user is asked to approve a plan.

    Attributes:
        terminal: Where to ask; None: there is no terminal.
        interrupts: Ends a question.
        status: Shows progress while a plan is made.
        out: Where plans are shown; None: nowhere.
        full: Whether plans are shown uncut.
        options: The conditions under which the plan may run.
    """

    terminal: Terminal | None
    interrupts: Interrupts
    status: StatusLine
    out: Console | None
    full: bool
    options: applier_pb2.RunOptions

    async def approve(self, plan: JoinedPlan) -> None:
        """
        Show a plan and, if it has steps, ask whether to apply it; without a terminal, refuse what needs an answer.

        Deletions and losses of data need one, and duplicates from the second one on.

        Raises:
            CommandFailed: The user refuses, or there is no terminal and the plan needs an answer.
            ValuesMissing: Values are missing, so the plan cannot be applied.
            DeletesExceeded: The plan deletes too much.
        """
        refuse_missing_values(plan.header, plan.remarks, self.options)
        if self.out:
            print_plan(self.out, plan, self.full)
        refuse_deletes(plan.header, self.options)
        if not plan.steps and plan.header.kind != plan_pb2.OPERATION_KIND_UNINSTALL:
            return
        if self.terminal:
            if not await self.terminal.confirm("Apply this plan?", self.interrupts):
                raise CommandFailed("not applied; nothing was written")
        elif text := _needs_answer(plan.header):
            raise CommandFailed(
                f"the plan {text}, and there is no terminal to ask at; nothing was written."
                " --yes applies it without asking"
            )


def _needs_answer(plan: plan_pb2.Plan) -> str:
    """
    Why the plan needs an answer or ``--yes``, as the end of a sentence that begins with "the plan"; empty: it needs
    none.
    """
    deletes = deletes_text(plan.counts.deletes, plan.counts.losses)
    duplicates = f"creates {plan.duplicate_count:,} resources beside others of the same kind and name"
    return " and ".join([*([deletes] if deletes else []), *([duplicates] if plan.duplicate_count > 1 else [])])


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """
    A plan that is approved.

    Attributes:
        plan: The plan.
        secrets: Values of secrets that the user typed for it, by key; not in ``repr``.
    """

    plan: JoinedPlan
    secrets: dict[str, str] = field(repr=False)


async def make_plan(services: Session, request: planner_pb2.CreatePlanRequest) -> JoinedPlan:
    """
    Ask the planner for the plan of *request*.

    Raises:
        InvalidPackageError: The package breaks rules.
        PkgerError: The planner makes no plan.
    """
    stub = PlannerServiceStub(services.planner.channel)
    answers = services.planner.stream(stub.CreatePlan, request)
    plan_or_violations = await joined(answers)
    if not isinstance(plan_or_violations, JoinedPlan):
        raise InvalidPackageError(list(map(violation_from_pb, plan_or_violations)))
    return plan_or_violations


def waited_for(request: planner_pb2.CreatePlanRequest) -> str:
    """What a plan may wait for: the platform, and the servers that sources are fetched from."""
    target = _target(request)
    platform = f"platform {target.platform}" if target else "its platform"
    if request.WhichOneof("desired") not in (None, "package"):
        return platform
    if not request.package.sources:
        return f"{platform} or the URLs of the stack"
    fetched = [source.url for source in request.package.sources if source.url]
    return " or ".join([platform, *fetched]) if len(fetched) < 3 else f"{platform} or {len(fetched)} addresses"


def planning(request: planner_pb2.CreatePlanRequest) -> str:
    """What the planner does, for a status line."""
    target = _target(request)
    return f"planning for {target.platform}/{target.org}" if target else f"planning for stack {request.stack.id}"


def _target(request: planner_pb2.CreatePlanRequest) -> Target | None:
    """The target of a plan; None: the request names a stack by id, and the stack has its own target."""
    if request.stack.id:
        return None
    return target_from_pb(request.stack.target if request.HasField("stack") else request.target)


async def planned(
    services: Session, request: planner_pb2.CreatePlanRequest, interrupts: Interrupts, status: StatusLine
) -> JoinedPlan:
    """As ``make_plan``, with a status line; an interrupt ends it."""
    status.show(lambda: planning(request), waited_for(request))
    try:
        plan = await interrupts.or_stop(make_plan(services, request))
        plan.body.remarks.warnings.extend(await interrupts.or_stop(_unused_org(services, plan.header)))
        return plan
    finally:
        status.hide()


async def _unused_org(services: Session, header: plan_pb2.Plan) -> list[str]:
    """A warning if the organization holds nothing while others of the platform do: its name may be mistyped."""
    target, counts = header.target, header.counts
    if target.org == Target().org or not counts.creates or counts.updates or counts.deletes or header.base_generation:
        return []
    stub = PlannerServiceStub(services.planner.channel)
    request = planner_pb2.ListPlatformsRequest(platform=target.platform)
    answer = await services.planner.call(stub.ListPlatforms, request)
    orgs = [org for platform in answer.platforms for org in platform.orgs]
    if not orgs or any(target.org in (org.id, org.name) for org in orgs):
        return []
    others = ", ".join(org.name for org in orgs[:_LISTED_ORGS]) + (", …" if len(orgs) > _LISTED_ORGS else "")
    return [f"organization {target.org!r} of platform {target.platform!r} holds nothing, and others do: {others}"]


async def approved_plan(services: Session, request: planner_pb2.CreatePlanRequest, approval: Approval) -> ApprovedPlan:
    """
    Make a plan and have it approved; missing values are asked for, and the plan is then made again.

    Environment values that the user typed are in *request* afterwards.

    Raises:
        CommandFailed: The plan is not approved.
        ValuesMissing: Values are missing, and there is no terminal to ask for them.
    """
    typed: dict[str, str] = {}
    while True:
        plan = await planned(services, request, approval.interrupts, approval.status)
        if not await _is_completed(request, plan.remarks, approval, typed):
            await approval.approve(plan)
            return ApprovedPlan(plan, typed)


async def _is_completed(
    request: planner_pb2.CreatePlanRequest, remarks: plan_pb2.PlanRemarks, approval: Approval, typed: dict[str, str]
) -> bool:
    """
    Ask for missing values; environment values go into *request*, secrets into *typed*.

    Returns:
        Whether a value was added.

    Raises:
        CommandFailed: The user gives no value.
    """
    env = [key for key in remarks.unresolved_env_refs if key not in request.package.env_json]
    secrets = [key for key in remarks.missing_secrets if key not in typed]
    # A rollback takes no values: the platform has the secrets, or an apply writes them.
    if not approval.terminal or approval.options.allow_missing or request.revision or not (env or secrets):
        return False
    for key in env:
        value = _checked_value(
            key, await approval.terminal.ask(f"Value for environment reference {key}: ", approval.interrupts)
        )
        request.package.env_json.update(sendable({key: value}))
    for key in secrets:
        typed[key] = _checked_value(
            key, await approval.terminal.ask(f"Secret {key}: ", approval.interrupts, hidden=True)
        )
    request.secret_keys[:] = sorted({*request.secret_keys, *typed})
    return True


def _checked_value(key: str, value: str) -> str:
    if not value:
        raise CommandFailed(f"no value for {key}; nothing was written")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise CommandFailed(f"the value for {key} is not UTF-8 text; nothing was written")
    return value
