"""``pkger plans``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


@click.group()
def plans() -> None:
    """List stored plans; show or delete one."""


@plans.command("list", epilog="\b\nExamples:\n  pkger plans list --stack fleet")
@click.option("--stack", default="", metavar="NAME", help="List only plans for stacks of this name.")
@options.platform_option
@options.org_option
@options.limit_option
@common_options
def list_plans(stack: str, platform: str, org: str, limit: int | None) -> None:
    """List the newest plans, of all targets or of one."""
    from services.cli.plan.stored_plans import list_all
    from services.cli.run_async import run

    place = common().target or (platform, org)
    run(list_all(common().environ(), stack, place, common().format, limit))


@plans.command("show", epilog="\b\nExamples:\n  pkger plans show 0123456789abcdef --full")
@click.argument("plan_id", metavar="ID")
@options.full_option
@common_options
def show_plan(plan_id: str, full: bool) -> None:
    """Show plan ID and its state."""
    from services.cli.plan.stored_plans import show
    from services.cli.run_async import run

    run(show(plan_id, common().environ(), common().format, full))


@plans.command("delete", epilog="\b\nExamples:\n  pkger plans delete 0123456789abcdef")
@click.argument("plan_id", metavar="ID")
@common_options
def delete_plan(plan_id: str) -> None:
    """Delete plan ID, which no operation has run."""
    from services.cli.plan.stored_plans import delete
    from services.cli.run_async import run

    run(delete(plan_id, common().environ()))
