"""``pkger operations``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


@click.group()
def operations() -> None:
    """List operations; show, watch, cancel or recover one."""


@operations.command("list", epilog="\b\nExamples:\n  pkger operations list --unfinished")
@click.option("--unfinished", is_flag=True, help="List only unfinished operations.")
@options.platform_option
@options.org_option
@options.limit_option
@common_options
def list_operations(unfinished: bool, platform: str, org: str, limit: int | None) -> None:
    """List the newest operations, of all targets or of one."""
    from services.cli.operations.operations import list_all
    from services.cli.run_async import run

    place = common().target or (platform, org)
    run(list_all(common().environ(), unfinished, place, common().format, limit))


@operations.command("show", epilog="\b\nExamples:\n  pkger operations show 0123456789abcdef")
@click.argument("operation_id", metavar="ID")
@common_options
def show_operation(operation_id: str) -> None:
    """Show operation ID."""
    from services.cli.operations.operations import show
    from services.cli.run_async import run

    run(show(operation_id, common().environ(), common().format))


@operations.command("watch", epilog="\b\nExamples:\n  pkger operations watch 0123456789abcdef -o json")
@click.argument("operation_id", metavar="ID")
@common_options
def watch_operation(operation_id: str) -> None:
    """Show the events of operation ID, from the first to the last."""
    from services.cli.operations.operations import watch
    from services.cli.output.interaction import Interaction
    from services.cli.run_async import run

    run(watch(operation_id, common().environ(), Interaction(common().format, common().quiet)))


@operations.command("cancel", epilog="\b\nExamples:\n  pkger operations cancel 0123456789abcdef")
@click.argument("operation_id", metavar="ID")
@common_options
def cancel_operation(operation_id: str) -> None:
    """Cancel operation ID: it rolls back."""
    from services.cli.operations.operations import cancel
    from services.cli.run_async import run

    run(cancel(operation_id, common().environ(), common().format))


@operations.command(
    "recover", epilog="\b\nExamples:\n  pkger operations recover 0123456789abcdef --step 3=skip --step 5=retry"
)
@click.argument("operation_id", metavar="ID")
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="NUMBER=DECISION",
    help="Decision for a blocked step: retry, skip, force, keep or adopt:ID. May be repeated.",
)
@common_options
def recover_operation(operation_id: str, steps: tuple[str, ...]) -> None:
    """
    Recover operation ID, which is blocked.

    `pkger operations show` lists the blocked steps and the decisions that each allows. retry: look up the step, and
    send it again if it had no effect. skip: give up the step, or its undo. force: overwrite what the platform holds.
    keep: accept what the platform holds as the outcome. adopt:ID: the creation made the resource with that id.
    """
    from services.cli.operations.operations import recover
    from services.cli.output.interaction import Interaction
    from services.cli.run_async import run

    run(recover(operation_id, _decisions(steps), common().environ(), Interaction(common().format, common().quiet)))


def _decisions(values: tuple[str, ...]) -> dict[int, tuple[str, str]]:
    """The options ``NUMBER=DECISION``: decision and id of a resource by step number."""
    from services.cli.operations.operations import DECISIONS

    decisions: dict[int, tuple[str, str]] = {}
    for value in values:
        number, _, text = value.partition("=")
        decision, _, resource_id = text.partition(":")
        if not (number.isascii() and number.isdigit() and decision in DECISIONS):
            raise click.UsageError(
                f"--step {value!r}: write NUMBER=DECISION; decisions are {', '.join(DECISIONS)}, adopt as adopt:ID"
            )
        if int(number) in decisions:
            raise click.UsageError(f"--step: step {number} has two decisions")
        decisions[int(number)] = decision, resource_id
    return decisions
