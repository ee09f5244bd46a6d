"""``pkger up``: all services, and the drivers of all platforms that have one here, until Ctrl-C."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from services.cli.consoles import console
from services.cli.escapes import one_line
from services.cli.given_platform import given_platform, refuse_faulty, row_of
from services.cli.interrupts import Interrupts
from services.cli.session import open_log, sockets_folder
from services.cli.single import single
from services.cli.supervisor import GATEWAY, Child, Supervisor, children
from services.drivers.registry import DRIVERS
from services.platforms import Platform, read_platforms
from services.rpc.log import log_to_stderr
from services.settings import MORE_PLATFORMS, PORTS, http_address, load


async def up(data: Path | None, typed: Sequence[str], environ: Mapping[str, str], has_http: bool = False) -> None:
    """
    Run all services until Ctrl-C or SIGTERM.

    Args:
        data: Folder of the databases; None: what the environment says.
        typed: A platform beside those of the platforms file, as it is typed; at most one.
        environ: The environment.
        has_http: Whether the HTTP gateway runs, too.

    Raises:
        Failed: One of them cannot start, or the platform that is typed cannot be one.
        PlatformsInvalid: The platforms file cannot be used.
    """
    if not typed:
        await _run(data, None, environ, has_http)
        return
    with sockets_folder() as folder:
        await _run(data, given_platform(typed, folder, environ), environ, has_http)


async def _run(data: Path | None, given: Platform | None, environ: Mapping[str, str], has_http: bool) -> None:
    is_terminal = sys.stderr.isatty()
    if is_terminal:
        _log_to_people()
    else:
        log_to_stderr()
    out = console()
    environ = dict(environ) | ({"PKGER_DATA": str(data)} if data else {})
    settings = load(environ)
    platforms = read_platforms(settings, DRIVERS)
    if given:
        refuse_faulty(given, platforms, settings.data)
        environ[MORE_PLATFORMS] = row_of(given)
        platforms[given.name] = given
    running = children(PORTS, settings, platforms.values())
    if has_http:
        running.append(Child("http", (GATEWAY,), http_address(environ), has_health=False))
    with Interrupts() as interrupts, single(settings.data):
        # People read what goes wrong, and the rest is there if they need it; programs read all of it.
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


def _log_to_people() -> None:
    """Print what the supervisor has to say as plain lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


class _Plain(logging.Formatter):
    """Writes what happened, and to which service."""

    def format(self, record: logging.LogRecord) -> str:
        """One line for *record*."""
        service = getattr(record, "service", "")
        told = f"{service}: {record.getMessage()}" if service else record.getMessage()
        problem = getattr(record, "problem", "")
        return one_line(f"{told}: {problem}" if problem else told)


def _print_addresses(out: Console, running: Sequence[Child], platforms: Iterable[Platform]) -> None:
    """Where everything is: what runs here, then drivers that somebody else runs."""
    rows = [(child.name, child.address) for child in running]
    rows += [(each.service, f"{each.address} (not run here)") for each in platforms if not each.driver]
    width = max(len(name) for name, _ in rows)
    for name, address in rows:
        out.print(Text(f"{name:<{width}} {address}"))
