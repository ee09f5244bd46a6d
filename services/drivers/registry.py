"""The drivers that this program has, by the name that a row of the platforms file gives them."""

import importlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from services.drivers.driver import Driver, OpenDriver
from services.machine import Ids, MachineIds
from services.platforms import Platform

DRIVERS: Mapping[str, str] = {
    "embedded": "services.drivers.embedded.driver",
}
"""The module of each driver, imported when the driver is opened: one may need what others do without."""


@asynccontextmanager
async def opened(platform: Platform, data: Path, ids: Ids = MachineIds()) -> AsyncIterator[Driver]:
    """
    The driver of *platform*, which has one of ``DRIVERS``, until the block is left.

    Args:
        platform: A row of the platforms file.
        data: Folder for files of the driver.
        ids: Draws what is random.

    Raises:
        OptionsInvalid: The driver cannot take the options of the platform.
        OSError: A file cannot be opened.
    """
    open_driver: OpenDriver = importlib.import_module(DRIVERS[platform.driver]).open_driver
    driver = await open_driver(platform, data, ids)
    try:
        yield driver
    finally:
        await driver.close()
