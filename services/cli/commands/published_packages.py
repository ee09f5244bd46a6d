"""``pkger packages``."""

from typing import TYPE_CHECKING

import click

from services.cli import options
from services.cli.common import common
from services.cli.exit_codes import Exit
from services.cli.options import common_options

if TYPE_CHECKING:
    from pkger.planner.v1.package_pb2 import PackageChange


@click.group()
def packages() -> None:
    """Search, show and resolve packages of repositories; list, explain and pin installed ones."""


refresh_option = click.option(
    "--refresh", is_flag=True, help="Ask the repositories, however fresh what was read of them is."
)


@packages.command("search", epilog="\b\nExamples:\n  pkger packages search labels")
@click.argument("text", default="")
@refresh_option
@options.limit_option
@common_options
def search_packages(text: str, refresh: bool, limit: int | None) -> None:
    """List the packages with TEXT in name or description; without TEXT, all packages."""
    from services.cli.repositories.published import search
    from services.cli.run_async import run

    run(search(text, refresh, limit, common().environ(), common().format))


@packages.command(
    "versions",
    epilog="""\b
Examples:
  pkger packages versions base-labels
  pkger packages versions main/base-labels""",
)
@click.argument("name", metavar="[REPOSITORY/]NAME")
@refresh_option
@options.limit_option
@common_options
def list_versions(name: str, refresh: bool, limit: int | None) -> None:
    """List the versions of package NAME, the highest first."""
    from services.cli.repositories.published import versions
    from services.cli.run_async import run

    repository, package, written = package_words(name)
    if written:
        raise click.BadParameter(f"{name!r}: write the name without a version; `pkger packages show` takes one")
    run(versions(package, repository, refresh, limit, common().environ(), common().format))


@packages.command(
    "show",
    epilog="""\b
Examples:
  pkger packages show base-labels
  pkger packages show base-labels@1.2""",
)
@click.argument("name", metavar="[REPOSITORY/]NAME[@RANGE]")
@refresh_option
@common_options
def show_package(name: str, refresh: bool) -> int:
    """
    Print the manifest and the objects of package NAME, of the version that an installation would take.

    Exit status 1: its files are invalid.
    """
    from pkger.planner.v1.package_pb2 import GetPackageRequest

    from services.cli.repositories.published import show
    from services.cli.run_async import run

    repository, package, written = package_words(name)
    request = GetPackageRequest(name=package, version_range=written, repository=repository, refresh=refresh)
    return Exit.DONE if run(show(request, common().environ(), common().format)) else Exit.ERROR


@packages.command(
    "resolve",
    epilog="""\b
Examples:
  pkger packages resolve team-dashboards
  pkger packages resolve "team-dashboards@^1.4" main/base-labels -o json""",
)
@click.argument("names", metavar="[REPOSITORY/]NAME[@RANGE]...", nargs=-1, required=True)
@click.option(
    "--pre", "prereleases", multiple=True, metavar="NAME", help="Prereleases of package NAME count. May be repeated."
)
@refresh_option
@common_options
def resolve_packages(names: tuple[str, ...], prereleases: tuple[str, ...], refresh: bool) -> int:
    """
    Print the packages that an installation of NAME... into an empty stack would bring, in order.

    Exit status 7: they conflict.
    """
    from pkger.planner.v1.package_pb2 import PackageChanges, ResolutionOptions, ResolvePackagesRequest

    from services.cli.repositories.resolve import resolve
    from services.cli.run_async import run

    options = ResolutionOptions(prereleases=prereleases)
    changes = PackageChanges(changes=map(install_of, names), options=options, refresh=refresh)
    request = ResolvePackagesRequest(changes=changes)
    return Exit.DONE if run(resolve(request, common().environ(), common().format)) else Exit.CONFLICT


def install_of(text: str) -> "PackageChange":
    """
    The installation of ``[REPOSITORY/]NAME[@RANGE]``.

    Raises:
        BadParameter: A part is empty.
    """
    from pkger.planner.v1.package_pb2 import PackageChange, PackageInstall

    repository, name, range_ = package_words(text)
    return PackageChange(install=PackageInstall(name=name, version_range=range_, repository=repository))


def package_words(text: str) -> tuple[str, str, str]:
    """
    The repository, the name and the range of ``[REPOSITORY/]NAME[@RANGE]``; empty where they are left out.

    Raises:
        BadParameter: A part is empty.
    """
    named, at, range_ = text.partition("@")
    repository, slash, name = named.rpartition("/")
    if not name or (slash and not repository) or (at and not range_):
        raise click.BadParameter(f"{text!r}: write NAME, NAME@RANGE or REPOSITORY/NAME@RANGE")
    return repository, name, range_
