"""``pkger packages list`` and ``tree``."""

from collections.abc import Mapping

from pkger.model.v1 import object_pb2, package_change_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_lines
from services.cli.output.documents import print_document
from services.cli.output.package_changes import flags
from services.cli.output.package_tree import tree_lines
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.rpc.message_json import document_of
from services.rpc.paging import first_items
from services.rpc.stack_records import PACKAGES_AT_ONCE

NEEDS = ("stack",)


async def list_installed(stack: str, target: tuple[str, str], environ: Mapping[str, str], output: str) -> None:
    """
    Print the installed packages of a stack, by name.

    Raises:
        CommandFailed: There is no such stack.
    """
    packages = await _installed(stack, target, environ)
    if output != "text":
        print_document([document_of(each) for each in packages], output)
        return
    rows = [
        (each.name, each.version, ", ".join(flags(each)), each.requested_range, each.repository or "(folder)")
        for each in packages
    ]
    print_table(console(), ("NAME", "VERSION", "STATE", "WITHIN", "REPOSITORY"), rows)


async def print_tree(stack: str, target: tuple[str, str], environ: Mapping[str, str], output: str) -> None:
    """
    Print the installed packages of a stack, each below what requires it.

    Raises:
        CommandFailed: There is no such stack.
    """
    packages = await _installed(stack, target, environ)
    if output != "text":
        print_document([document_of(each) for each in packages], output)
    else:
        print_lines(console(), tree_lines(packages))


async def _installed(
    stack: str, target: tuple[str, str], environ: Mapping[str, str]
) -> list[package_change_pb2.InstalledPackage]:
    """The installed packages of a stack, by name."""
    platform, org = target
    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            place = object_pb2.Target(platform=platform, org=org)
            ref = await interrupts.or_stop(ref_of(services.stack, place, stack))
            request = stack_pb2.ListPackagesRequest(stack=ref, page_size=PACKAGES_AT_ONCE)
            stub = StackServiceStub(services.stack.channel)
            listing = first_items(services.stack, stub.ListPackages, request, lambda page: page.packages, None)
            packages, _ = await interrupts.or_stop(listing)
    return packages
