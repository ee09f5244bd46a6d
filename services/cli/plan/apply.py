"""``pkger plan``, ``pkger apply``, ``pkger stacks uninstall`` and ``delete``: plan, show, approve, run, report."""

import math
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from rich.text import Text

from services.cli.errors import CommandFailed, plain_errors
from services.cli.exit_codes import Exit
from services.cli.find_stack import ref_of
from services.cli.operations.follower import (
    Begin,
    DataReport,
    EventReport,
    Events,
    OperationFollower,
    TextReport,
    outcome_code,
)
from services.cli.operations.plan_reading import SHOWN, WHOLE, plan_documents, stored
from services.cli.operations.progress import Progress
from services.cli.output.consoles import console, progress_console
from services.cli.output.documents import print_records
from services.cli.output.facts import moment
from services.cli.output.interaction import Interaction
from services.cli.output.plan_text import done_sum, print_plan
from services.cli.output.status_line import StatusLine
from services.cli.plan.approval import Approval, approved_plan, make_plan, planned, planning
from services.cli.plan.plan_input import PlanInput
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, PLANNING, Session, session
from services.cli.process.terminal import Terminal
from services.core.errors import StackNotFound
from services.core.model import Target
from services.rpc.plan_parts import JoinedPlan
from services.settings import load

READING = ("stack",)


@dataclass(frozen=True, slots=True)
class SaveOptions:
    """
    How ``pkger plan`` saves a plan.

    Attributes:
        keep: Whether the plan is stored for an apply.
        file: File for its name and digest; None for none.
        detailed: Whether the exit status says if the plan has changes.
    """

    keep: bool = False
    file: Path | None = None
    detailed: bool = False


@dataclass(frozen=True, slots=True)
class ApplyResult:
    """
    An operation that succeeded and left nothing to do.

    Attributes:
        plan: The header of its plan.
        finished: Its last event.
    """

    plan: plan_pb2.Plan
    finished: operation_pb2.Finished


async def plan(plan_input: PlanInput, environ: Mapping[str, str], interaction: Interaction, saving: SaveOptions) -> int:
    """
    Show the plan of an apply, and store it if *saving* says so.

    Returns:
        The exit status.

    Raises:
        CommandFailed: There is no plan; the message lists every violation.
    """
    is_kept = saving.keep or saving.file is not None
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors():
            request = await interrupts.or_stop(plan_input.request(load(environ).bounds, store=is_kept))
            request.view.extend(SHOWN if interaction.output == "text" else WHOLE)
            async with session(PLANNING, environ, plan_input.platform) as services:
                await interrupts.or_stop(_find_stack(services, request))
                joined_plan = await planned(services, request, interrupts, status)
    if interaction.output != "text":
        print_records(plan_documents(joined_plan), interaction.output)
    else:
        print_plan(progress_console(), joined_plan, interaction.full)
    report_saved(joined_plan.header, saving, plan_input.secrets, interaction.output)
    return Exit.CHANGES if saving.detailed and not joined_plan.header.no_change else Exit.DONE


def report_saved(header: plan_pb2.Plan, saving: SaveOptions, secrets: Collection[str], output: str) -> None:
    """
    Say how a plan that is stored can be applied, and write the file that names it; nothing for one that is not stored.

    Args:
        header: The plan.
        saving: How it is saved.
        secrets: Keys of the secrets that the apply will supply.
        output: How to print.

    Raises:
        CommandFailed: The file cannot be written.
    """
    if saving.file:
        _write(saving.file, header)
    if output == "text" and (saving.keep or saving.file):
        options = "".join(f" --secret {shlex.quote(key)}" for key in sorted(secrets))
        name = shlex.quote(str(saving.file)) if saving.file else header.id
        hint = f"`pkger apply --plan {name}{options}` runs exactly this plan, until {moment(header.expire_time)}"
        progress_console().print(Text(f"Saved: {hint}."))


def _write(file: Path, header: plan_pb2.Plan) -> None:
    """Write id and digest of the plan, by which an apply finds it; none of its content."""
    document = {"id": header.id, "digest": header.digest}
    try:
        file.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise CommandFailed(
            f"cannot write {file}: {error.strerror or error}; it is saved as plan {header.id}"
        ) from error


def named_plan(text: str) -> tuple[str, str]:
    """
    Id and digest of a plan by its id, or by the file that ``plan --out`` wrote; no digest without a file.

    Raises:
        CommandFailed: The file was not written by ``plan --out``.
    """
    path = Path(text)
    if not path.is_file():
        return text, ""
    try:
        saved_plan = orjson.loads(path.read_bytes())
        return str(saved_plan["id"]), str(saved_plan["digest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandFailed(f"{text}: is not a file that `pkger plan --out` wrote") from error


async def apply(
    plan_input: PlanInput, environ: Mapping[str, str], interaction: Interaction, options: applier_pb2.RunOptions
) -> ApplyResult:
    """
    Apply a package or snapshot, or uninstall or roll back a stack: show the plan, ask for approval, run exactly that.

    Args:
        plan_input: The input of the plan.
        environ: The environment.
        interaction: How it is shown and approved.
        options: The conditions under which the plan may run, without the digest.

    Returns:
        The plan and the end of the operation.

    Raises:
        CommandFailed: The operation did not start, was rolled back or is blocked, or left steps to do.
    """
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors(), Terminal.opened() as terminal:
            request = await interrupts.or_stop(plan_input.request(load(environ).bounds, store=False))
            async with session(APPLYING, environ, plan_input.platform) as services:
                await interrupts.or_stop(_find_stack(services, request))
                run = OperationRun(services, interrupts, status, interaction)
                if interaction.yes:
                    begin = partial(_start, services, request, plan_input.stack, options, plan_input.secrets)
                    return await run.to_its_end(begin, planning(request))
                request.view.extend(SHOWN)
                approval = approval_of(interaction, terminal, interrupts, status, options)
                approved = await approved_plan(services, request, approval)
                secrets, shown = {**plan_input.secrets, **approved.secrets}, approved.plan
                options = approved_options(options, shown.header.digest)
                begin = partial(_start, services, request, plan_input.stack, options, secrets)
                return await run.to_its_end(begin, "applying", shown)


async def apply_stored(
    name: str,
    environ: Mapping[str, str],
    interaction: Interaction,
    options: applier_pb2.RunOptions,
    secrets: Mapping[str, str],
) -> None:
    """
    Apply a stored plan: show it, ask for approval, run it.

    Args:
        name: Its id, or the file that ``plan --out`` wrote.
        environ: The environment.
        interaction: How it is shown and approved.
        options: The conditions under which the plan may run, without the digest.
        secrets: Values of the secrets that the plan writes, by key.

    Raises:
        CommandFailed: The operation did not start, was rolled back or is blocked, or left steps to do.
    """
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors(), Terminal.opened() as terminal:
            plan_id, digest = named_plan(name)
            # The plan names the platform, and with it the driver that local services need.
            async with session(READING, environ) as services:
                joined_plan = await interrupts.or_stop(stored(services, plan_id, SHOWN))
            header = joined_plan.header
            async with session(APPLYING, environ, header.target.platform) as services:
                if interaction.yes and interaction.output == "text":
                    print_plan(progress_console(), joined_plan, interaction.full)
                if not interaction.yes:
                    await approval_of(interaction, terminal, interrupts, status, options).approve(joined_plan)
                run = OperationRun(services, interrupts, status, interaction)
                # The digest makes sure that it is exactly that plan.
                request = applier_pb2.ApplyPlanRequest(
                    plan_id=header.id, run_options=approved_options(options, digest or header.digest), secrets=secrets
                )
                stub = ApplierServiceStub(services.applier.channel)
                stream = partial(services.applier.stream, stub.ApplyPlan, request, seconds=math.inf)
                await run.to_its_end(stream, "applying", joined_plan)


def approval_of(
    interaction: Interaction,
    terminal: Terminal | None,
    interrupts: Interrupts,
    status: StatusLine,
    options: applier_pb2.RunOptions,
) -> Approval:
    """How plans are approved; where standard output is for data, a plan to approve goes to standard error."""
    prompt = None if interaction.yes else terminal
    out = progress_console() if interaction.output == "text" else console(stderr=True) if prompt else None
    return Approval(prompt, interrupts, status, out, interaction.full, options)


class OperationRun:
    """Runs an operation and shows it."""

    def __init__(self, services: Session, interrupts: Interrupts, status: StatusLine, interaction: Interaction) -> None:
        self._services, self._interrupts, self._status, self._interaction = services, interrupts, status, interaction

    async def to_its_end(self, begin: Begin, doing: str, shown: JoinedPlan | None = None) -> ApplyResult:
        """
        Start an operation and show its progress and its end; and its plan, unless that is already *shown*.

        Raises:
            CommandFailed: It did not succeed, or left steps to do.
        """
        progress, interaction = Progress(), self._interaction
        report: EventReport = (
            TextReport(progress, self._status, interaction.full)
            if interaction.output == "text"
            else DataReport(interaction.output)
        )
        following = OperationFollower(self._services, self._interrupts, self._status, report, progress)
        self._status.show(lambda: doing, "the services")
        joined_plan, finished = await following.run(begin, self._read, interaction.wait, shown)
        self._status.hide()
        has_succeeded = finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED
        out = progress_console() if interaction.output == "text" else console(stderr=True)
        if has_succeeded and interaction.output == "text":
            out.print(f"Done: {done_sum(finished)}.")
        if finished.leftover_count or not has_succeeded:
            end = progress.end(finished)
            if interaction.output == "text":
                out.print(Text(end, "bold red"))
            raise CommandFailed(progress.failure(finished, end), outcome_code(finished))
        if interaction.output == "text":
            _print_end(joined_plan.header, finished)
        return ApplyResult(joined_plan.header, finished)

    async def _read(self, name: str) -> JoinedPlan:
        return await stored(self._services, name, SHOWN)


def _print_end(header: plan_pb2.Plan, finished: operation_pb2.Finished) -> None:
    """Print the resulting state of the stack, in one line."""
    name = header.stack_name or finished.stack_id or header.stack_id
    if header.kind == plan_pb2.OPERATION_KIND_UNINSTALL:
        progress_console().print(Text(f"stack {name} {_left(header) if finished.stack_id else 'is gone'}"))
    elif finished.stack_id:
        target, here = header.target, Target()
        place = "".join(
            f" --{option} {shlex.quote(value)}"
            for option, value, default in (
                ("platform", target.platform, here.platform),
                ("org", target.org, here.org),
            )
            if value != default
        )
        hint = f"; `pkger stacks show {shlex.quote(header.stack_name)}{place}` shows it" if header.stack_name else ""
        progress_console().print(Text(f"stack {name}, generation {finished.generation}{hint}"))


def _left(header: plan_pb2.Plan) -> str:
    """The state of a stack that an uninstall kept, as text."""
    if not header.untouched_count:
        return "is kept, and owns nothing"
    return f"is kept, and still has {protected(header)}"


def protected(header: plan_pb2.Plan) -> str:
    """The resources that an uninstall kept, as text."""
    count = header.untouched_count
    return "1 resource, which is protected" if count == 1 else f"{count:,} resources, which are protected"


async def _find_stack(services: Session, request: planner_pb2.CreatePlanRequest) -> None:
    """Refer to the stack of *request* by its id, if the user wrote an id."""
    if request.HasField("stack"):
        request.stack.CopyFrom(await ref_of(services.stack, request.stack.target, request.stack.name))


def approved_options(options: applier_pb2.RunOptions, digest: str) -> applier_pb2.RunOptions:
    """*options* for the plan with that digest only."""
    approved = applier_pb2.RunOptions(expected_plan_digest=digest)
    approved.MergeFrom(options)
    return approved


def _start(
    services: Session,
    request: planner_pb2.CreatePlanRequest,
    stack: str,
    options: applier_pb2.RunOptions,
    secrets: Mapping[str, str],
) -> Events:
    """Start the operation whose plan *request* describes; *stack* is the name or id of its stack, for an error."""
    stub = ApplierServiceStub(services.applier.channel)
    if request.HasField("destroy"):
        uninstall = applier_pb2.UninstallStackRequest(
            stack=request.stack, after_uninstall=request.destroy.after_uninstall, run_options=options
        )
        return _of_stack(services.applier.stream(stub.UninstallStack, uninstall, seconds=math.inf), stack)
    if request.HasField("revision"):
        rollback = applier_pb2.RollbackStackRequest(
            stack=request.stack,
            revision=request.revision,
            options=request.options,
            run_options=options,
        )
        return services.applier.stream(stub.RollbackStack, rollback, seconds=math.inf)
    if request.HasField("snapshot"):
        return _of_snapshot(services, request, options, secrets)
    apply_request = applier_pb2.ApplyRequest(
        package=request.package,
        options=request.options,
        run_options=options,
        secrets=secrets,
    )
    if request.HasField("stack"):
        apply_request.stack.CopyFrom(request.stack)
    else:
        apply_request.target.CopyFrom(request.target)
    return services.applier.stream(stub.Apply, apply_request, seconds=math.inf)


async def _of_snapshot(
    services: Session,
    request: planner_pb2.CreatePlanRequest,
    options: applier_pb2.RunOptions,
    secrets: Mapping[str, str],
) -> Events:
    """The events of a restore: its plan is stored, and then applied."""
    storing = planner_pb2.CreatePlanRequest()
    storing.CopyFrom(request)
    storing.validate_only = False
    header = (await make_plan(services, storing)).header
    apply_request = applier_pb2.ApplyPlanRequest(plan_id=header.id, run_options=options, secrets=secrets)
    stub = ApplierServiceStub(services.applier.channel)
    async for event in services.applier.stream(stub.ApplyPlan, apply_request, seconds=math.inf):
        yield event


async def _of_stack(events: Events, name: str) -> Events:
    """
    The *events* of an uninstall, of which a stack that does not exist has none.

    Raises:
        StackNotFound: There are no events.
    """
    exists = False
    async for event in events:
        exists = True
        yield event
    if not exists:
        raise StackNotFound(name)
