"""``pkger up``: runs all services, and the drivers of all platforms that name one, until Ctrl-C."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from services.access.token_file import TokenUnusable, home_token
from services.cli.common import caller
from services.cli.errors import CommandFailed
from services.cli.output.consoles import console
from services.cli.output.escapes import one_line
from services.cli.process.inline_platform import parse_platform, refuse_faulty, row_of
from services.cli.process.instance_lock import instance_lock
from services.cli.process.interrupts import Interrupts
from services.cli.process.own_services import open_log
from services.cli.process.supervisor import Child, Supervisor, children, gateway
from services.drivers.registry import DRIVERS
from services.platforms import Platform, read_platforms
from services.rpc.log import log_to_stderr
from services.settings import MORE_PLATFORMS, PORTS, load


async def up(data: Path | None, typed: Sequence[str], environ: Mapping[str, str], has_http: bool = False) -> None:
    """
    Run all services until Ctrl-C or SIGTERM.

    Args:
        data: Folder of the databases; None: as configured in the environment.
        typed: The ``--platform`` option: a platform besides the platforms file; at most one.
        environ: The environment.
        has_http: Whether the HTTP gateway runs, too.

    Raises:
        CommandFailed: A service cannot start, or the ``--platform`` option is not valid.
        PlatformsInvalid: The platforms file cannot be used.
    """
    environ = dict(environ) | ({"PKGER_DATA": str(data)} if data else {})
    # Its services call each other at their sockets, so rows of platforms have the addresses of theirs.
    settings = replace(load(environ), platform_sockets=load(environ).run)
    platforms = read_platforms(settings, DRIVERS)
    if typed:
        platform = parse_platform(typed, settings.run, environ)
        refuse_faulty(platform, platforms, settings.data)
        environ[MORE_PLATFORMS] = row_of(platform)
        platforms[platform.name] = platform
    running = children(PORTS, settings, platforms.values())
    if has_http:
        running.append(gateway(settings))
    out, is_terminal = console(), caller().stderr.isatty()
    if is_terminal:
        _log_to_terminal()
    else:
        log_to_stderr()
    with Interrupts() as interrupts, instance_lock(settings.data):
        _make_token(settings.home, out)
        # At a terminal, only problems are printed, and the logs go to files; elsewhere, standard error has all logs.
        supervisor = Supervisor(running, environ, lambda name: open_log(settings.home, name) if is_terminal else None)
        await supervisor.start()
        try:
            _print_addresses(out, running, platforms.values())
            logs = f"; logs in {settings.home / 'logs'}" if is_terminal else ""
            out.print(f"ready; sockets in {settings.run}; databases in {settings.data}{logs}; Ctrl-C stops everything")
            await interrupts.event.wait()
            out.print("stopping")
        finally:
            await supervisor.stop()
    out.print("stopped")


def _log_to_terminal() -> None:
    """Print the warnings of the supervisor as plain lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


class _Plain(logging.Formatter):
    """Writes the service and the message of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for *record*."""
        service = getattr(record, "service", "")
        message = f"{service}: {record.getMessage()}" if service else record.getMessage()
        problem = getattr(record, "problem", "")
        return one_line(f"{message}: {problem}" if problem else message)


def _make_token(home: Path, out: Console) -> None:
    """
    Make the token of the home for other programs, unless there is one.

    Raises:
        CommandFailed: It cannot be made, or not be used.
    """

    def report(path: Path) -> None:
        out.print(Text(f"made the token for other programs, {path}; `pkger token local` prints it"))

    try:
        home_token(home, report=report)
    except TokenUnusable as error:
        raise CommandFailed(str(error)) from error


def _print_addresses(out: Console, running: Sequence[Child], platforms: Iterable[Platform]) -> None:
    """Print the last address of each service that runs here, and those of drivers that run elsewhere."""
    rows = [(child.name, child.listen[-1]) for child in running]
    rows += [(each.service, f"{each.address} (not run here)") for each in platforms if not each.driver]
    width = max(len(name) for name, _ in rows)
    for name, address in rows:
        out.print(Text(f"{name:<{width}} {address}"))
