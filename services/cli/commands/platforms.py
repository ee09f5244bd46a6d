"""``pkger platforms``."""

import click

from services.cli.options import common, common_options


@click.group()
def platforms() -> None:
    """List platforms."""


@platforms.command("list", epilog="\b\nExamples:\n  pkger platforms list -o json")
@common_options
def list_platforms() -> None:
    """List the platforms, with the organisations that hold something."""
    from services.cli.platforms_list import list_all
    from services.cli.running import run

    run(list_all(common().environ(), common().format))
