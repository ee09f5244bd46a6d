"""The drivers of this program, by their name in the platforms file."""

import importlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

from services.drivers.driver import Driver, OpenDriver, PlaceOf
from services.drivers.options import OptionsInvalid
from services.platforms import Platform
from services.rpc.entrances import CannotServe
from services.system import Clock, Ids, MachineIds, machine_clock

DRIVERS: Mapping[str, str] = {
    "embedded": "services.drivers.embedded.driver",
    "influxdb": "services.drivers.influxdb.driver",
}
"""The module of each driver, imported when it is opened, so that it loads only the libraries that it needs."""


@asynccontextmanager
async def opened(
    platform: Platform, data: Path, ids: Ids = MachineIds(), clock: Clock = machine_clock
) -> AsyncIterator[Driver]:
    """
    Open the driver of *platform*, which has one of ``DRIVERS``, for the time of the block.

    Args:
        platform: A row of the platforms file.
        data: Folder for files of the driver.
        ids: Draws random values.
        clock: The time of day.

    Raises:
        OptionsInvalid: The driver does not accept the options of the platform.
        CannotServe: A file cannot be opened.
    """
    open_driver: OpenDriver = _module(platform).open_driver
    try:
        driver = await open_driver(platform, data, ids, clock)
    except OSError as error:
        raise CannotServe(f"{platform.row}: {error}") from error
    try:
        yield driver
    finally:
        await driver.close()


def refuse_shared_place(platform: Platform, rows: Iterable[Platform], data: Path) -> None:
    """
    Refuse *platform* if another of the *rows* has the same place: one platform would have two names.

    Args:
        platform: A row of the platforms file, with one of ``DRIVERS``.
        rows: All rows of the file; rows with other drivers are ignored.
        data: Folder for files of the driver.

    Raises:
        OptionsInvalid: There is such a row, or the driver does not accept the options of one of its rows.
    """
    place_of: PlaceOf | None = getattr(_module(platform), "place_of", None)
    if place_of is None:
        return
    place = place_of(platform, data)
    for other in rows:
        if other.driver == platform.driver and other.name != platform.name and place_of(other, data) == place:
            problem = f"it has the same data as platform {other.name} ({other.source}); a platform has one row"
            raise OptionsInvalid(platform, [f"{problem}: remove one, or give one other options"])


def _module(platform: Platform) -> ModuleType:
    return importlib.import_module(DRIVERS[platform.driver])
