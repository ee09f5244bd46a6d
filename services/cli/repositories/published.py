"""``pkger packages search``, ``versions`` and ``show``."""

from collections.abc import Container, Mapping

from pkger.model.v1 import object_pb2
from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.output.consoles import console, print_lines, print_warnings
from services.cli.output.documents import print_document
from services.cli.output.escapes import one_line
from services.cli.output.facts import LARGEST_PAGE, LISTED, moment, print_facts, print_more
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.rpc.message_json import document_of
from services.rpc.paging import first_items

LISTING = ("planner", "stack")
"""The services that read repositories."""

READING = ("parser", *LISTING)
"""The services that read packages."""


async def search(text: str, refresh: bool, limit: int | None, environ: Mapping[str, str], output: str) -> None:
    """Print the packages with *text* in name or description, at most *limit* of them; None: ``LISTED``."""
    most = limit or LISTED
    request = package_pb2.SearchPackagesRequest(text=text, page_size=min(most, LARGEST_PAGE), refresh=refresh)
    unread: dict[str, str] = {}

    def packages_of(page: package_pb2.SearchPackagesResponse) -> list[package_pb2.ListedPackage]:
        unread.update({each.name: each.problem for each in page.unread})
        return list(page.packages)

    with Interrupts() as interrupts, plain_errors():
        async with session(LISTING, environ) as services:
            stub = PackageServiceStub(services.planner.channel)
            listing = first_items(services.planner, stub.SearchPackages, request, packages_of, most)
            packages, has_more = await interrupts.or_stop(listing)
    if output != "text":
        print_document([document_of(each) for each in packages], output)
    else:
        rows = [(each.name, each.latest, each.repository, each.description) for each in packages]
        print_table(console(), ("NAME", "LATEST", "REPOSITORY", "DESCRIPTION"), rows)
    print_warnings(f"repository {name} cannot be read: {problem}" for name, problem in unread.items())
    print_more(has_more)


async def versions(
    name: str, repository: str, refresh: bool, limit: int | None, environ: Mapping[str, str], output: str
) -> None:
    """
    Print the versions of a package, the highest first, at most *limit* of them; None: ``LISTED``.

    Raises:
        CommandFailed: No repository has the package, or the one that has it cannot be read.
    """
    most = limit or LISTED
    request = package_pb2.ListVersionsRequest(
        name=name, repository=repository, page_size=min(most, LARGEST_PAGE), refresh=refresh
    )
    latest: set[str] = set()

    def versions_of(page: package_pb2.ListVersionsResponse) -> list[package_pb2.PublishedVersion]:
        latest.add(page.latest)
        return list(page.versions)

    with Interrupts() as interrupts, plain_errors():
        async with session(LISTING, environ) as services:
            stub = PackageServiceStub(services.planner.channel)
            listing = first_items(services.planner, stub.ListVersions, request, versions_of, most)
            published, has_more = await interrupts.or_stop(listing)
    if output != "text":
        print_document([document_of(each) for each in published], output)
    else:
        rows = [(each.version, _state(each, latest), _requires(each), each.platform_range) for each in published]
        print_table(console(), ("VERSION", "STATE", "REQUIRES", "PLATFORM"), rows)
    print_more(has_more)


async def show(request: package_pb2.GetPackageRequest, environ: Mapping[str, str], output: str) -> bool:
    """
    Print one version of a package: what its repository and its manifest say, and its objects.

    Returns:
        Whether it is valid.

    Raises:
        CommandFailed: There is no such version, or it cannot be read.
    """
    with Interrupts() as interrupts, plain_errors():
        async with session(READING, environ) as services:
            stub = PackageServiceStub(services.planner.channel)
            package = await interrupts.or_stop(services.planner.call(stub.GetPackage, request))
    if output != "text":
        print_document(document_of(package), output)
        return not package.violations
    version, manifest = package.version, package.manifest
    facts = {
        "description": manifest.description,
        "repository": package.repository,
        "state": _state(version, ()),
        "listed": moment(version.create_time) if version.HasField("create_time") else "",
        "requires": _requires(version),
        "platform": version.platform_range,
        "files": ", ".join(["package.yaml", *manifest.files]),
        "objects": ", ".join(f"{each.kind}:{each.name}" for each in package.objects),
        "digest": version.digest,
    }
    print_facts(console(), f"package {manifest.name} {version.version}", facts)
    problems = [f"{_place(each.location)}: {each.path}: {each.reason}" for each in package.violations]
    print_lines(console(stderr=True), [Text(one_line(problem)) for problem in problems])
    return not package.violations


def _state(version: package_pb2.PublishedVersion, latest: Container[str]) -> str:
    if version.HasField("yank_reason"):
        return f"yanked: {version.yank_reason}"
    return "latest" if version.version in latest else ""


def _requires(version: package_pb2.PublishedVersion) -> str:
    return ", ".join(f"{each.name} {each.version_range}".rstrip() for each in version.requires)


def _place(location: object_pb2.Location) -> str:
    return f"{location.source}:{location.line}:{location.column}" if location.line else location.source
