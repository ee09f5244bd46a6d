"""Plans that somebody has to agree to: made, with values asked for; shown; and deleted if the answer is no."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pkger.model.v1 import plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub
from rich.console import Console

from services.cli.errors import Failed, InvalidPackageError
from services.cli.interrupts import Interrupts
from services.cli.live import Live
from services.cli.plan_text import print_plan
from services.cli.session import Session
from services.cli.terminal import Terminal
from services.core.errors import PkgerError
from services.core.model import Target
from services.rpc.convert.objects import violation_from_pb
from services.rpc.plan_parts import JoinedPlan, joined
from services.rpc.readiness import refuse_missing_values

_TOLD_ORGS = 10
"""Organisations that a warning names."""


@dataclass(frozen=True, slots=True)
class Asking:
    """
    How somebody is asked.

    Attributes:
        terminal: Where; None: nobody can be asked.
        interrupts: Ends a question.
        live: Shows that something is going on.
        out: Where plans are shown; None: nowhere.
        full: Whether they are shown uncut.
        allow_missing: Whether values may be missing.
    """

    terminal: Terminal | None
    interrupts: Interrupts
    live: Live
    out: Console | None
    full: bool = False
    allow_missing: bool = False

    async def agree(self, made: JoinedPlan) -> None:
        """
        Show a plan and ask for it, if it does anything; without a terminal, only what deletes nothing is agreed to.

        Raises:
            Failed: The answer is no, or nobody can be asked.
            ValuesMissing: The answer would not help.
        """
        if not self.allow_missing:
            refuse_missing_values(made.remarks, made.header.rollback_of)
        if self.out:
            print_plan(self.out, made, self.full)
        if not made.steps and made.header.kind != plan_pb2.OPERATION_KIND_UNINSTALL:
            return
        if self.terminal:
            if not await self.terminal.confirm("Apply this plan?", self.interrupts):
                raise Failed("not applied; nothing was written")
        elif count := made.header.counts.deletes:
            resources = "1 resource" if count == 1 else f"{count:,} resources"
            raise Failed(
                f"the plan deletes {resources}, and there is no terminal to ask at; nothing was written."
                " --yes applies it without asking"
            )


@dataclass(frozen=True, slots=True)
class Agreed:
    """
    A plan that somebody agreed to.

    Attributes:
        made: The plan.
        secrets: Values of secrets that were typed for it, by key; not shown.
    """

    made: JoinedPlan
    secrets: dict[str, str] = field(repr=False)


async def make_plan(services: Session, request: planner_pb2.CreatePlanRequest) -> JoinedPlan:
    """
    A plan as *request* says.

    Raises:
        InvalidPackageError: The package breaks rules.
        PkgerError: There is none.
    """
    stub = PlannerServiceStub(services.planner.channel)
    answers = services.planner.stream(stub.CreatePlan, request)
    made = await joined(answers)
    if not isinstance(made, JoinedPlan):
        raise InvalidPackageError(list(map(violation_from_pb, made)))
    return made


def waited_for(request: planner_pb2.CreatePlanRequest) -> str:
    """Who may let a plan wait: the platform, and servers that sources are fetched from."""
    platform = f"platform {request.target.platform or 'embedded'}"
    if request.WhichOneof("desired") not in (None, "package"):
        return platform
    if not request.package.sources:
        return f"{platform} or the URLs of the stack"
    fetched = [source.url for source in request.package.sources if source.url]
    return " or ".join([platform, *fetched]) if len(fetched) < 3 else f"{platform} or {len(fetched)} addresses"


async def planned(
    services: Session, request: planner_pb2.CreatePlanRequest, interrupts: Interrupts, live: Live
) -> JoinedPlan:
    """As ``make_plan``, with a sign of life; an interrupt ends it."""
    platform, org = request.target.platform or "embedded", request.target.org or "default"
    live.show(lambda: f"planning for {platform}/{org}", waited_for(request))
    try:
        made = await interrupts.or_stop(make_plan(services, request))
        made.body.remarks.warnings.extend(await interrupts.or_stop(_strange_org(services, made.header)))
        return made
    finally:
        live.hide()


async def _strange_org(services: Session, header: plan_pb2.Plan) -> list[str]:
    """A warning of an organisation that holds nothing, while others of the platform do: it may be mistyped."""
    target, counts = header.target, header.counts
    if target.org == Target().org or not counts.creates or counts.updates or counts.deletes or header.base_generation:
        return []
    stub = PlannerServiceStub(services.planner.channel)
    request = planner_pb2.ListPlatformsRequest(platform=target.platform)
    answer = await services.planner.call(stub.ListPlatforms, request)
    orgs = [org for platform in answer.platforms for org in platform.orgs]
    if not orgs or any(target.org in (org.id, org.name) for org in orgs):
        return []
    others = ", ".join(org.name for org in orgs[:_TOLD_ORGS]) + (", …" if len(orgs) > _TOLD_ORGS else "")
    return [f"organisation {target.org!r} of platform {target.platform!r} holds nothing, and others do: {others}"]


@asynccontextmanager
async def agreed(services: Session, request: planner_pb2.CreatePlanRequest, asking: Asking) -> AsyncIterator[Agreed]:
    """
    Make a plan to be applied in the block; values that are missing are asked for, and then it is made anew.

    A plan that nobody agrees to is deleted: nobody else knows it.

    Raises:
        Failed: Nobody agreed.
        ValuesMissing: Values are missing, and nobody can be asked.
    """
    typed: dict[str, str] = {}
    while True:
        made = await planned(services, request, asking.interrupts, asking.live)
        try:
            if await _is_completed(request, made.remarks, asking, typed):
                await _delete(services, made)
                continue
            await asking.agree(made)
        except BaseException:
            await _delete(services, made)
            raise
        break
    yield Agreed(made, typed)


async def _is_completed(
    request: planner_pb2.CreatePlanRequest, remarks: plan_pb2.PlanRemarks, asking: Asking, typed: dict[str, str]
) -> bool:
    """
    Ask for the values that are missing, and put them into *request*, and secrets into *typed*.

    Returns:
        Whether the request has more values now.

    Raises:
        Failed: No value is given.
    """
    env = [key for key in remarks.unresolved_env_refs if key not in request.package.env]
    secrets = [key for key in remarks.missing_secrets if key not in typed]
    # A rollback takes no values: the platform has them, or they are written with an apply.
    if not asking.terminal or asking.allow_missing or request.revision or not (env or secrets):
        return False
    for key in env:
        request.package.env[key].string_value = _given(
            key, await asking.terminal.ask(f"Value for environment reference {key}: ", asking.interrupts)
        )
    for key in secrets:
        typed[key] = _given(key, await asking.terminal.ask(f"Secret {key}: ", asking.interrupts, hidden=True))
    request.secret_keys[:] = sorted({*request.secret_keys, *typed})
    return True


def _given(key: str, value: str) -> str:
    if not value:
        raise Failed(f"no value for {key}; nothing was written")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise Failed(f"the value for {key} is no UTF-8 text; nothing was written")
    return value


async def _delete(services: Session, made: JoinedPlan) -> None:
    """Delete a plan, as far as that works: it expires within a day."""
    if made.header.name:
        stub = StackServiceStub(services.stack.channel)
        with contextlib.suppress(PkgerError):
            await services.stack.call(stub.DeletePlan, stack_pb2.DeletePlanRequest(plan=made.header.name))
