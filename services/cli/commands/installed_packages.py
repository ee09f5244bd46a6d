"""``pkger packages list``, ``pin``, ``unpin``, ``mark``, ``suspend`` and ``resume``."""

from typing import Any

import click

from services.cli import options
from services.cli.commands.installs import change, running_options, stack_option
from services.cli.common import common
from services.cli.options import common_options


@click.command("list", epilog="\b\nExamples:\n  pkger packages list\n  pkger packages list --stack edge -o json")
@stack_option
@options.target_options
@common_options
def list_packages(stack: str, target: tuple[str, str]) -> None:
    """List the installed packages of a stack."""
    from services.cli.repositories.installed import list_installed
    from services.cli.run_async import run

    run(list_installed(stack, target, common().environ(), common().format))


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
