"""``pkger packages list --outdated`` and ``why``."""

from collections.abc import Iterable, Mapping, Sequence

from pkger.model.v1 import manifest_pb2, object_pb2, package_change_pb2
from pkger.planner.v1 import package_pb2
from pkger.planner.v1.package_pb2_grpc import PackageServiceStub
from rich.text import Text

from services.cli.errors import plain_errors
from services.cli.find_stack import ref_of
from services.cli.output.consoles import console, print_lines, print_warnings
from services.cli.output.documents import print_document
from services.cli.output.escapes import one_line
from services.cli.output.facts import fact_lines
from services.cli.output.package_changes import flags
from services.cli.output.tables import print_table
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import session
from services.packages.versions import Version
from services.rpc.message_json import document_of
from services.rpc.paging import first_items

NEEDS = ("planner", "stack")


async def list_outdated(
    stack: str, target: tuple[str, str], refresh: bool, environ: Mapping[str, str], output: str
) -> None:
    """
    Print the installed packages of which a newer version is published, by name.

    Raises:
        CommandFailed: There is no such stack.
    """
    packages = [each for each in await _explained(stack, target, (), refresh, environ) if _is_outdated(each)]
    if output != "text":
        print_document([document_of(each) for each in packages], output)
        return
    rows = [
        (
            each.installed.name,
            each.installed.version,
            each.reachable_version or "unknown",
            each.latest,
            "; ".join(_texts(each.held_back_by)),
        )
        for each in packages
    ]
    print_table(console(), ("NAME", "INSTALLED", "WANTED", "LATEST", "BLOCKED BY"), rows)


async def why(
    name: str, stack: str, target: tuple[str, str], refresh: bool, environ: Mapping[str, str], output: str
) -> None:
    """
    Print why a package is installed, and what it can become.

    Raises:
        CommandFailed: There is no such stack, or the package is not installed in it.
    """
    [package] = await _explained(stack, target, (name,), refresh, environ)
    if output != "text":
        print_document(document_of(package), output)
        return
    installed = package.installed
    lines = [Text(one_line(f"package {installed.name} {installed.version} ({', '.join(flags(installed))})"), "bold")]
    lines += [Text(f"  {one_line(text)}") for text in _ways(package)]
    facts = {
        "range": ", ".join(map(_grouped, package.allowed_ranges)) or "any version",
        "wanted": package.reachable_version or "unknown",
        "latest": package.latest or "none",
        "blocked by": "; ".join(fact.text for fact in package.held_back_by),
    }
    print_lines(console(), [*lines, *fact_lines(facts)])


async def _explained(
    stack: str, target: tuple[str, str], names: Sequence[str], refresh: bool, environ: Mapping[str, str]
) -> list[package_pb2.ExplainedPackage]:
    """The explanations of installed packages; repositories that cannot be read are warned of."""
    platform, org = target
    unread: dict[str, str] = {}

    def packages_of(page: package_pb2.ExplainPackagesResponse) -> list[package_pb2.ExplainedPackage]:
        unread.update({each.name: each.problem for each in page.unread})
        return list(page.packages)

    with Interrupts() as interrupts, plain_errors():
        async with session(NEEDS, environ) as services:
            place = object_pb2.Target(platform=platform, org=org)
            ref = await interrupts.or_stop(ref_of(services.stack, place, stack))
            request = package_pb2.ExplainPackagesRequest(stack=ref, names=names, refresh=refresh)
            stub = PackageServiceStub(services.planner.channel)
            listing = first_items(services.planner, stub.ExplainPackages, request, packages_of, None)
            packages, _ = await interrupts.or_stop(listing)
    print_warnings(f"repository {name} cannot be read: {problem}" for name, problem in unread.items())
    return packages


def _is_outdated(package: package_pb2.ExplainedPackage) -> bool:
    installed = Version.parse(package.installed.version)
    newer = [text for text in (package.reachable_version, package.latest) if text and Version.parse(text) > installed]
    return bool(newer)


def _texts(facts: Iterable[package_change_pb2.ConflictFact]) -> list[str]:
    """The facts, without those that a package is installed whose version another fact names."""
    requirers = {each.packages[0] for each in facts if each.kind == package_change_pb2.CONFLICT_FACT_KIND_REQUIRES}
    return [
        each.text
        for each in facts
        if each.kind != package_change_pb2.CONFLICT_FACT_KIND_INSTALLED or each.packages[0] not in requirers
    ]


def _ways(package: package_pb2.ExplainedPackage) -> list[str]:
    """A line for each way by which a manual package leads to the package."""
    texts = [" -> ".join([path.start, *map(_required, path.requirements)]) for path in package.paths]
    if package.further_paths:
        return [*texts, f"and {package.further_paths:,} more ways"]
    return texts or ["no manual package leads to it"]


def _required(requirement: manifest_pb2.Requirement) -> str:
    return f"{requirement.name} ({requirement.version_range})" if requirement.version_range else requirement.name


def _grouped(range_: str) -> str:
    """A range of several groups in parentheses, as a comma joins it with others."""
    return f"({range_})" if "||" in range_ else range_
