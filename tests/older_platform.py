"""The embedded platform behind an older driver: without preparing specs, listing organizations and checks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
from pkger.driver.v1.driver_pb2_grpc import DriverServiceServicer, add_DriverServiceServicer_to_server

from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, DriverServicer
from services.platforms import Platform
from services.rpc.process import Service, run_process
from services.rpc.server import Register
from services.settings import Settings

_NEWER = ("PrepareSpecs", "ListOrgs", "Check")


def older(servicer: DriverServiceServicer) -> Register:
    """Registers *servicer* without PrepareSpecs, ListOrgs and Check."""
    return lambda server: add_DriverServiceServicer_to_server(servicer, _Without(server))  # type: ignore[arg-type]


class _Without:
    """The part of a server to which generated code adds handlers; it omits the newer methods."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        self._server.add_generic_rpc_handlers(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        kept = {name: handler for name, handler in handlers.items() if name not in _NEWER}
        self._server.add_registered_method_handlers(service, kept)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Service]:
    """The platform in the database of *settings*."""
    async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
        yield Service([older(DriverServicer(driver))], SERVICES)


if __name__ == "__main__":
    run_process("platform", opened)
