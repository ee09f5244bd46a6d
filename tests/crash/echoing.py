"""A bad platform as a process: its error messages contain the secrets that it has received."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2

from services.drivers.driver import Driver
from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, DriverServicer
from services.platforms import Platform
from services.rpc.process import Service, run_process
from services.settings import Settings
from tests.older_platform import older


class Echoing(DriverServicer):
    """The embedded platform with other messages. The first write of secrets fails, so its outcome is unknown."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._received: list[str] = []

    async def Mutate(
        self, request: driver_pb2.MutateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> driver_pb2.MutateResponse:
        is_first = request.HasField("fence") and not self._received
        if request.HasField("fence"):
            self._received += [each.put_secret.value for each in request.mutations if each.put_secret.value]
        if is_first and self._received:
            await context.abort(grpc.StatusCode.UNKNOWN, f"502 {self._received}")
        answer = await super().Mutate(request, context)
        for result in answer.results:
            if result.HasField("rejected"):
                result.rejected.message += f" {self._received}"
        return answer


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
        yield Service([older(Echoing(driver))], SERVICES)


if __name__ == "__main__":
    run_process("platform", opened)
