"""``pkger repo``."""

from typing import Any

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


@click.group()
def repo() -> None:
    """Publish repositories of packages, and list, add, change and remove those that are read."""


_priority_option = click.option(
    "--priority",
    type=click.IntRange(-(2**31), 2**31 - 1),
    metavar="N",
    help="Of the repositories that have a package, the one with the highest priority serves it; a new one has 0.",
)
_only_option = click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Name of a package, or beginning of names and *: it serves no others. May be repeated.",
)


@repo.command(
    "add",
    epilog="""\b
Examples:
  pkger repo add main https://packages.example.com
  pkger repo add lab file:///srv/packages --priority 10 --only "lab-*\"""",
)
@click.argument("name")
@click.argument("address")
@_priority_option
@_only_option
@common_options
def add_repository(name: str, address: str, priority: int | None, only: tuple[str, ...]) -> None:
    """Add the repository at ADDRESS under NAME: https://HOST/PATH, http://HOST/PATH or file:///PATH."""
    from pkger.stack.v1.repository_pb2 import CreateRepositoryRequest

    from services.cli.repositories.configured import add
    from services.cli.run_async import run

    request = CreateRepositoryRequest(name=name, address=address, priority=priority or 0, only=only)
    run(add(request, common().environ(), common().format))


@repo.command("list", epilog="\b\nExamples:\n  pkger repo list -o json")
@options.limit_option
@common_options
def list_repositories(limit: int | None) -> None:
    """List the repositories, the highest priority first."""
    from services.cli.repositories.configured import list_all
    from services.cli.run_async import run

    run(list_all(common().environ(), common().format, limit))


@repo.command("update", epilog="\b\nExamples:\n  pkger repo update main --priority 5 --no-only")
@click.argument("name")
@click.option("--address", metavar="ADDRESS", help="New address.")
@_priority_option
@_only_option
@click.option("--no-only", is_flag=True, help="Remove all patterns: it may serve every package.")
@click.option("--force", is_flag=True, help="Change the address although packages are installed from the repository.")
@common_options
def update_repository(
    name: str, address: str | None, priority: int | None, only: tuple[str, ...], no_only: bool, force: bool
) -> None:
    """Change address, priority or patterns of repository NAME; --only replaces all of its patterns."""
    from pkger.stack.v1.repository_pb2 import NamePatterns

    if only and no_only:
        raise click.UsageError("--only and --no-only contradict each other")
    if address is None and priority is None and not (only or no_only):
        raise click.UsageError("nothing to change; use --address, --priority, --only or --no-only")
    patterns = NamePatterns(patterns=only) if only or no_only else None
    _update(name, address=address, priority=priority, only=patterns, force=force)


@repo.command("remove", epilog="\b\nExamples:\n  pkger repo remove lab")
@click.argument("name")
@common_options
def remove_repository(name: str) -> None:
    """Remove repository NAME from the list; its files stay."""
    from services.cli.repositories.configured import remove
    from services.cli.run_async import run

    run(remove(name, common().environ(), common().format))


@repo.command("enable", epilog="\b\nExamples:\n  pkger repo enable lab")
@click.argument("name")
@common_options
def enable_repository(name: str) -> None:
    """Read packages from repository NAME again."""
    _update(name, enabled=True)


@repo.command("disable", epilog="\b\nExamples:\n  pkger repo disable lab")
@click.argument("name")
@common_options
def disable_repository(name: str) -> None:
    """Read no packages from repository NAME, and keep it in the list."""
    _update(name, enabled=False)


def _update(name: str, **changes: Any) -> None:
    from pkger.stack.v1.repository_pb2 import UpdateRepositoryRequest

    from services.cli.repositories.configured import update
    from services.cli.run_async import run

    run(update(UpdateRepositoryRequest(name=name, **changes), common().environ(), common().format))
