"""``pkger up``: all five processes until Ctrl-C."""

from collections.abc import Mapping
from pathlib import Path

from services.cli.interrupts import Interrupts
from services.cli.show import console
from services.cli.supervisor import MODULES, Supervisor
from services.rpc.log import log_to_stderr
from services.settings import load


async def up(data: Path | None, environ: Mapping[str, str]) -> None:
    """
    Run all services on the databases in *data* (None: what the environment says) until Ctrl-C or SIGTERM.

    Raises:
        Failed: One of them cannot start.
    """
    log_to_stderr()
    out = console()
    environ = dict(environ) | ({"PKGER_DATA": str(data)} if data else {})
    settings = load(environ)
    with Interrupts() as interrupts:
        supervisor = Supervisor(list(MODULES), environ, settings.addresses, lambda name: None)
        await supervisor.start()
        try:
            for name, address in settings.addresses.items():
                out.print(f"{name:<9} {address}")
            out.print(f"ready; databases in {settings.data}; Ctrl-C stops everything")
            await interrupts.event.wait()
            out.print("stopping")
        finally:
            await supervisor.stop()
    out.print("stopped")
