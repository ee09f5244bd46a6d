"""The platform of ``recording.py``, which refuses to create resources that a test names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2

from services.drivers.driver import Driver
from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES
from services.platforms import Platform
from services.rpc.process import Service, run_process
from services.settings import Settings
from tests.crash.recording import FILE, Recording
from tests.older_platform import older

_REFUSED = "refused"


def refuse(folder: Path, *names: str) -> None:
    """Refuse to create resources of these names from now on."""
    (folder / _REFUSED).write_text("\n".join(names))


class Refusing(Recording):
    """A driver that refuses what the file says."""

    def __init__(self, driver: Driver, folder: Path) -> None:
        super().__init__(driver, folder / FILE)
        self._names = folder / _REFUSED

    async def Mutate(
        self, request: driver_pb2.MutateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> driver_pb2.MutateResponse:
        names = self._names.read_text().splitlines() if self._names.exists() else []
        refused = [
            position
            for position, each in enumerate(request.mutations)
            if any(f'"name":"{name}"' in each.create.spec_json for name in names)
        ]
        if not refused:
            return await super().Mutate(request, context)
        answer = driver_pb2.MutateResponse()
        for position, mutation in enumerate(request.mutations):
            result = answer.results.add(position=position)
            if position in refused:
                result.rejected.message = "refused by a test"
                continue
            alone = driver_pb2.MutateRequest()
            alone.CopyFrom(request)
            del alone.mutations[:]
            alone.mutations.append(mutation)
            result.CopyFrom((await super().Mutate(alone, context)).results[0])
            result.position = position
        return answer


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
        yield Service([older(Refusing(driver, settings.data))], SERVICES)


if __name__ == "__main__":
    run_process("platform", opened)
