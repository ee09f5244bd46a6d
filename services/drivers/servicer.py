"""The servicer of DriverService, for any driver."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import grpc
from pkger.driver.v1 import driver_pb2, driver_pb2_grpc

from services.core.errors import KindUnsupported
from services.core.model import SECRET
from services.drivers import wire
from services.drivers.driver import Driver
from services.drivers.mutation import Fence, Mutation, Rejected, Result
from services.rpc.convert.checks import check_to_pb
from services.rpc.convert.drivers import platform_to_pb
from services.rpc.convert.objects import org_to_pb
from services.rpc.server import Register

log = logging.getLogger("pkger.platform")

SERVICES = ("pkger.driver.v1.DriverService",)
"""Full name of the service, for health and reflection."""

Context = grpc.aio.ServicerContext[Any, Any]

Answer = TypeVar("Answer")


class DriverServicer(driver_pb2_grpc.DriverServiceServicer):
    """Translates messages and delegates to the driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def Describe(self, request: driver_pb2.DescribeRequest, context: Context) -> driver_pb2.DescribeResponse:
        """See driver.proto."""
        return platform_to_pb(await self._driver.describe())

    async def ListResources(
        self, request: driver_pb2.ListResourcesRequest, context: Context
    ) -> AsyncIterator[driver_pb2.ListResourcesResponse]:
        """See driver.proto."""
        kinds = wire.kinds_from_pb(request.kinds, await self._driver.describe())
        resources = await self._driver.list_resources(request.org, kinds)
        for chunk in wire.chunks_to_pb(sorted(resources, key=lambda resource: resource.id)):
            yield chunk

    async def ReadResources(
        self, request: driver_pb2.ReadResourcesRequest, context: Context
    ) -> driver_pb2.ReadResourcesResponse:
        """See driver.proto."""
        ids = wire.ids_from_pb(request.ids, await self._driver.describe())
        resources = await self._driver.read_resources(request.org, ids)
        _expect("resources", len(resources), len(ids))
        return driver_pb2.ReadResourcesResponse(results=map(wire.read_result_to_pb, resources))

    async def PrepareSpecs(
        self, request: driver_pb2.PrepareSpecsRequest, context: Context
    ) -> driver_pb2.PrepareSpecsResponse:
        """See driver.proto."""
        writes = wire.desired_from_pb(request.specs, await self._driver.describe())
        valid_writes = [item for item in writes if not isinstance(item, Rejected)]
        prepared = await self._driver.prepare_specs(request.org, valid_writes) if valid_writes else []
        _expect("prepared specs", len(prepared), len(valid_writes))
        return wire.prepared_to_pb(request.specs, _in_place(writes, prepared))

    async def ListSecretKeys(
        self, request: driver_pb2.ListSecretKeysRequest, context: Context
    ) -> driver_pb2.ListSecretKeysResponse:
        """See driver.proto."""
        traits = await self._driver.describe()
        if not traits.holds_secrets:
            raise KindUnsupported(traits.platform, SECRET)
        return driver_pb2.ListSecretKeysResponse(keys=sorted(await self._driver.secret_keys(request.org)))

    async def ListOrgs(self, request: driver_pb2.ListOrgsRequest, context: Context) -> driver_pb2.ListOrgsResponse:
        """See driver.proto."""
        orgs = sorted(await self._driver.orgs())
        return driver_pb2.ListOrgsResponse(orgs=map(org_to_pb, orgs))

    async def Check(self, request: driver_pb2.CheckRequest, context: Context) -> driver_pb2.CheckResponse:
        """See driver.proto."""
        return driver_pb2.CheckResponse(check=check_to_pb(await self._driver.check(request.org)))

    async def Mutate(self, request: driver_pb2.MutateRequest, context: Context) -> driver_pb2.MutateResponse:
        """See driver.proto."""
        traits, fence = await self._driver.describe(), wire.fence_from_pb(request)
        if fence and traits.fences and not request.mutations:
            return wire.seen_to_pb(await self._driver.show_token(fence))
        batch = wire.batch_from_pb(request.mutations, traits)
        results = await self._results(request.org, fence, batch)
        response = wire.results_to_pb(request.mutations, results)
        log.info("mutated", extra=_counts(request, response))
        return response

    async def _results(self, org: str, fence: Fence | None, batch: Sequence[Mutation | Rejected]) -> list[Result]:
        """The outcome of each item of *batch*; items that are already rejected are not sent to the driver."""
        sent = [item for item in batch if not isinstance(item, Rejected)]
        results = await self._driver.mutate(org, fence, sent)
        _expect("results", len(results), len(sent))
        return _in_place(batch, results)


def register(driver: Driver) -> Register:
    """Return the function that adds DriverService over *driver* to a server."""
    return partial(driver_pb2_grpc.add_DriverServiceServicer_to_server, DriverServicer(driver))


def _in_place(items: Sequence[object], answers: Iterable[Answer]) -> list[Answer | Rejected]:
    """The answer to each of *items*: the item itself if it is already rejected, else the next of *answers*."""
    further_answers = iter(answers)
    return [item if isinstance(item, Rejected) else next(further_answers) for item in items]


def _expect(what: str, count: int, expected: int) -> None:
    """Raise on an answer of the wrong length, whose items cannot be matched."""
    if count != expected:
        raise ValueError(f"the driver returned {count} {what} for {expected}")


def _counts(request: driver_pb2.MutateRequest, response: driver_pb2.MutateResponse) -> dict[str, Any]:
    """The numbers of requested mutations by verb, and of results by outcome."""
    verbs = Counter(str(mutation.WhichOneof("change")) for mutation in request.mutations)
    ends = Counter(str(result.WhichOneof("result")) for result in response.results)
    return {"org": request.org, "scope": request.fence.scope, **verbs, **ends}
