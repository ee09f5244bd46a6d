"""Options of commands, and what several of them mean together."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

_LONGEST_SECONDS = 365 * 86_400

F = TypeVar("F", bound=Callable[..., Any])

SERVER_HELP = (
    "Host whose services to use, on their default ports. Without it, and without PKGER_SERVER or"
    " PKGER_<SERVICE>_ADDRESS in the environment or a context in use, the services run for the time of this call, on"
    " databases in PKGER_HOME (~/.pkger)."
)

SERVICES = ("parser", "planner", "applier", "stack", "platform")


@dataclass
class Common:
    """
    What is typed for any command, before its name or behind it; None: not typed.

    Attributes:
        server: Host whose services to use.
        target: Platform and organisation.
        output: How to print.
        quiet: Print nothing but data and errors.
        timeout: Seconds that the command may take.
    """

    server: str | None = None
    target: tuple[str, str] | None = None
    output: str | None = None
    quiet: bool = False
    timeout: float | None = None

    @property
    def format(self) -> str:
        """How to print: "text", "json" or "yaml"."""
        return self.output or "text"

    def environ(self) -> dict[str, str]:
        """The environment of this process, with the server that is typed, else configured, else that of a context."""
        environ = dict(os.environ)
        variables = ["PKGER_SERVER", *(f"PKGER_{name.upper()}_ADDRESS" for name in SERVICES)]
        if self.server:
            # What is typed wins over all that is configured.
            return {key: value for key, value in environ.items() if key not in variables} | {
                "PKGER_SERVER": self.server
            }
        if not any(environ.get(name) for name in variables) and (server := _context(environ).get("server")):
            environ["PKGER_SERVER"] = server
        return environ

    def place(self, platform: str, org: str) -> tuple[str, str]:
        """
        Platform and organisation of the options of that name, of ``--target``, or of a context; empty for the default.

        Raises:
            UsageError: The options contradict each other.
        """
        if self.target:
            for name, given, meant in zip(("--platform", "--org"), (platform, org), self.target, strict=True):
                if given and given != meant:
                    raise click.UsageError(f"{name} {given} contradicts --target {'/'.join(self.target)}")
            return self.target
        written = _context(os.environ).get("target", "")
        known = _split(written) if written else ("", "")
        return platform or known[0], org or known[1]


def _context(environ: Mapping[str, str]) -> Mapping[str, str]:
    home = Path(environ.get("PKGER_HOME") or Path.home() / ".pkger")
    if not (home / "config.yml").exists():
        return {}
    from services.cli.config import in_use

    return in_use(home)


def common() -> Common:
    """What was typed for the command that runs."""
    return click.get_current_context().find_root().ensure_object(Common)


def _host(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A host without a port: each service has one of its own. An IPv6 address stands in brackets."""
    if value and ":" in value and not value.endswith("]"):
        raise click.BadParameter("write the host without a port (an IPv6 address in brackets)")
    return value


def _target(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, str] | None:
    return None if value is None else _split(value)


def _split(value: str) -> tuple[str, str]:
    platform, slash, org = value.partition("/")
    if not (platform and slash and org):
        raise click.BadParameter(f"{value!r}: write PLATFORM/ORG, such as embedded/default")
    return platform, org


def _seconds(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_SECONDS:
        raise click.BadParameter("write a number of seconds above 0")
    return value


def _waiting(_context: click.Context, _option: click.Parameter, value: float) -> float:
    if not 0 <= value <= _LONGEST_SECONDS:
        raise click.BadParameter("write a number of seconds, at most a year")
    return value


def _kept(name: str, check: Callable[..., Any] | None = None) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Note what is typed for all commands; what stands behind the name of the command wins."""

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        checked = check(context, option, value) if check else value
        if checked is not None and checked is not False:
            setattr(context.find_root().ensure_object(Common), name, checked)

    return keep


def _colourless(_context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value:
        os.environ["NO_COLOR"] = "1"


server_option = click.option(
    "--server", metavar="HOST", callback=_kept("server", _host), expose_value=False, help=SERVER_HELP
)
_target_option = click.option(
    "--target",
    metavar="PLATFORM/ORG",
    callback=_kept("target", _target),
    expose_value=False,
    help="Platform and organisation.  [default: embedded/default]",
)


class _Revision(click.IntRange):
    """A number from 1 on, with an error that says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, None, None)
        except click.BadParameter:
            self.fail(f"{value!r} is no revision: they are counted from 1", param, ctx)


REVISION = _Revision(1, 2**63 - 1)
"""Number of a revision; which there are, the store knows."""

_output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    callback=_kept("output"),
    expose_value=False,
    help="How to print.  [default: text]",
)
_talk_options = (
    click.option("--quiet", "-q", is_flag=True, callback=_kept("quiet"), expose_value=False, help="No progress."),
    click.option("--no-color", is_flag=True, callback=_colourless, expose_value=False, help="No colours (NO_COLOR)."),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        callback=_kept("timeout", _seconds),
        expose_value=False,
        help="Give up after so long.",
    ),
)


def export_options(command: F) -> F:
    """Take the options of all commands but ``-o``, which is a file there."""
    for option in reversed((server_option, _target_option, *_talk_options)):
        command = option(command)
    return command


def common_options(command: F) -> F:
    """Take the options of all commands."""
    for option in reversed((server_option, _target_option, _output_option, *_talk_options)):
        command = option(command)
    return command


def stack_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """The name of a stack; empty when none is named. A name that is empty is that of a variable that is not set."""
    if value == "":
        raise click.BadParameter("the name is empty; leave it out to work without a stack, or without a name")
    return value or ""


def _place(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """A platform or an organisation; empty when none is named."""
    if value == "":
        raise click.BadParameter("the name is empty; leave the option out for the default")
    return value or ""


stack_option = click.option("--stack", callback=stack_name, metavar="NAME", help="Stack that keeps what is applied.")
platform_option = click.option(
    "--platform", callback=_place, metavar="NAME", help="Platform, a row of the platforms file.  [default: embedded]"
)
org_option = click.option(
    "--org", callback=_place, metavar="ORG", help="Organisation on the platform.  [default: default]"
)
file_option = click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE", help="Package file or http(s) address; - is stdin."
)
encoding_option = click.option(
    "-e",
    "--encoding",
    type=click.Choice(["yml", "yaml", "json", "jsonnet"]),
    help="What standard input holds, and files whose names do not say it.",
)
recursive_option = click.option("-R", "--recursive", is_flag=True, help="Take all package files in folders, too.")
more_files = click.argument("more_files", nargs=-1, metavar="[FILE]...")
env_option = click.option(
    "--env-ref",
    "env",
    multiple=True,
    metavar="KEY=VALUE",
    help="Value for an environment reference of the package; KEY:=JSON for what is no text.",
)
env_file_option = click.option(
    "--env-file", "env_files", multiple=True, metavar="FILE", help="Mapping of environment values, in YAML or JSON."
)
skip_option = click.option(
    "--skip",
    multiple=True,
    metavar="KIND[:NAME]",
    help="Leave an object out, or a whole kind: neither apply nor remove it.",
)
allow_empty_option = click.option(
    "--allow-empty", is_flag=True, help="A package without objects may take all from the stack."
)
allow_replace_option = click.option(
    "--allow-replace", is_flag=True, help="What no stack owns may be deleted, to be created anew."
)
allow_missing_option = click.option(
    "--allow-missing", is_flag=True, help="Go on although environment values or secrets are missing."
)
secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Secret to write to the platform first. Without =VALUE, which others on this machine can see, it is asked for"
    " at a terminal, and is the next line of standard input elsewhere.",
)
secret_keys_option = click.option(
    "--secret", "secrets", multiple=True, metavar="KEY", help="Secret that is going to be given with the apply."
)
full_option = click.option("--full", is_flag=True, help="Show all of the plan: every step, field and line.")


def _author(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Who asks: as typed, else the name of the user."""
    if value is not None:
        return value
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        # A user without a name, as in some containers.
        return ""


author_option = click.option(
    "--author", callback=_author, metavar="NAME", help="Who asks for it, for the history.  [default: the user's name]"
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask at a terminal.")


secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Secret to write to the platform first. Without =VALUE, which others on this machine can see, it is asked for"
    " at a terminal, and is the next line of standard input elsewhere.",
)
secret_keys_option = click.option(
    "--secret", "secrets", multiple=True, metavar="KEY", help="Secret that is going to be given with the apply."
)
secret_file_option = click.option(
    "--secret-file", "secret_files", multiple=True, metavar="FILE", help="Mapping of secrets, in YAML or JSON."
)
full_option = click.option("--full", is_flag=True, help="Show all of the plan: every step, field and line.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
wait_option = click.option(
    "--wait",
    type=float,
    default=0,
    callback=_waiting,
    metavar="SECONDS",
    help="Wait so long for another operation of the stack to end.",
)
limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many.")
