"""``pkger token``: tokens for other programs."""

import click

from services.cli.common import caller, home_folder


@click.group()
def token() -> None:
    """Print tokens, with which other programs call the services."""


@token.command(
    "local",
    epilog="\b\nExamples:\n  export PKGER_TOKEN=$(pkger token local)\n"
    "  INFLUX_TOKEN=$(pkger token local) influx stacks",
)
@click.option("--rotate", is_flag=True, help="Make a new token; the one before is refused from now on.")
def local(rotate: bool) -> None:
    """
    Print the token of PKGER_HOME, which is made if there is none.

    The services of this home accept it at their ports on this machine. Keep it out of arguments, as other users can
    read these.
    """
    from services.access.token_file import TokenUnusable, home_token, rotate_home_token
    from services.cli.errors import CommandFailed

    home = home_folder(caller().environ)
    try:
        file = rotate_home_token(home) if rotate else home_token(home)
        click.echo(file.token(), file=caller().stdout)
    except TokenUnusable as error:
        raise CommandFailed(str(error)) from error
