"""``pkger platforms``."""

from typing import TYPE_CHECKING

import click

from services.cli.common import common
from services.cli.options import common_options

if TYPE_CHECKING:
    from services.cli.exit_codes import Exit


@click.group()
def platforms() -> None:
    """List and check platforms."""


@platforms.command("list", epilog="\b\nExamples:\n  pkger platforms list -o json")
@common_options
def list_platforms() -> None:
    """List the platforms, with the organizations that hold resources."""
    from services.cli.platforms.list_platforms import list_all
    from services.cli.run_async import run

    run(list_all(common().environ(), common().format))


@platforms.command(
    "check",
    epilog="\b\nExamples:\n  pkger platforms check\n  pkger platforms check eu --org telemetry\n"
    "  pkger platforms check eu -o json",
)
@click.argument("name", default="", metavar="[NAME]")
@click.option("--org", default="", metavar="ORG", help="Organization in which to check rights, too.")
@common_options
def check_platforms(name: str, org: str) -> "Exit":
    """
    Check platform NAME, or all platforms: connection, credential and organizations.

    With an organization, also check the rights of the credential there. Nothing is written, so rights to write are
    unknown. The exit status is 1 if a check fails.
    """
    from services.cli.platforms.check import check
    from services.cli.run_async import run

    platform, org = common().place(name, org) if common().target else (name, org)
    return run(check(common().environ(), platform, org, common().format))
