"""A client of a driver for tests: calls have values of the contract; results are messages."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pkger.driver.v1 import driver_pb2, driver_pb2_grpc
from pkger.model.v1 import check_pb2, object_pb2, operation_pb2

from services.core.model import PlatformTraits
from services.drivers.driver import Driver
from services.drivers.servicer import SERVICES, register
from services.kinds.format.canonical import canonical_text
from services.kinds.registry import KINDS
from services.rpc.channel import Connect, grpc_channel
from services.rpc.client import Peer
from services.rpc.convert.drivers import platform_from_pb
from services.rpc.dispatcher import Dispatcher
from services.rpc.process import Service
from tests.drivers.influxdb.samples import influxdb_sample
from tests.rpc.in_memory import Network
from tests.transport import serving_at_socket

ORG = "acme"

NAME_TAKEN = operation_pb2.REJECTION_REASON_NAME_TAKEN
NOT_FOUND = operation_pb2.REJECTION_REASON_NOT_FOUND
CONTENT_REFUSED = operation_pb2.REJECTION_REASON_CONTENT_REFUSED
KIND_UNSUPPORTED = operation_pb2.REJECTION_REASON_KIND_UNSUPPORTED


@asynccontextmanager
async def client_of(
    driver: Driver, orgs: Mapping[str, str] | None = None, refers_to: str = ""
) -> AsyncIterator["DriverClient"]:
    """A client of *driver*, whose servicer is called in memory; arguments as for ``DriverClient``."""
    network = Network()
    network.serve("driver", Dispatcher([register(driver)]))
    client = DriverClient("driver", orgs, refers_to, network.connect)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def served_client_of(driver: Driver) -> AsyncIterator["DriverClient"]:
    """A client of *driver* over gRPC."""
    async with serving_at_socket(Service([register(driver)], SERVICES)) as address:
        client = DriverClient(address)
        try:
            yield client
        finally:
            await client.close()


class DriverClient:
    """
    Calls one driver.

    Attributes:
        address: Its address.
    """

    def __init__(
        self,
        address: str,
        orgs: Mapping[str, str] | None = None,
        refers_to: str = "",
        connect: Connect = grpc_channel,
    ) -> None:
        """
        Call the driver at *address*.

        Args:
            address: Its address.
            orgs: Names on the platform of the organizations of the tests, where they differ.
            refers_to: A kind of which one resource per organization is made, to which writes without a reference refer;
                empty: they are sent without one.
            connect: Makes the channel.
        """
        self.address = address
        self._orgs = orgs or {}
        self._refers_to = refers_to
        self._referred: dict[str, str] = {}
        self._peer = Peer("platform", address, connect=connect)
        self._stub = driver_pb2_grpc.DriverServiceStub(self._peer.channel)

    async def close(self) -> None:
        await self._peer.close()

    def org_name(self, org: str) -> str:
        """The name on the platform of an organization of the tests."""
        return self._orgs.get(org, org)

    async def describe(self) -> PlatformTraits:
        return platform_from_pb(await self.describe_raw())

    async def describe_raw(self) -> driver_pb2.DescribeResponse:
        return await self._peer.call(self._stub.Describe, driver_pb2.DescribeRequest())

    async def listing(self, *kinds: str, org: str = ORG) -> list[object_pb2.Resource]:
        return [resource for chunk in await self.chunks(*kinds, org=org) for resource in chunk.resources]

    async def chunks(self, *kinds: str, org: str = ORG) -> Sequence[driver_pb2.ListResourcesResponse]:
        request = driver_pb2.ListResourcesRequest(org=self.org_name(org), kinds=kinds)
        return [chunk async for chunk in self._peer.stream(self._stub.ListResources, request)]

    async def read(self, *ids: tuple[str, str], org: str = ORG) -> list[object_pb2.Resource | None]:
        """The resource of each (kind, id), in order; None if it is gone."""
        request = driver_pb2.ReadResourcesRequest(
            org=self.org_name(org), ids=[object_pb2.ResourceId(kind=kind, id=id_) for kind, id_ in ids]
        )
        response = await self._peer.call(self._stub.ReadResources, request)
        assert all(result.WhichOneof("result") for result in response.results)
        return [result.resource if result.HasField("resource") else None for result in response.results]

    async def mutate(
        self,
        *mutations: driver_pb2.Mutation,
        org: str = ORG,
        fence: tuple[str, int] | None = None,
        transient: bool = False,
    ) -> list[driver_pb2.MutationResult]:
        for mutation in mutations:
            await self._let_refer(mutation, org)
        request = driver_pb2.MutateRequest(org=self.org_name(org), mutations=mutations)
        if fence:
            scope, token = fence
            request.fence.CopyFrom(
                driver_pb2.Fence(scope=scope, token=token, operation_id=f"by {token}", transient=transient)
            )
        response = await self._peer.call(self._stub.Mutate, request)
        assert len(response.results) == len(mutations)
        assert all(result.WhichOneof("result") for result in response.results)
        assert [result.position for result in response.results] == list(range(len(mutations)))
        for result in response.results:
            result.ClearField("position")
        return list(response.results)

    async def show_token(self, scope: str, token: int, operation: str = "") -> tuple[int, str] | None:
        """Show a token; return the one before it in its scope, with its operation."""
        fence = driver_pb2.Fence(scope=scope, token=token, operation_id=operation)
        response = await self._peer.call(self._stub.Mutate, driver_pb2.MutateRequest(org=ORG, fence=fence))
        assert not response.results
        if not response.HasField("seen"):
            return None
        assert response.seen.scope == scope
        return response.seen.token, response.seen.operation_id

    async def prepared(
        self, *specs: driver_pb2.DesiredSpec, org: str = ORG
    ) -> list[tuple[str, driver_pb2.Rejected | None]]:
        """For each spec, the text that the platform would hold; or an empty text and the rejection."""
        request = driver_pb2.PrepareSpecsRequest(org=self.org_name(org), specs=specs)
        answers = (await self._peer.call(self._stub.PrepareSpecs, request)).specs
        assert [answer.position for answer in answers] == list(range(len(specs)))
        assert all(answer.WhichOneof("result") for answer in answers)
        found: list[tuple[str, driver_pb2.Rejected | None]] = []
        for wanted, answer in zip(specs, answers, strict=True):
            if answer.HasField("rejected"):
                assert answer.rejected.message
                assert not answer.rejected.HasField("retry_after")
                found.append(("", answer.rejected))
            else:
                assert answer.stored.kind == wanted.kind
                found.append((answer.stored.spec_json or wanted.spec_json, None))
        return found

    async def would_hold(self, mutation: driver_pb2.Mutation) -> Any:
        """The spec that the platform would hold after *mutation*; None if it refuses the content."""
        [(text, refused)] = await self.prepared(wanted(mutation))
        return None if refused else json.loads(text)

    async def secret_keys(self, org: str = ORG) -> list[str]:
        request = driver_pb2.ListSecretKeysRequest(org=self.org_name(org))
        return list((await self._peer.call(self._stub.ListSecretKeys, request)).keys)

    async def orgs(self) -> list[tuple[str, str]]:
        """Id and name of each organization."""
        answer = await self._peer.call(self._stub.ListOrgs, driver_pb2.ListOrgsRequest())
        return [(org.id, org.name) for org in answer.orgs]

    async def check(self, org: str = "") -> check_pb2.PlatformCheck:
        """The check of the driver, in *org* if it is given."""
        request = driver_pb2.CheckRequest(org=self.org_name(org) if org else "")
        return (await self._peer.call(self._stub.Check, request)).check

    async def _let_refer(self, mutation: driver_pb2.Mutation, org: str) -> None:
        """Add a reference to a write without one, if its kind requires it."""
        change = mutation.create if mutation.HasField("create") else mutation.update
        if not self._refers_to or change.kind not in KINDS or change.references:
            return
        for field in KINDS[change.kind].uses:
            if org not in self._referred:
                wanted = create(self._refers_to, influxdb_sample(self._refers_to, "referred", ""))
                [result] = await self.mutate(wanted, org=org)
                self._referred[org] = result.done.id
            change.references.append(reference(f"/{field}", self._refers_to, self._referred[org]))

    async def made(self, *mutations: driver_pb2.Mutation, org: str = ORG) -> list[object_pb2.Resource]:
        """The resources of accepted creates or updates, as they are read afterwards."""
        results = await self.mutate(*mutations, org=org)
        assert {result.WhichOneof("result") for result in results} == {"done"}, results
        ids = [written_id(mutation, result) for mutation, result in zip(mutations, results, strict=True)]
        found = [resource for resource in await self.read(*ids, org=org) if resource]
        assert len(found) == len(mutations)
        return found

    async def refusal(self, mutation: driver_pb2.Mutation, org: str = ORG) -> int:
        """The reason why *mutation* is rejected."""
        [result] = await self.mutate(mutation, org=org)
        assert result.WhichOneof("result") == "rejected", result
        assert result.rejected.message
        return int(result.rejected.reason)


def create(kind: str, spec: Any, key: str = "", references: Iterable[object_pb2.Reference] = ()) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(
        create=driver_pb2.CreateResource(
            kind=kind, spec_json=canonical_text(spec), idempotency_key=key, references=references
        )
    )


def update(kind: str, id_: str, spec: Any, references: Iterable[object_pb2.Reference] = ()) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(
        update=driver_pb2.UpdateResource(kind=kind, id=id_, spec_json=canonical_text(spec), references=references)
    )


def set_spec(mutation: driver_pb2.Mutation, text: str) -> None:
    """Let a create or an update write *text*, which may be no spec."""
    (mutation.create if mutation.HasField("create") else mutation.update).spec_json = text


def wanted(mutation: driver_pb2.Mutation) -> driver_pb2.DesiredSpec:
    """The spec that a create or an update writes."""
    change = mutation.create if mutation.HasField("create") else mutation.update
    id_ = "" if mutation.HasField("create") else mutation.update.id
    return driver_pb2.DesiredSpec(kind=change.kind, id=id_, spec_json=change.spec_json, references=change.references)


def reference(pointer: str, kind: str, id_: str) -> object_pb2.Reference:
    return object_pb2.Reference(pointer=pointer, kind=kind, id=id_)


def delete(kind: str, id_: str) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=id_))


def attach(kind: str, id_: str, label_id: str) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(attach=driver_pb2.AttachLabel(kind=kind, id=id_, label_id=label_id))


def detach(kind: str, id_: str, label_id: str) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind=kind, id=id_, label_id=label_id))


def put_secret(key: str, value: str) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(put_secret=driver_pb2.PutSecret(key=key, value=value))


def delete_secret(key: str) -> driver_pb2.Mutation:
    return driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key=key))


def done(id_: str = "", observed: str = "", replayed: bool = False) -> driver_pb2.MutationResult:
    """The result of a mutation that took effect."""
    return driver_pb2.MutationResult(done=driver_pb2.Done(id=id_, observed_spec_json=observed, replayed=replayed))


def written_id(mutation: driver_pb2.Mutation, result: driver_pb2.MutationResult) -> tuple[str, str]:
    """Kind and id of the resource of a create or an update; only the result of a create has the id."""
    if mutation.WhichOneof("change") == "create":
        assert result.done.id
        return mutation.create.kind, result.done.id
    assert not result.done.id
    return mutation.update.kind, mutation.update.id


def ends(results: Iterable[driver_pb2.MutationResult]) -> list[str | None]:
    """The outcome of each mutation: ``done``, ``rejected`` or ``ambiguous``."""
    return [result.WhichOneof("result") for result in results]


def spec(resource: object_pb2.Resource | None) -> Any:
    """The content of a resource that exists."""
    assert resource is not None
    return json.loads(resource.spec_json)
