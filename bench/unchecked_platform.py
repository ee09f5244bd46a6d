"""The embedded platform without checks in plans: it rejects content only when it is written."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from services.core.model import Spec
from services.drivers.embedded.driver import EmbeddedDriver, place_of
from services.drivers.mutation import Create, Rejected, Update
from services.drivers.servicer import SERVICES, register
from services.platforms import Platform
from services.rpc.process import Service, run_process
from services.settings import Settings
from services.system import MachineIds


class UncheckedDriver(EmbeddedDriver):
    """Accepts any content in plans."""

    async def prepare_specs(self, org: str, writes: Sequence[Create | Update]) -> list[Spec | Rejected]:
        """See ``Driver``."""
        return [write.spec for write in writes]


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    driver = UncheckedDriver(Path(place_of(Platform("embedded", "embedded", ""), settings.data)), MachineIds())
    try:
        yield Service([register(driver)], SERVICES)
    finally:
        await driver.close()


if __name__ == "__main__":
    run_process("platform", opened)
