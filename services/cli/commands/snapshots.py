"""``pkger snapshots``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


@click.group()
def snapshots() -> None:
    """List snapshots; show, save, verify or delete one. ID may be the first 12 digits, or more."""


@snapshots.command("list", epilog="\b\nExamples:\n  pkger snapshots list --stack fleet")
@click.option("--stack", default="", metavar="NAME", help="Only those of stacks with this name.")
@options.limit_option
@common_options
def list_snapshots(stack: str, limit: int | None) -> None:
    """List the newest snapshots."""
    from services.cli.actions.snapshots import list_all
    from services.cli.run_async import run

    run(list_all(stack, common().environ(), common().format, limit))


@snapshots.command("show", epilog="\b\nExamples:\n  pkger snapshots show 5f70bf18a086")
@click.argument("snapshot_id", metavar="ID")
@common_options
def show_snapshot(snapshot_id: str) -> None:
    """Show snapshot ID: what it is of, what made it, and what it lacks."""
    from services.cli.actions.snapshots import show
    from services.cli.run_async import run

    run(show(snapshot_id, common().environ(), common().format))


@snapshots.command("save", epilog="\b\nExamples:\n  pkger snapshots save 5f70bf18a086 fleet.yml")
@click.argument("snapshot_id", metavar="ID")
@click.argument("file", default="", metavar="[FILE]")
@common_options
def save_snapshot(snapshot_id: str, file: str) -> None:
    """Write the package of snapshot ID to FILE, JSON if it ends with .json, or to standard output."""
    from services.cli.actions.snapshots import save
    from services.cli.run_async import run

    run(save(snapshot_id, file, common().environ(), common().quiet))


@snapshots.command("verify", epilog="\b\nExamples:\n  pkger snapshots verify 5f70bf18a086")
@click.argument("snapshot_id", metavar="ID")
@common_options
def verify_snapshot(snapshot_id: str) -> None:
    """Read all contents of snapshot ID, and check their digests."""
    from services.cli.actions.snapshots import verify
    from services.cli.run_async import run

    run(verify(snapshot_id, common().environ(), common().format))


@snapshots.command("delete", epilog="\b\nExamples:\n  pkger snapshots delete 5f70bf18a086")
@click.argument("snapshot_id", metavar="ID")
@options.author_option
@common_options
def delete_snapshot(snapshot_id: str, author: str) -> None:
    """Delete snapshot ID. Whoever begins something with it is refused; action sets that use it go on."""
    from services.cli.actions.snapshots import delete
    from services.cli.run_async import run

    run(delete(snapshot_id, author, common().environ(), common().format))
