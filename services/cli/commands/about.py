"""``pkger config``, ``version`` and ``completion``: about the command itself."""

import os

import click

from services.cli.common import caller, common, home_folder
from services.cli.options import common_options


@click.group()
def config() -> None:
    """Manage contexts: named servers, their tokens, and targets, in PKGER_HOME/config.yml."""


@config.command("list", epilog="\b\nExamples:\n  pkger config list -o yaml")
@common_options
def list_contexts() -> None:
    """List the contexts; a star marks the one in use."""
    from services.cli.contexts import contexts
    from services.cli.output.consoles import console
    from services.cli.output.documents import print_document
    from services.cli.output.tables import print_table

    rows = contexts(home_folder(caller().environ))
    if common().format == "text":
        titles = ("", "NAME", "SERVER", "TARGET", "TOKEN FILE")
        print_table(
            console(),
            titles,
            [
                ("*" if row["current"] else "", row["name"], row["server"], row["target"], row["token_file"])
                for row in rows
            ],
        )
    else:
        print_document(rows, common().format)


@config.command("use", epilog='\b\nExamples:\n  pkger config use prod\n  pkger config use ""    # none')
@click.argument("name")
def use_context(name: str) -> None:
    """Make context NAME the one in use; options and environment variables override it."""
    from services.cli.contexts import use
    from services.cli.output.consoles import console

    use(home_folder(caller().environ), name)
    console(stderr=True).print(f"using {name}" if name else "using no context")


@config.command(
    "set",
    epilog="\b\nExamples:\n  pkger config set prod --server pkger.example.com --token-file ~/.pkger/prod-token"
    " --target influx/main",
)
@click.argument("name")
@click.option("--token-file", metavar="FILE", help="The file with the token for the server; others may not read it.")
@common_options
def set_context(name: str, token_file: str | None) -> None:
    """Create context NAME, or change its --server, --token-file and --target."""
    from services.access.tokens import digest_of
    from services.cli.contexts import change

    if token_file and digest_of(token_file):
        raise click.BadParameter("write the name of a file with the token, not the token", param_hint="--token-file")
    typed = common()
    fields = {
        "server": typed.server,
        "target": "/".join(typed.target) if typed.target else None,
        "token_file": os.path.abspath(token_file) if token_file else token_file,
    }
    change(home_folder(caller().environ), name, {field: value for field, value in fields.items() if value is not None})


@click.command(epilog="\b\nExamples:\n  pkger version -o json")
@common_options
def version() -> None:
    """Print the version of the command."""
    import platform
    from importlib.metadata import version as version_of

    from services.cli.output.documents import print_document

    versions = {"pkger": version_of("pkger"), "python": platform.python_version()}
    if common().format == "text":
        click.echo(f"pkger {versions['pkger']}", file=caller().stdout)
    else:
        print_document(versions, common().format)


@click.command(epilog="\b\nExamples:\n  source <(pkger completion bash)\n  pkger completion zsh > ~/.zfunc/_pkger")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    assert shell_class is not None  # noqa: S101 - one of the choices
    click.echo(shell_class(context.find_root().command, {}, "pkger", "_PKGER_COMPLETE").source(), file=caller().stdout)
