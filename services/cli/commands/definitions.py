"""``pkger blueprints`` and ``configmaps``."""

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options


def _definitions(kind: str, command: str, noun: str) -> click.Group:
    """The commands for the definitions of *kind*."""

    @click.group(command, help=f"Store, list, show and delete {noun}s, from which action sets are made.")
    def group() -> None:
        pass

    @group.command("apply", epilog=f"\b\nExamples:\n  pkger {command} apply -f backup.yml")
    @options.file_option
    @options.more_files
    @common_options
    def apply(files: tuple[str, ...], more_files: tuple[str, ...]) -> int:
        """Store the blueprints and config maps in FILE..., all of them or none. Exit status 1: they are invalid."""
        from services.cli.definitions.stored import store
        from services.cli.run_async import run

        if not files + more_files:
            raise click.UsageError("name the files with definitions with -f FILE")
        return 0 if run(store((*files, *more_files), common().environ(), common().format)) else 1

    @group.command("list", help=f"List the stored {noun}s.", epilog=f"\b\nExamples:\n  pkger {command} list -o json")
    @options.limit_option
    @common_options
    def list_stored(limit: int | None) -> None:
        from services.actions.definitions import DefinitionKind
        from services.cli.definitions.stored import list_all
        from services.cli.run_async import run

        run(list_all(DefinitionKind(kind), common().environ(), common().format, limit))

    @group.command(
        "show", help=f"Print the stored {noun} NAME.", epilog=f"\b\nExamples:\n  pkger {command} show backup"
    )
    @click.argument("name")
    @common_options
    def show_stored(name: str) -> None:
        from services.actions.definitions import DefinitionKind
        from services.cli.definitions.stored import show
        from services.cli.run_async import run

        run(show(DefinitionKind(kind), name, common().environ(), common().format))

    @group.command(
        "delete",
        help=f"Delete the stored {noun} NAME; action sets that were made from it stay as they are.",
        epilog=f"\b\nExamples:\n  pkger {command} delete backup",
    )
    @click.argument("name")
    @common_options
    def delete_stored(name: str) -> None:
        from services.actions.definitions import DefinitionKind
        from services.cli.definitions.stored import delete
        from services.cli.run_async import run

        run(delete(DefinitionKind(kind), name, common().environ(), common().format))

    return group


blueprints = _definitions("Blueprint", "blueprints", "blueprint")
configmaps = _definitions("ConfigMap", "configmaps", "config map")
