"""``pkger up``, ``serve`` and ``admin``: commands for operators of the services."""

import os
import sys
from pathlib import Path

import click

from services.cli.common import caller, common
from services.cli.options import common_options


@click.command(
    epilog="\b\nExamples:\n  pkger up\n  pkger up --http\n"
    "  PKGER_PLATFORMS=platforms.yml pkger up --data /var/lib/pkger\n"
    "  PKGER_INFLUXDB_TOKEN=... pkger up --platform eu=https://influx.example.com:8086"
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the databases.")
@click.option(
    "--platform",
    "platforms",
    multiple=True,
    metavar="NAME=URL",
    help="An InfluxDB server as platform NAME, besides the platforms file. Its token is in PKGER_INFLUXDB_TOKEN.",
)
@click.option("--http", "has_http", is_flag=True, help="Run the HTTP gateway, too, at PKGER_HTTP_ADDRESS.")
def up(data: Path | None, platforms: tuple[str, ...], has_http: bool) -> None:
    """Run all services, and the drivers of the platforms file, until Ctrl-C."""
    import asyncio

    from services.cli.process.up import up as run

    asyncio.run(run(data, platforms, caller().environ, has_http))


@click.command(epilog="\b\nExamples:\n  pkger serve parser --listen 127.0.0.1:0\n  pkger serve platform influx")
@click.argument("service", type=click.Choice(["parser", "planner", "applier", "stack", "platform", "http"]))
@click.argument("platform", default="", metavar="[PLATFORM]")
@click.option(
    "--listen", metavar="ADDRESS", help="HOST:PORT (port 0: any free one), unix:PATH, or several with commas."
)
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the databases.")
def serve(service: str, platform: str, listen: str | None, data: Path | None) -> None:
    """Run one service in the foreground: for "platform", the driver of PLATFORM, a row of the platforms file."""
    from services.cli.process.supervisor import AS_MODULE, GATEWAY, MODULES

    if platform and service != "platform":
        raise click.UsageError(f"{service} is one service for all platforms; omit {platform}")
    command = [sys.executable, *AS_MODULE, MODULES.get(service, GATEWAY), *([platform] if platform else [])]
    environ = dict(caller().environ)
    environ |= {"PKGER_LISTEN": listen} if listen else {}
    environ |= {"PKGER_DATA": str(data)} if data else {}
    os.execve(sys.executable, command, environ)  # noqa: S606


@click.group()
def admin() -> None:
    """Commands for operators of the services."""


@admin.command("restored", epilog="\b\nExamples:\n  pkger admin restored")
@common_options
def mark_restored() -> None:
    """
    Mark a store that was just restored from a backup.

    Run it before an applier runs. It blocks unfinished operations until an operator recovers them, and marks pending
    plans as stale: both may have run since the backup.
    """
    from services.cli.process.admin import restored
    from services.cli.run_async import run

    run(restored(common().environ(), common().format))
