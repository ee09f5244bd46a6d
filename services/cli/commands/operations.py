"""``pkger operations``."""

import click

from services.cli import options
from services.cli.options import common, common_options


@click.group()
def operations() -> None:
    """List operations; show, watch, cancel or recover one."""


@operations.command("list", epilog="\b\nExamples:\n  pkger operations list --unfinished")
@click.option("--unfinished", is_flag=True, help="Only those that are not finished.")
@options.platform_option
@options.org_option
@options.limit_option
@common_options
def list_operations(unfinished: bool, platform: str, org: str, limit: int | None) -> None:
    """List the newest operations: all, or those of an organisation."""
    from services.cli.operations import list_all
    from services.cli.running import run

    place = common().target or (platform, org)
    run(list_all(common().environ(), unfinished, place, common().format, limit))


@operations.command("show", epilog="\b\nExamples:\n  pkger operations show 0123456789abcdef")
@click.argument("name")
@common_options
def show_operation(name: str) -> None:
    """Show operation NAME."""
    from services.cli.operations import show
    from services.cli.running import run

    run(show(name, common().environ(), common().format))


@operations.command("watch", epilog="\b\nExamples:\n  pkger operations watch 0123456789abcdef -o json")
@click.argument("name")
@common_options
def watch_operation(name: str) -> None:
    """Show what happens in operation NAME, from its beginning to its end."""
    from services.cli.operations import watch
    from services.cli.packages import Manner
    from services.cli.running import run

    run(watch(name, common().environ(), Manner(common().format, common().quiet)))


@operations.command("cancel", epilog="\b\nExamples:\n  pkger operations cancel 0123456789abcdef")
@click.argument("name")
@common_options
def cancel_operation(name: str) -> None:
    """Ask operation NAME to roll back."""
    from services.cli.operations import cancel
    from services.cli.running import run

    run(cancel(name, common().environ(), common().format))


@operations.command(
    "recover", epilog="\b\nExamples:\n  pkger operations recover 0123456789abcdef --step 3=skip --step 5=retry"
)
@click.argument("name")
@click.option(
    "--step",
    "steps",
    multiple=True,
    metavar="NUMBER=WAY",
    help="What is decided for a blocked step: retry, skip, force, keep or adopt:ID. May be repeated.",
)
@common_options
def recover_operation(name: str, steps: tuple[str, ...]) -> None:
    """
    Carry on operation NAME, which is blocked.

    `pkger operations show` lists the blocked steps and the ways out that fit. retry: look again, and send it again if
    it did not happen. skip: give the step, or its undo, up. force: write over whatever is there. keep: take what is
    there as the outcome. adopt:ID: the creation made the resource with that id.
    """
    from services.cli.operations import recover
    from services.cli.packages import Manner
    from services.cli.running import run

    run(recover(name, _decisions(steps), common().environ(), Manner(common().format, common().quiet)))


def _decisions(values: tuple[str, ...]) -> dict[int, tuple[str, str]]:
    """NUMBER=WAY texts, as word and id of a resource by step number."""
    from services.cli.operations import DECISIONS

    decisions: dict[int, tuple[str, str]] = {}
    for value in values:
        number, _, way = value.partition("=")
        word, _, resource_id = way.partition(":")
        if not (number.isascii() and number.isdigit() and word in DECISIONS):
            raise click.UsageError(
                f"--step {value!r}: write NUMBER=WAY; ways are {', '.join(DECISIONS)}, adopt as adopt:ID"
            )
        if int(number) in decisions:
            raise click.UsageError(f"--step: step {number} is decided twice")
        decisions[int(number)] = word, resource_id
    return decisions
