"""``pkger packages list``, ``tree``, ``why``, ``pin``, ``unpin``, ``mark``, ``suspend`` and ``resume``."""

from typing import Any

import click

from services.cli import options
from services.cli.commands.installs import change, running_options, stack_option
from services.cli.commands.published_packages import refresh_option
from services.cli.common import common
from services.cli.options import common_options


@click.command(
    "list",
    epilog="""\b
Examples:
  pkger packages list
  pkger packages list --outdated
  pkger packages list --stack edge -o json""",
)
@stack_option
@click.option("--outdated", is_flag=True, help="Only those of which a newer version is published.")
@refresh_option
@options.target_options
@common_options
def list_packages(stack: str, outdated: bool, refresh: bool, target: tuple[str, str]) -> None:
    """
    List the installed packages of a stack.

    With --outdated: WANTED is the version that an update of the package alone would reach, LATEST the one that its
    publisher recommends.
    """
    from services.cli.repositories.explained import list_outdated
    from services.cli.repositories.installed import list_installed
    from services.cli.run_async import run

    if outdated:
        run(list_outdated(stack, target, refresh, common().environ(), common().format))
        return
    if refresh:
        raise click.UsageError("--refresh is for --outdated: the list of installed packages is in no repository")
    run(list_installed(stack, target, common().environ(), common().format))


@click.command("tree", epilog="\b\nExamples:\n  pkger packages tree")
@stack_option
@options.target_options
@common_options
def print_tree(stack: str, target: tuple[str, str]) -> None:
    """Print the installed packages of a stack, each with what it requires below it."""
    from services.cli.repositories.installed import print_tree as show
    from services.cli.run_async import run

    run(show(stack, target, common().environ(), common().format))


@click.command("why", epilog="\b\nExamples:\n  pkger packages why base-labels")
@click.argument("name", metavar="NAME")
@stack_option
@refresh_option
@options.target_options
@common_options
def explain_package(name: str, stack: str, refresh: bool, target: tuple[str, str]) -> None:
    """Print why the package NAME is installed, which version an update of it alone would reach, and what blocks it."""
    from services.cli.repositories.explained import why
    from services.cli.run_async import run

    run(why(name, stack, target, refresh, common().environ(), common().format))


def _verb(verb: str, text: str) -> click.Command:
    """The command that changes a pin of installed packages."""

    @click.command(verb, help=text, epilog=f"\b\nExamples:\n  pkger packages {verb} base-labels")
    @click.argument("names", metavar="NAME...", nargs=-1, required=True)
    @running_options
    @common_options
    def command(names: tuple[str, ...], **typed: Any) -> int:
        from pkger.planner.v1.package_pb2 import PackageChange, PinnedPackage

        fields: list[dict[str, Any]] = [{verb: PinnedPackage(name=name)} for name in names]
        return change([PackageChange(**each) for each in fields], **typed)

    return command


pin = _verb("pin", "Let nothing move or remove the installed packages NAME...")
unpin = _verb("unpin", "Let the pinned packages NAME... move again.")
suspend = _verb("suspend", "Let nothing move, remove or apply the installed packages NAME...")
resume = _verb("resume", "Apply the suspended packages NAME... again.")


@click.command("mark", epilog="\b\nExamples:\n  pkger packages mark dependency base-labels")
@click.argument("origin", type=click.Choice(["manual", "dependency"]))
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@running_options
@common_options
def mark(origin: str, names: tuple[str, ...], **typed: Any) -> int:
    """Record that the packages NAME... were asked for, or are dependencies, which go when nothing requires them."""
    from pkger.model.v1.package_change_pb2 import PackageOrigin
    from pkger.planner.v1.package_pb2 import PackageChange, PackageMark

    number = PackageOrigin.Value(f"PACKAGE_ORIGIN_{origin.upper()}")
    return change([PackageChange(mark=PackageMark(name=name, origin=number)) for name in names], **typed)
