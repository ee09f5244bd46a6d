"""DriverService of the embedded platform on the wire."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from pkger.driver.v1 import driver_pb2, driver_pb2_grpc

from services.drivers import wire
from services.drivers.embedded.kinds import EMBEDDED
from services.drivers.embedded.store import Store
from services.rpc.convert.drivers import platform_to_pb
from services.rpc.server import Register

log = logging.getLogger("pkger.platform")

SERVICES = ("pkger.driver.v1.DriverService",)
"""Full name, for health and reflection."""

Context = grpc.aio.ServicerContext[Any, Any]


class EmbeddedDriverServicer(driver_pb2_grpc.DriverServiceServicer):
    """Translates, and leaves the rest to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
        """See driver.proto."""
        return platform_to_pb(EMBEDDED)

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        """See driver.proto."""
        kinds = wire.kinds_from_pb(request.kinds, EMBEDDED)
        for chunk in wire.chunks_to_pb(await self._store.list_resources(request.org, kinds)):
            yield chunk

    async def ReadResources(
        self, request: driver_pb2.ReadResourcesRequest, context: Context
    ) -> driver_pb2.ReadResourcesResponse:
        """See driver.proto."""
        held = await self._store.read_resources(request.org, wire.ids_from_pb(request.ids, EMBEDDED))
        return driver_pb2.ReadResourcesResponse(results=map(wire.read_result_to_pb, held))

    async def ListSecretKeys(
        self, request: driver_pb2.ListSecretKeysRequest, context: Context
    ) -> driver_pb2.ListSecretKeysResponse:
        """See driver.proto."""
        return driver_pb2.ListSecretKeysResponse(keys=await self._store.secret_keys(request.org))

    async def Mutate(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        """See driver.proto."""
        fence = wire.fence_from_pb(request)
        batch = wire.batch_from_pb(request.mutations, EMBEDDED)
        results = await self._store.mutate(request.org, fence, batch)
        response = wire.results_to_pb(request.mutations, results)
        log.info("mutated", extra=_counts(request, response))
        return response


@contextmanager
def embedded_platform(path: Path) -> Iterator[tuple[Sequence[Register], Sequence[str]]]:
    """
    Open the platform in the SQLite file *path*, made when missing, until the block is left.

    Yields:
        What to serve and the names of the services, the first two arguments of ``serving``.
    """
    store = Store(path)
    try:
        yield [partial(driver_pb2_grpc.add_DriverServiceServicer_to_server, EmbeddedDriverServicer(store))], SERVICES
    finally:
        store.close()


def _counts(request: driver_pb2.MutateRequest, response: driver_pb2.MutateResponse) -> dict[str, Any]:
    """How many mutations of each verb were asked for, and how many results of each sort were given."""
    verbs = Counter(str(mutation.WhichOneof("change")) for mutation in request.mutations)
    ends = Counter(str(result.WhichOneof("result")) for result in response.results)
    return {"org": request.org, "scope": request.fence.scope, **verbs, **ends}
