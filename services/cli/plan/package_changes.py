"""``pkger install``, ``update`` and ``uninstall``: plan, show, approve, run."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, package_change_pb2
from pkger.planner.v1 import package_pb2, planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.cli.errors import InvalidPackageError, plain_errors
from services.cli.exit_codes import Exit
from services.cli.find_stack import ref_of
from services.cli.operations.plan_reading import SHOWN, WHOLE, plan_documents
from services.cli.output.consoles import console, print_lines, progress_console
from services.cli.output.documents import print_document, print_records
from services.cli.output.interaction import Interaction
from services.cli.output.package_changes import conflict_lines
from services.cli.output.plan_text import print_plan
from services.cli.output.status_line import StatusLine
from services.cli.plan.apply import OperationRun, SaveOptions, approval_of, approved_options, report_saved
from services.cli.plan.suggestions import chosen
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, PLANNING, Session, session
from services.cli.process.terminal import Terminal
from services.rpc.convert.objects import violation_from_pb
from services.rpc.message_json import document_of
from services.rpc.plan_parts import JoinedPlan


@dataclass(frozen=True, slots=True)
class PackagesInput:
    """
    What is to change in the packages of a stack.

    Attributes:
        changes: The changes.
        stack: Name or id of the stack.
        platform: Platform; empty for the default one.
        org: Organization; empty for the default one.
        options: Options of the plan.
        secrets: Values of secrets to write by key; not in ``repr``.
    """

    changes: package_pb2.PackageChanges
    stack: str
    platform: str = ""
    org: str = ""
    options: planner_pb2.PlanOptions = field(default_factory=planner_pb2.PlanOptions)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def request(self, *, store: bool) -> planner_pb2.CreatePlanRequest:
        """The request for the plan; *store*: whether it is stored."""
        target = object_pb2.Target(platform=self.platform, org=self.org)
        return planner_pb2.CreatePlanRequest(
            stack=object_pb2.StackRef(target=target, name=self.stack),
            packages=self.changes,
            options=self.options,
            validate_only=not store,
            secret_keys=sorted(self.secrets),
        )


async def plan_packages(
    packages_input: PackagesInput, environ: Mapping[str, str], interaction: Interaction, saving: SaveOptions
) -> int:
    """
    Show the plan of a change of packages, and store it if *saving* says so.

    Returns:
        The exit status.

    Raises:
        CommandFailed: There is no plan; the message lists every violation.
    """
    is_kept = saving.keep or saving.file is not None
    request = packages_input.request(store=is_kept)
    request.view.extend(SHOWN if interaction.output == "text" else WHOLE)
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors():
            async with session(PLANNING, environ, packages_input.platform) as services:
                answer = await _planned(services, request, interrupts, status)
    if isinstance(answer, package_change_pb2.PackageConflict):
        return _print_conflict(answer, interaction.output)
    if interaction.output != "text":
        print_records(plan_documents(answer), interaction.output)
    else:
        print_plan(progress_console(), answer, interaction.full)
    report_saved(answer.header, saving, packages_input.secrets, interaction.output)
    return Exit.CHANGES if saving.detailed and not answer.header.no_change else Exit.DONE


async def change_packages(
    packages_input: PackagesInput,
    environ: Mapping[str, str],
    interaction: Interaction,
    options: applier_pb2.RunOptions,
) -> int:
    """
    Change the packages of a stack: show the plan, ask for approval, run exactly that plan.

    Args:
        packages_input: What is to change.
        environ: The environment.
        interaction: How it is shown and approved.
        options: The conditions under which the plan may run, without the digest.

    Returns:
        The exit status.

    Raises:
        CommandFailed: The operation did not start, was rolled back or is blocked, or left steps to do.
    """
    request = packages_input.request(store=True)
    request.view.extend(SHOWN)
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors(), Terminal.opened() as terminal:
            async with session(APPLYING, environ, packages_input.platform) as services:
                answer = await _planned(services, request, interrupts, status)
                while isinstance(answer, package_change_pb2.PackageConflict):
                    _print_conflict(answer, interaction.output)
                    prompt = None if interaction.yes or interaction.output != "text" else terminal
                    changes = (
                        await chosen(request.packages, answer, prompt, interrupts)
                        if prompt and answer.suggestions
                        else None
                    )
                    if changes is None:
                        return Exit.CONFLICT
                    request.packages.CopyFrom(changes)
                    answer = await _planned(services, request, interrupts, status)
                if interaction.yes and interaction.output == "text":
                    print_plan(progress_console(), answer, interaction.full)
                if not interaction.yes:
                    await approval_of(interaction, terminal, interrupts, status, options).approve(answer)
                if answer.header.no_change:
                    return Exit.DONE
                apply_request = applier_pb2.ApplyPlanRequest(
                    plan_id=answer.header.id,
                    run_options=approved_options(options, answer.header.digest),
                    secrets=packages_input.secrets,
                )
                stub = ApplierServiceStub(services.applier.channel)
                stream = partial(services.applier.stream, stub.ApplyPlan, apply_request, seconds=math.inf)
                await OperationRun(services, interrupts, status, interaction).to_its_end(stream, "applying", answer)
    return Exit.DONE


async def _planned(
    services: Session, request: planner_pb2.CreatePlanRequest, interrupts: Interrupts, status: StatusLine
) -> JoinedPlan | package_change_pb2.PackageConflict:
    """
    The plan, or the conflict.

    Raises:
        InvalidPackageError: A package breaks rules.
        PkgerError: The planner makes no plan.
    """
    request.stack.CopyFrom(await interrupts.or_stop(ref_of(services.stack, request.stack.target, request.stack.name)))
    status.show(lambda: "resolving and planning", "the repositories and the platform")
    try:
        return await interrupts.or_stop(_joined(services, request))
    finally:
        status.hide()


async def _joined(
    services: Session, request: planner_pb2.CreatePlanRequest
) -> JoinedPlan | package_change_pb2.PackageConflict:
    plan, violations = JoinedPlan(), list[object_pb2.Violation]()
    stub = PlannerServiceStub(services.planner.channel)
    async for answer in services.planner.stream(stub.CreatePlan, request):
        match answer.WhichOneof("answer"):
            case "conflict":
                return answer.conflict
            case "violations":
                violations += answer.violations.violations
            case _:
                plan.add(answer.part)
    if violations:
        raise InvalidPackageError(list(map(violation_from_pb, violations)))
    return plan


def _print_conflict(conflict: package_change_pb2.PackageConflict, output: str) -> int:
    if output == "text":
        print_lines(console(), conflict_lines(conflict))
    else:
        print_document({"conflict": document_of(conflict)}, output)
    return Exit.CONFLICT
