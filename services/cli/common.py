"""The options that all commands have, as they were typed."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from services.cli.caller import Caller

SERVICES = ("parser", "planner", "applier", "stack", "platform")


@dataclass
class Common:
    """
    The options that all commands have, typed before or after the name of the command; None: not typed.

    Attributes:
        server: Host of the services.
        target: Platform and organization.
        output: How to print.
        quiet: Print only data and errors.
        timeout: Seconds that the command may take.
        no_color: Print no colours.
        caller: The caller of the command.
    """

    server: str | None = None
    target: tuple[str, str] | None = None
    output: str | None = None
    quiet: bool = False
    timeout: float | None = None
    no_color: bool = False
    caller: Caller = field(default_factory=Caller.of_process)

    @property
    def format(self) -> str:
        """How to print: "text", "json" or "yaml"."""
        return self.output or "text"

    def environ(self) -> dict[str, str]:
        """
        The environment of the caller, with the server of ``--server``, of the environment, or of a context.

        The token of a context goes to the server of that context only.
        """
        environ = dict(self.caller.environ)
        variables = ["PKGER_SERVER", *(f"PKGER_{name.upper()}_ADDRESS" for name in SERVICES)]
        if self.server:
            # The option takes precedence over the environment.
            return {key: value for key, value in environ.items() if key not in variables} | {
                "PKGER_SERVER": self.server
            }
        if any(environ.get(name) for name in variables):
            return environ
        context = _context(environ)
        if server := context.get("server"):
            environ["PKGER_SERVER"] = server
            if (file := context.get("token_file")) and not environ.get("PKGER_TOKEN"):
                environ["PKGER_TOKEN_FILE"] = environ.get("PKGER_TOKEN_FILE") or file
        return environ

    def place(self, platform: str, org: str) -> tuple[str, str]:
        """
        Platform and organization by ``--platform`` and ``--org``, ``--target``, or a context; empty for the default.

        Raises:
            UsageError: The options contradict each other.
        """
        if self.target:
            for name, value, meant in zip(("--platform", "--org"), (platform, org), self.target, strict=True):
                if value and value != meant:
                    raise click.UsageError(f"{name} {value} contradicts --target {'/'.join(self.target)}")
            return self.target
        written = _context(self.caller.environ).get("target", "")
        target = target_pair(written) if written else ("", "")
        return platform or target[0], org or target[1]


def home_folder(environ: Mapping[str, str]) -> Path:
    """The folder of the command line."""
    return Path(environ.get("PKGER_HOME") or Path.home() / ".pkger")


def _context(environ: Mapping[str, str]) -> Mapping[str, str]:
    home = home_folder(environ)
    if not os.path.exists(home / "config.yml"):  # False where the folder may not be entered
        return {}
    from services.cli.contexts import in_use

    return in_use(home)


def common() -> Common:
    """The common options of the running command."""
    return click.get_current_context().find_root().ensure_object(Common)


def caller() -> Caller:
    """The caller of the running command; outside a command, the caller of this process."""
    context = click.get_current_context(silent=True)
    return context.find_root().ensure_object(Common).caller if context else Caller.of_process()


def target_pair(value: str) -> tuple[str, str]:
    """
    Platform and organization of a target as a user writes it, ``PLATFORM/ORG``.

    Raises:
        BadParameter: It has another form.
    """
    platform, slash, org = value.partition("/")
    if not (platform and slash and org):
        raise click.BadParameter(f"{value!r}: write PLATFORM/ORG, such as embedded/default")
    return platform, org
