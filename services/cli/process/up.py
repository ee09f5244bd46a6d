"""``pkger up``: runs all services, and the drivers of all platforms that name one, until Ctrl-C."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from services.cli.common import caller
from services.cli.output.consoles import console
from services.cli.output.escapes import one_line
from services.cli.process.inline_platform import parse_platform, refuse_faulty, row_of
from services.cli.process.instance_lock import instance_lock
from services.cli.process.interrupts import Interrupts
from services.cli.process.session import open_log, sockets_folder
from services.cli.process.supervisor import GATEWAY, Child, Supervisor, children
from services.drivers.registry import DRIVERS
from services.platforms import Platform, read_platforms
from services.rpc.log import log_to_stderr
from services.settings import MORE_PLATFORMS, PORTS, http_address, load


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
    if not typed:
        await _run(data, None, environ, has_http)
        return
    with sockets_folder() as folder:
        await _run(data, parse_platform(typed, folder, environ), environ, has_http)


async def _run(data: Path | None, platform: Platform | None, environ: Mapping[str, str], has_http: bool) -> None:
    environ = dict(environ) | ({"PKGER_DATA": str(data)} if data else {})
    settings = load(environ)
    platforms = read_platforms(settings, DRIVERS)
    if platform:
        refuse_faulty(platform, platforms, settings.data)
        environ[MORE_PLATFORMS] = row_of(platform)
        platforms[platform.name] = platform
    running = children(PORTS, settings, platforms.values())
    if has_http:
        running.append(Child("http", (GATEWAY,), http_address(environ), has_health=False))
    out, is_terminal = console(), caller().stderr.isatty()
    if is_terminal:
        _log_to_terminal()
    else:
        log_to_stderr()
    with Interrupts() as interrupts, instance_lock(settings.data):
        # At a terminal, only problems are printed, and the logs go to files; elsewhere, standard error has all logs.
        supervisor = Supervisor(running, environ, lambda name: open_log(settings.home, name) if is_terminal else None)
        await supervisor.start()
        try:
            _print_addresses(out, running, platforms.values())
            logs = f"; logs in {settings.home / 'logs'}" if is_terminal else ""
            out.print(f"ready; databases in {settings.data}{logs}; Ctrl-C stops everything")
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


def _print_addresses(out: Console, running: Sequence[Child], platforms: Iterable[Platform]) -> None:
    """Print the addresses: of services that run here, then of drivers that run elsewhere."""
    rows = [(child.name, child.address) for child in running]
    rows += [(each.service, f"{each.address} (not run here)") for each in platforms if not each.driver]
    width = max(len(name) for name, _ in rows)
    for name, address in rows:
        out.print(Text(f"{name:<{width}} {address}"))
