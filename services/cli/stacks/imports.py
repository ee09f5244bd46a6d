"""
``pkger stacks import``: adds existing resources to the record of a stack: one resource, or the resources of a package.
"""

from collections.abc import Mapping, Sequence

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from rich.console import Console
from rich.text import Text

from services.cli.errors import CommandFailed, InvalidPackageError, plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, progress_console
from services.cli.output.documents import print_document, print_records
from services.cli.output.escapes import one_line
from services.cli.output.interaction import Interaction
from services.cli.output.status_line import StatusLine
from services.cli.output.tables import print_table
from services.cli.plan.plan_input import PlanInput
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import APPLYING, Session, session
from services.cli.process.terminal import Terminal
from services.core.text_lists import listed
from services.rpc.convert.objects import violation_from_pb
from services.rpc.message_json import document_of
from services.settings import load

_SHOWN_IDS = 5
"""How many resources of one name are listed."""


async def import_resource(
    name: str,
    target: object_pb2.Target,
    resource: tuple[str, str],
    object_name: str,
    environ: Mapping[str, str],
    output: str,
) -> None:
    """
    Import a resource into a stack.

    Args:
        name: The stack, by name or id.
        target: Where a name is looked up.
        resource: Kind of the resource, and its id or display name.
        object_name: ``metadata.name`` of its object; empty: the service makes one.
        environ: The environment.
        output: How to print.

    Raises:
        CommandFailed: There is no such resource, several have the name, or a stack owns it.
    """
    kind, id_or_name = resource
    resource_import = applier_pb2.ResourceImport(kind=kind, id_or_name=id_or_name, name=object_name)
    with Interrupts() as interrupts, plain_errors():
        async with session(APPLYING, environ, target.platform) as services:

            async def run() -> applier_pb2.ImportResourcesResponse:
                ref = await ref_of(services.stack, target, name)
                return await _import(services, ref, [resource_import])

            answer = await interrupts.or_stop(run())
    if output != "text":
        print_document(document_of(answer), output)
        return
    [entry] = answer.entries
    imported = f"{entry.key.kind} {entry.key.name} is resource {entry.resource_id}"
    console().print(Text(one_line(f"{imported}; add it to the package, or the next apply removes it")))


async def import_package(plan_input: PlanInput, environ: Mapping[str, str], interaction: Interaction) -> None:
    """
    Import the resources of the objects of a package: show them, ask for approval, and import exactly these.

    Raises:
        CommandFailed: The package is invalid, the user refuses, or nothing can be imported because of a change in
            between.
    """
    out = progress_console() if interaction.output == "text" else console(stderr=True)
    async with StatusLine(quiet=interaction.quiet) as status:
        with Interrupts() as interrupts, plain_errors(), Terminal.opened() as terminal:
            package = (await interrupts.or_stop(plan_input.request(load(environ).bounds, store=False))).package
            target = object_pb2.Target(platform=plan_input.platform, org=plan_input.org)
            async with session(APPLYING, environ, plan_input.platform) as services:
                status.show(lambda: "looking for the resources of the package", "the platform")
                ref = await interrupts.or_stop(ref_of(services.stack, target, plan_input.stack))
                request = planner_pb2.PlanImportRequest(stack=ref, package=package)
                plan = await interrupts.or_stop(_planned(services, request))
                status.hide()
                resources = _to_import(plan)
                approval_terminal = None if interaction.yes or not resources else terminal
                if not out.quiet and (interaction.output == "text" or approval_terminal):
                    _print_plan(out, plan, len(resources))
                if approval_terminal and not await approval_terminal.confirm("Import these resources?", interrupts):
                    raise CommandFailed("not imported; nothing was written")
                imported = applier_pb2.ImportResourcesResponse()
                if resources:
                    imported = await interrupts.or_stop(_import(services, ref, resources))
    if interaction.output != "text":
        print_records(map(document_of, [plan, imported] if resources else [plan]), interaction.output)
    elif resources:
        counted = _counted(len(resources))
        out.print(Text(f"Imported {counted} into stack {plan_input.stack}, generation {imported.generation}."))


async def _planned(services: Session, request: planner_pb2.PlanImportRequest) -> planner_pb2.ObjectImports:
    """The result of the planner for each object of a package."""
    plan, violations = planner_pb2.ObjectImports(), list[object_pb2.Violation]()
    stub = PlannerServiceStub(services.planner.channel)
    async for answer in services.planner.stream(stub.PlanImport, request):
        plan.MergeFrom(answer.imports)
        violations += answer.violations.violations
    if violations:
        raise InvalidPackageError(list(map(violation_from_pb, violations)))
    return plan


def _to_import(plan: planner_pb2.ObjectImports) -> list[applier_pb2.ResourceImport]:
    """The resources that the import adds, with the names of their objects."""
    return [
        applier_pb2.ResourceImport(
            kind=each.key.kind,
            id=each.resources[0].resource.id,
            name=each.key.name,
            own_policy_json=each.own_policy_json,
        )
        for each in plan.objects
        if each.status == planner_pb2.IMPORT_STATUS_UNOWNED
    ]


async def _import(
    services: Session, ref: object_pb2.StackRef, resources: Sequence[applier_pb2.ResourceImport]
) -> applier_pb2.ImportResourcesResponse:
    """Import *resources*, and join the parts of the response."""
    request = applier_pb2.ImportResourcesRequest(stack=ref, resources=resources)
    stub, joined = ApplierServiceStub(services.applier.channel), applier_pb2.ImportResourcesResponse()
    async for part in services.applier.stream(stub.ImportResources, request):
        joined.MergeFrom(part)
    return joined


def _print_plan(out: Console, plan: planner_pb2.ObjectImports, count: int) -> None:
    rows = [(each.key.kind, each.key.name, each.display_name, _result(each)) for each in plan.objects]
    print_table(out, ("KIND", "OBJECT", "DISPLAY NAME", "IMPORT"), rows)
    out.print(Text(f"To import: {_counted(count)}; nothing is written to the platform."))


def _counted(count: int) -> str:
    return "1 resource" if count == 1 else f"{count:,} resources"


def _result(object_import: planner_pb2.ObjectImport) -> str:
    """The resource that the import adds for an object, or why it adds none."""
    match object_import.status:
        case planner_pb2.IMPORT_STATUS_UNOWNED:
            return f"resource {object_import.resources[0].resource.id}"
        case planner_pb2.IMPORT_STATUS_MISSING:
            return "no: it does not exist"
        case planner_pb2.IMPORT_STATUS_OWNED:
            [live] = object_import.resources
            stack = live.owner.stack_name or live.owner.stack_id
            as_object = f", as {live.owner.object_name!r}" if live.owner.object_name else ""
            return f"no: stack {stack!r} owns resource {live.resource.id}{as_object}"
        case planner_pb2.IMPORT_STATUS_RECORDED:
            return "no: it is in the stack already"
        case _:
            return f"no: {_ambiguity(object_import)}"


def _ambiguity(object_import: planner_pb2.ObjectImport) -> str:
    ids = [f"{each.resource.kind} {each.resource.id}" for each in object_import.resources]
    if ids[1:]:
        return f"{len(ids):,} resources have the name: {listed(ids, _SHOWN_IDS)}"
    if any(each.resource.kind != object_import.key.kind for each in object_import.resources):
        return f"{ids[0]} has the name"
    return "several objects of the package have the name"
