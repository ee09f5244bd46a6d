"""``pkger actionsets``."""

import click

from services.cli import options
from services.cli.commands.actions import performing_options
from services.cli.common import common
from services.cli.options import common_options


@click.group("actionsets")
def action_sets() -> None:
    """Create action sets of files; list, show, watch, cancel and delete them."""


@action_sets.command("create", epilog="\b\nExamples:\n  pkger actionsets create -f nightly.yml --yes")
@options.file_option
@options.more_files
@performing_options
@common_options
def create(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    dry_run: bool,
    detach: bool,
    yes: bool,
    author: str,
    request_id: str | None,
) -> int:
    """
    Perform the action set in FILE..., and follow it to its end.

    Blueprints and config maps of the files take the place of stored ones. Values of secrets that come with the request
    are asked for at a terminal; elsewhere each is a line of standard input, in the order of their names.
    """
    import orjson

    from services.cli.actions import perform as performing
    from services.cli.errors import CommandFailed
    from services.cli.output.interaction import Interaction
    from services.cli.run_async import run

    names = files + more_files
    if not names:
        raise click.UsageError("name the file with the action set with -f FILE")
    if detach and dry_run:
        raise click.UsageError("--detach and --dry-run exclude each other")
    environ = common().environ()
    definitions = run(performing.definitions_of(names, environ))
    if definitions is None:
        return 1
    sets = [each for each in definitions if each.kind == "ActionSet"]
    if len(sets) != 1:
        raise CommandFailed(f"the files have {len(sets) or 'no'} action set{'s' * (len(sets) > 1)}; write one")
    secrets = performing.typed_secrets(performing.secrets_of_document(orjson.loads(sets[0].json)), names)
    performance = performing.Performance(
        definitions, secrets, False, dry_run, detach, author, request_id or performing.new_request_id()
    )
    return run(performing.perform(performance, environ, Interaction(common().format, common().quiet, yes=yes)))


@action_sets.command("list", epilog="\b\nExamples:\n  pkger actionsets list --stack fleet --state failed")
@click.option("--stack", default="", metavar="NAME", help="Only those with this stack among their objects.")
@options.platform_option
@options.org_option
@click.option("--blueprint", default="", metavar="NAME", help="Only those of this blueprint.")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only those in this state. May be repeated.")
@click.option("--from", "predecessor", default="", metavar="NAME", help="Only those made from this action set.")
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="Only those with this label.")
@options.limit_option
@common_options
def list_action_sets(
    stack: str,
    platform: str,
    org: str,
    blueprint: str,
    states: tuple[str, ...],
    predecessor: str,
    labels: tuple[str, ...],
    limit: int | None,
) -> None:
    """List the newest action sets."""
    from services.cli.actions.action_set_input import named_texts
    from services.cli.actions.action_sets import STATES, ActionSetFilter, list_all
    from services.cli.run_async import run

    for state in states:
        if state not in STATES:
            raise click.UsageError(f"--state {state!r}: states are {', '.join(STATES)}")
    chosen = ActionSetFilter(
        stack, common().place(platform, org), blueprint, states, predecessor, named_texts("--label", labels)
    )
    run(list_all(chosen, common().environ(), common().format, limit))


@action_sets.command("show", epilog="\b\nExamples:\n  pkger actionsets show backup-x7k2p")
@click.argument("name")
@common_options
def show_action_set(name: str) -> None:
    """Show action set NAME with its phases and artifacts."""
    from services.cli.actions.action_sets import show
    from services.cli.run_async import run

    run(show(name, common().environ(), common().format))


@action_sets.command("watch", epilog="\b\nExamples:\n  pkger actionsets watch backup-x7k2p")
@click.argument("name")
@common_options
def watch_action_set(name: str) -> None:
    """Show the events of action set NAME, from the first to the last."""
    from services.cli.actions.action_sets import follow
    from services.cli.output.interaction import Interaction
    from services.cli.run_async import run

    run(follow(name, common().environ(), Interaction(common().format, common().quiet)))


@action_sets.command("cancel", epilog="\b\nExamples:\n  pkger actionsets cancel backup-x7k2p")
@click.argument("name")
@common_options
def cancel_action_set(name: str) -> None:
    """Cancel action set NAME: running phases end, then deferPhases run."""
    from services.cli.actions.action_sets import cancel
    from services.cli.run_async import run

    run(cancel(name, common().environ(), common().format))


@action_sets.command("delete", epilog="\b\nExamples:\n  pkger actionsets delete backup-x7k2p")
@click.argument("name")
@click.option("--force", is_flag=True, help="Also a blocked one, and with the snapshots that it made.")
@common_options
def delete_action_set(name: str, force: bool) -> None:
    """Delete action set NAME, which has ended."""
    from services.cli.actions.action_sets import delete
    from services.cli.run_async import run

    run(delete(name, force, common().environ(), common().format))
