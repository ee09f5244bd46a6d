"""An ill-behaved platform as a process: whatever it refuses, it repeats the secrets that it was sent."""

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
    """The embedded platform, but for what it says; the first secrets of an operation get no answer at all."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._heard: list[str] = []

    async def Mutate(
        self, request: driver_pb2.MutateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> driver_pb2.MutateResponse:
        is_first = request.HasField("fence") and not self._heard
        if request.HasField("fence"):
            self._heard += [mutation.put_secret.value for mutation in request.mutations if mutation.put_secret.value]
        if is_first and self._heard:
            await context.abort(grpc.StatusCode.UNKNOWN, f"502 {self._heard}")
        answer = await super().Mutate(request, context)
        for result in answer.results:
            if result.HasField("rejected"):
                result.rejected.message += f" {self._heard}"
        return answer


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
        yield Service([older(Echoing(driver))], SERVICES)


if __name__ == "__main__":
    run_process("platform", opened)
