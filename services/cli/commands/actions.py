"""``pkger perform`` and ``pkger functions``."""

from typing import Any

import click

from services.cli import options
from services.cli.common import common
from services.cli.options import common_options

secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME.KEY[=PLACE]",
    help="Place of a secret: env:X is variable PKGER_SECRET_X of the applier, file:PATH a file in its folder of"
    " secrets. Without a place, the value is asked for at a terminal; elsewhere it is the next line of standard input.",
)


def _performing(command: options.F) -> options.F:
    """Add the options of all commands that perform an action set."""
    for option in reversed(
        (
            click.option("--dry-run", is_flag=True, help="Show what would be performed only."),
            click.option("--detach", is_flag=True, help="Do not wait for the end; services have to run."),
            click.option("--yes", is_flag=True, help="Perform what may delete resources without asking."),
            options.author_option,
            click.option("--request-id", metavar="ID", help="Id of the request: repeating it has no second effect."),
        )
    ):
        command = option(command)
    return command


performing_options = _performing


@click.command(
    epilog="""\b
Examples:
  pkger perform backup --blueprint stack-backup --object stack/fleet
  pkger perform restore --from backup-x7k2p
  pkger perform backup -f examples/backup.yml --object stack/fleet --dry-run
Exit status: 0 complete, 1 error, 4 the stacks stayed in use, 5 failed or cancelled, 6 blocked."""
)
@click.argument("action")
@click.option("--blueprint", metavar="NAME", help="Stored blueprint that has the action.")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE", help="File with the blueprint; it is not stored.")
@click.option("--from", "predecessor", metavar="NAME", help="Action set whose artifacts and object are used.")
@click.option("--pinned", is_flag=True, help="With --from: the blueprint as that action set had it.")
@click.option(
    "--object",
    "objects",
    multiple=True,
    metavar="stack/NAME|KIND/NAME@STACK",
    help="What the action is performed on. May be repeated: one action for each.",
)
@options.platform_option
@options.org_option
@click.option("--option", "options_", multiple=True, metavar="NAME=TEXT", help="Option of the action.")
@click.option("--config-map", "config_maps", multiple=True, metavar="NAME=NAME", help="Stored config map to use.")
@secret_option
@click.option("--artifact", "artifacts", multiple=True, metavar="NAME.KEY=TEXT", help="Text of an input artifact.")
@click.option("--label", "labels", multiple=True, metavar="NAME=TEXT", help="Label of the action set.")
@click.option("--name", metavar="NAME", help="Name of the action set.  [default: one is made]")
@click.option("--sequential", is_flag=True, help="Perform the actions one after the other.")
@click.option(
    "--wait",
    type=float,
    callback=options.seconds_of_a_day,
    metavar="SECONDS",
    help="Wait so long for the stacks to be free.  [default: 600]",
)
@performing_options
@common_options
def perform(
    action: str,
    blueprint: str | None,
    files: tuple[str, ...],
    predecessor: str | None,
    pinned: bool,
    platform: str,
    org: str,
    options_: tuple[str, ...],
    name: str | None,
    dry_run: bool,
    detach: bool,
    yes: bool,
    author: str,
    request_id: str | None,
    **typed: Any,
) -> int:
    """
    Perform ACTION of a blueprint, and follow it to its end.

    The blueprint is a stored one, that of a file, or that of an earlier action set, whose artifacts the action gets.
    Ctrl-C cancels the action set and waits for its end; a second one leaves it to the services.
    """
    from dataclasses import replace

    from services.cli.actions import perform as performing
    from services.cli.actions.action_set_input import ActionSetInput, action_set_of, secrets_of_request
    from services.cli.output.interaction import Interaction
    from services.cli.run_async import run

    if bool(predecessor) == bool(blueprint or files):
        raise click.UsageError("name what has the action: --blueprint NAME or -f FILE, or else --from NAME")
    if pinned and not predecessor:
        raise click.UsageError("--pinned goes with --from")
    if detach and dry_run:
        raise click.UsageError("--detach and --dry-run exclude each other")
    place = common().place(platform, org)
    if not typed["objects"] and (platform or org or common().target):
        raise click.UsageError("the target is that of --object, and there is none")
    typed_input = ActionSetInput(
        action, blueprint or "", predecessor or "", platform=place[0], org=place[1], options=options_, name=name or "",
        **typed,
    )  # fmt: skip
    action_set_of(typed_input)
    environ = common().environ()
    definitions = run(performing.definitions_of(files, environ)) if files else []
    if definitions is None:
        return 1
    if files:
        typed_input = replace(
            typed_input, blueprint=performing.blueprint_of(definitions, typed_input.blueprint, action)
        )
    secrets = performing.typed_secrets(secrets_of_request(typed_input.secrets), files)
    performance = performing.Performance(
        [performing.of_action_set(action_set_of(typed_input)), *definitions],
        secrets, pinned, dry_run, detach, author, request_id or performing.new_request_id(),
    )  # fmt: skip
    interaction = Interaction(common().format, common().quiet, yes=yes)
    return run(performing.perform(performance, environ, interaction))


@click.command(epilog="\b\nExamples:\n  pkger functions\n  pkger functions ExportStack -o json")
@click.argument("name", default="")
@common_options
def functions(name: str) -> None:
    """List the functions that the phases of blueprints may call, or describe function NAME."""
    from services.cli.actions.functions import list_functions
    from services.cli.run_async import run

    run(list_functions(name, common().environ(), common().format))
