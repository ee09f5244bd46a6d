"""``pkger up``: all services, and the drivers of all platforms that have one here, until Ctrl-C."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from services.cli.interrupts import Interrupts
from services.cli.show import console
from services.cli.supervisor import MODULES, Child, Supervisor, children
from services.drivers.registry import DRIVERS
from services.platforms import Platform, read_platforms
from services.rpc.log import log_to_stderr
from services.settings import load


async def up(data: Path | None, environ: Mapping[str, str]) -> None:
    """
    Run all services on the databases in *data* (None: what the environment says) until Ctrl-C or SIGTERM.

    Raises:
        Failed: One of them cannot start.
        PlatformsInvalid: The platforms file cannot be used.
    """
    log_to_stderr()
    out = console()
    environ = dict(environ) | ({"PKGER_DATA": str(data)} if data else {})
    settings = load(environ)
    platforms = read_platforms(settings, DRIVERS)
    running = children(MODULES, settings, platforms.values())
    with Interrupts() as interrupts:
        supervisor = Supervisor(running, environ, lambda name: None)
        await supervisor.start()
        try:
            _print_addresses(out, running, platforms.values())
            out.print(f"ready; databases in {settings.data}; Ctrl-C stops everything")
            await interrupts.event.wait()
            out.print("stopping")
        finally:
            await supervisor.stop()
    out.print("stopped")


def _print_addresses(out: Console, running: Sequence[Child], platforms: Iterable[Platform]) -> None:
    """Where everything is: what runs here, then drivers that somebody else runs."""
    rows = [(child.name, child.address) for child in running]
    rows += [(each.service, f"{each.address} (not run here)") for each in platforms if not each.driver]
    width = max(len(name) for name, _ in rows)
    for name, address in rows:
        out.print(Text(f"{name:<{width}} {address}"))
