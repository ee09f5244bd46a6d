"""The driver of one platform as a process: ``python -m services.drivers [NAME]``, a row of the platforms file."""

import argparse
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from services.core.errors import PlatformUnknown
from services.core.model import DEFAULT_PLATFORM
from services.drivers.registry import DRIVERS, refuse_shared_place
from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, register
from services.platforms import Platform, find_platform, read_platforms
from services.rpc.process import Server, Service, run_servers
from services.settings import Settings, load
from services.system import Clock, Ids, MachineIds, machine_clock


@asynccontextmanager
async def opened(
    settings: Settings,
    platform: Platform,
    ids: Ids = MachineIds(),
    rows: Iterable[Platform] = (),
    clock: Clock = machine_clock,
) -> AsyncIterator[Service]:
    """
    The driver of *platform*, with its files in the folder of *settings*.

    *ids* draws random values, *clock* is the time of day, and *rows* are the rows of the platforms file.

    Raises:
        OptionsInvalid: The driver does not accept the options, or one of *rows* uses the same data.
        CannotServe: A file cannot be opened.
    """
    refuse_shared_place(platform, rows, settings.data)
    async with opened_driver(platform, settings.data, ids, clock) as driver:
        yield Service([register(driver)], SERVICES)


class DriverElsewhere(Exception):
    """The row of a platform names no driver, because its driver is run outside this installation."""


def main(arguments: Sequence[str] | None = None) -> None:
    """
    Serve the platform that *arguments* name, as ``server_of`` says.

    Raises:
        SystemExit: There is no such platform, its driver is not run here, or the driver cannot serve.
    """
    parser = argparse.ArgumentParser(prog="python -m services.drivers", description="Serve one platform.")
    parser.add_argument("platform", nargs="?", default=DEFAULT_PLATFORM, help=f"its name ({DEFAULT_PLATFORM})")
    name = parser.parse_args(arguments).platform
    settings = load()
    try:
        server = server_of(name, settings)
    except (PlatformUnknown, DriverElsewhere) as error:
        sys.exit(f"Error: {error}")
    run_servers([server], settings)


def server_of(name: str, settings: Settings) -> Server:
    """
    The server that runs the driver of the platform *name*, as PKGER_LISTEN says, or at the address of its row.

    Raises:
        PlatformUnknown: There is no such platform.
        DriverElsewhere: Its driver is not run here.
    """
    platforms = read_platforms(settings, DRIVERS)
    platform = find_platform(platforms, name)
    if not platform.driver:
        raise DriverElsewhere(f"{platform.row} has no driver here; name one to run it")
    # The row has the address of its socket, unless addresses of services are set.
    listen = settings.listen or (platform.address,)
    return Server(platform.service, partial(opened, platform=platform, rows=platforms.values()), listen)


if __name__ == "__main__":
    main()
