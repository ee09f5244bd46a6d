"""``pkger packages resolve``."""

from collections.abc import Mapping

from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.output.consoles import console, print_lines, print_warnings
from services.cli.output.documents import print_document
from services.cli.output.package_changes import change_lines, conflict_lines, number_of
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.rpc.message_json import document_of

NEEDS = ("planner", "stack")


async def resolve(request: package_pb2.ResolvePackagesRequest, environ: Mapping[str, str], output: str) -> bool:
    """
    Print which packages an installation would bring, in order, or the conflict.

    Returns:
        Whether there is no conflict.

    Raises:
        CommandFailed: A range cannot be read, or a package is named twice.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            stub = PackageServiceStub(services.planner.channel)
            answer = await interrupts.or_stop(services.planner.call(stub.ResolvePackages, request))
    has_conflict = answer.HasField("conflict")
    if output != "text":
        print_document(document_of(answer), output)
    elif has_conflict:
        print_lines(console(), conflict_lines(answer.conflict))
    else:
        total = Text(number_of(len(answer.resolution.changes), "package"), "bold")
        print_lines(console(), [*change_lines(answer.resolution.changes), total])
    print_warnings(each.text for each in answer.resolution.warnings)
    return not has_conflict
