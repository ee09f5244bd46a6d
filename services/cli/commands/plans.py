"""``pkger plans``."""

import click

from services.cli import options
from services.cli.options import common, common_options


@click.group()
def plans() -> None:
    """List saved plans and those of operations; show or delete one."""


@plans.command("list", epilog="\b\nExamples:\n  pkger plans list --stack fleet")
@click.option("--stack", default="", metavar="NAME", help="Only plans for stacks of this name.")
@options.platform_option
@options.org_option
@options.limit_option
@common_options
def list_plans(stack: str, platform: str, org: str, limit: int | None) -> None:
    """List the newest plans: all, or those of an organisation."""
    from services.cli.plans import list_all
    from services.cli.running import run

    place = common().target or (platform, org)
    run(list_all(common().environ(), stack, place, common().format, limit))


@plans.command("show", epilog="\b\nExamples:\n  pkger plans show 0123456789abcdef --full")
@click.argument("name")
@options.full_option
@common_options
def show_plan(name: str, full: bool) -> None:
    """Show plan NAME, and what became of it."""
    from services.cli.plans import show
    from services.cli.running import run

    run(show(name, common().environ(), common().format, full))


@plans.command("delete", epilog="\b\nExamples:\n  pkger plans delete 0123456789abcdef")
@click.argument("name")
@common_options
def delete_plan(name: str) -> None:
    """Delete plan NAME, which nobody applied."""
    from services.cli.plans import delete
    from services.cli.running import run

    run(delete(name, common().environ()))
