"""Options that several commands have, and how they combine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from services.cli.common import Common, caller, common, target_pair

if TYPE_CHECKING:
    from pkger.applier.v1.applier_pb2 import RunOptions
    from pkger.planner.v1.planner_pb2 import PlanOptions
_DAY_SECONDS = 86_400
_LONGEST_SECONDS = 365 * _DAY_SECONDS


F = TypeVar("F", bound=Callable[..., Any])


SERVER_HELP = (
    "Host of the services, which are called on their default ports. Without it, and without PKGER_SERVER,"
    " PKGER_<SERVICE>_ADDRESS or a context in use, the services of `pkger up` are called, at their sockets in"
    " PKGER_HOME (~/.pkger); if none answers, services run for the time of this command, on databases there."
)


def _host(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """A host without a port, as each service has its own; an IPv6 address is in brackets."""
    from services.core.addresses import is_host

    if value and not is_host(value):
        raise click.BadParameter("write the host without a port (an IPv6 address in brackets)")
    return value


def _target(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, str] | None:
    return None if value is None else target_pair(value)


def _seconds(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value <= _LONGEST_SECONDS:
        raise click.BadParameter("write a number of seconds above 0")
    return value


def _waiting(_context: click.Context, _option: click.Parameter, value: float) -> float:
    if not 0 <= value <= _LONGEST_SECONDS:
        raise click.BadParameter("write a number of seconds, at most a year")
    return value


def seconds_of_a_day(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    """A number of seconds, which may be 0, and at most a day; None without the option."""
    if value is not None and not 0 <= value <= _DAY_SECONDS:
        raise click.BadParameter("write a number of seconds, at most a day")
    return value


def _kept(name: str, check: Callable[..., Any] | None = None) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Store an option in ``Common``; one after the name of the command overrides one before it."""

    def keep(context: click.Context, option: click.Parameter, value: Any) -> None:
        checked = check(context, option, value) if check else value
        if checked is not None and checked is not False:
            setattr(context.find_root().ensure_object(Common), name, checked)

    return keep


server_option = click.option(
    "--server", metavar="HOST", callback=_kept("server", _host), expose_value=False, help=SERVER_HELP
)


_target_option = click.option(
    "--target",
    metavar="PLATFORM/ORG",
    callback=_kept("target", _target),
    expose_value=False,
    help="Platform and organization.  [default: embedded/default]",
)


class _Revision(click.IntRange):
    """A number of at least 1, with an error that names the rule."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, None, None)
        except click.BadParameter:
            self.fail(f"{value!r} is not a revision: revisions are numbers from 1", param, ctx)


REVISION = _Revision(1, 2**63 - 1)
"""Number of a revision; the store knows which revisions exist."""


_output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "yaml"]),
    callback=_kept("output"),
    expose_value=False,
    help="Output format.  [default: text]",
)


_talk_options = (
    click.option(
        "--quiet", "-q", is_flag=True, callback=_kept("quiet"), expose_value=False, help="Print only data and errors."
    ),
    click.option(
        "--no-color",
        is_flag=True,
        callback=_kept("no_color"),
        expose_value=False,
        help="No colours, as with NO_COLOR.",
    ),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        callback=_kept("timeout", _seconds),
        expose_value=False,
        help="Fail after so many seconds.",
    ),
)


def export_options(command: F) -> F:
    """Add the options of all commands except ``-o``, which names a file in ``pkger export``."""
    for option in reversed((server_option, _target_option, *_talk_options)):
        command = option(command)
    return command


def common_options(command: F) -> F:
    """Add the options of all commands."""
    for option in reversed((server_option, _target_option, _output_option, *_talk_options)):
        command = option(command)
    return command


def stack_name(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """
    The name of a stack; empty without the option. An empty name, for example from an unset shell variable, is refused.
    """
    if value == "":
        raise click.BadParameter("the name is empty; omit it for no stack, or for a stack without a name")
    return value or ""


def _place(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """A platform or an organization; empty without the option."""
    if value == "":
        raise click.BadParameter("the name is empty; omit the option for the default")
    return value or ""


def _grouped(parameter: str, make: Callable[..., Any], *added: Callable[[F], F]) -> Callable[[F], F]:
    """
    A decorator that adds options to a command, which gets their values as one value.

    Args:
        parameter: The parameter of the command for that value.
        make: Makes it from the values of the options, by their names.
        added: The options.
    """
    names = _names_of(added)

    def decorated(command: F) -> F:
        @wraps(command)
        def with_group(**values: Any) -> Any:
            return command(**{parameter: make(**{name: values.pop(name) for name in names})}, **values)

        wrapped = cast("F", with_group)
        for option in reversed(added):
            wrapped = option(wrapped)
        return wrapped

    return decorated


def _names_of(added: Sequence[Callable[[F], F]]) -> list[str]:
    """The names of the parameters that options add to a command."""

    def command() -> None:
        """A command without options."""

    for option in added:
        option(cast("F", command))
    return [parameter.name for parameter in command.__click_params__]  # type: ignore[attr-defined]


stack_option = click.option("--stack", callback=stack_name, metavar="NAME", help="Stack that records what is applied.")


platform_option = click.option(
    "--platform", callback=_place, metavar="NAME", help="Platform, a row of the platforms file.  [default: embedded]"
)


org_option = click.option(
    "--org", callback=_place, metavar="ORG", help="Organization on the platform.  [default: default]"
)


file_option = click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE", help="Package file or http(s) address; - is stdin."
)


encoding_option = click.option(
    "-e",
    "--encoding",
    type=click.Choice(["yml", "yaml", "json", "jsonnet"]),
    help="Encoding of standard input, and of files whose names do not show it.",
)


jpath_option = click.option(
    "--jpath",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Folder with libraries that Jsonnet programs may import; the last one is searched first.  [default: folders of"
    " PKGER_JPATH]",
)


recursive_option = click.option("-R", "--recursive", is_flag=True, help="Read all package files in folders.")


more_files = click.argument("more_files", nargs=-1, metavar="[FILE]...")


env_option = click.option(
    "--env-ref",
    "env",
    multiple=True,
    metavar="KEY=VALUE",
    help="Value for an environment reference of the package; KEY:=JSON for any JSON value.",
)


env_file_option = click.option(
    "--env-file", "env_files", multiple=True, metavar="FILE", help="YAML or JSON file of environment values."
)


secret_option = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="Secret to write to the platform first. Other users of this machine can see =VALUE. Without it, the value is"
    " asked for at a terminal; elsewhere it is the next line of standard input.",
)


secret_keys_option = click.option(
    "--secret", "secrets", multiple=True, metavar="KEY", help="Secret that the apply will supply."
)


def _snapshot_id(_context: click.Context, _option: click.Parameter, value: str) -> str:
    """The id of a snapshot; empty without the option."""
    from services.actions.snapshots import is_snapshot_id

    if value and not is_snapshot_id(value):
        raise click.BadParameter("write the id of a snapshot, sha256: and 64 hex digits")
    return value


snapshot_option = click.option(
    "--snapshot",
    default="",
    callback=_snapshot_id,
    metavar="ID",
    help="Restore this snapshot into the stack, instead of FILE... and the URLs of the stack.",
)


target_options = _grouped("target", lambda platform, org: common().place(platform, org), platform_option, org_option)
"""Platform and organization, as one pair."""


@dataclass(frozen=True, slots=True)
class PackageOptions:
    """
    How the files of a package are read, as typed.

    Attributes:
        recursive: Whether a folder stands for the package files in it and below.
        encoding: Encoding of sources whose names do not show it; None: not typed.
        jpath: Folders with libraries of Jsonnet, the last one first.
        env: Environment values, ``KEY=VALUE`` or ``KEY:=JSON``.
        env_files: Files of environment values.
    """

    recursive: bool
    encoding: str | None
    jpath: tuple[Path, ...]
    env: tuple[str, ...]
    env_files: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether any of the options was typed."""
        return bool(self.recursive or self.encoding or self.jpath or self.env or self.env_files)

    @property
    def libraries(self) -> tuple[Path, ...]:
        """The folders of ``--jpath``, else of ``PKGER_JPATH``, in the order in which they are searched."""
        from services.settings import load

        return self.jpath[::-1] or load(caller().environ).libraries

    @property
    def env_values(self) -> dict[str, Any]:
        """
        The environment values by key; an option takes precedence over a file.

        Raises:
            UsageError: An option has the wrong form.
            CommandFailed: A file cannot be read.
        """
        from services.cli.packages import values

        return {**values.env_files(self.env_files), **values.pairs(self.env)}


package_options = _grouped(
    "package_options", PackageOptions, recursive_option, encoding_option, jpath_option, env_option, env_file_option
)


full_option = click.option("--full", is_flag=True, help="Show the whole plan: every step, field and line.")


def _author(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """The author: as typed, else the name of the user."""
    if value is not None:
        return value
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        # A user without a name, as in some containers.
        return ""


def _skip(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> list[dict[str, str]]:
    """The fields of each object or kind to skip."""
    skips = []
    for each in value:
        kind, colon, name = each.partition(":")
        if colon and not name:
            raise click.BadParameter(f"{each} names no object; write --skip {kind} to skip all of the kind")
        skips.append({"kind": kind, "name": name})
    return skips


def _plan_options(**fields: Any) -> "PlanOptions":
    from pkger.planner.v1 import planner_pb2

    return planner_pb2.PlanOptions(**fields)


def _run_options(**fields: Any) -> "RunOptions":
    from pkger.applier.v1 import applier_pb2

    return applier_pb2.RunOptions(**fields)


plan_options = _grouped(
    "plan_options",
    _plan_options,
    click.option(
        "--skip",
        multiple=True,
        callback=_skip,
        metavar="KIND[:NAME]",
        help="Skip an object, or all of a kind: neither apply nor remove it.",
    ),
    click.option(
        "--allow-empty", is_flag=True, help="Allow a package without objects, which removes all resources of the stack."
    ),
    click.option("--allow-replace", is_flag=True, help="Allow replacing resources that no stack owns."),
    click.option("--keep-others", is_flag=True, help="Leave objects of the stack that the package lacks as they are."),
)
"""The options of a plan, as one ``PlanOptions``."""


author_option = click.option(
    "--author",
    callback=_author,
    metavar="NAME",
    help="Author to record in the history.  [default: the user's name]",
)


_options_of_removal = (
    author_option,
    click.option(
        "--max-deletes",
        type=click.IntRange(0, 2**31 - 1),
        metavar="N",
        help="Refuse a plan with more than N deletions and updates that lose data, together.",
    ),
)


run_options = _grouped(
    "run_options",
    _run_options,
    click.option("--allow-missing", is_flag=True, help="Apply although environment values or secrets are missing."),
    *_options_of_removal,
)
"""The options of a run, as one ``RunOptions``."""


removal_options = _grouped("run_options", _run_options, *_options_of_removal)
"""The options of a run that deletes a stack or its resources, as one ``RunOptions``: it has no missing values."""


secret_file_option = click.option(
    "--secret-file", "secret_files", multiple=True, metavar="FILE", help="YAML or JSON file of secrets."
)


yes_option = click.option("--yes", is_flag=True, help="Run the plan without asking.")


wait_option = click.option(
    "--wait",
    type=float,
    default=0,
    callback=_waiting,
    metavar="SECONDS",
    help="Wait up to so many seconds for another operation of the stack to end.",
)


limit_option = click.option("--limit", type=click.IntRange(min=1), metavar="N", help="List at most N.")
