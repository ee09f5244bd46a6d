"""All five services in this process, on ports that the kernel picks, connected as in production."""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

import applier_svc.__main__ as applier
import parser_svc.__main__ as parser
import planner_svc.__main__ as planner
import services.drivers.embedded.__main__ as platform
import stack_svc.__main__ as stack
from services.kinds.table import KINDS
from services.rpc.client import Peer
from services.rpc.process import Opened
from services.rpc.server import serving
from services.settings import Settings

OPENED: Mapping[str, Opened] = {
    "stack": stack.opened,
    "platform": platform.opened,
    "parser": parser.opened,
    "planner": planner.opened,
    "applier": applier.opened,
}
"""The services, each after those that it calls."""


class InvalidPackage(Exception):
    """The package breaks rules; ``paths`` says where."""

    def __init__(self, invalid: object_pb2.InvalidPackage) -> None:
        super().__init__(str(invalid))
        self.paths = [violation.path for violation in invalid.violations]


@dataclass
class Cluster:
    """
    The services as their callers see them.

    Attributes:
        addresses: Where they are.
        peers: Connections to them.
    """

    addresses: dict[str, str]
    peers: dict[str, Peer]

    async def plan(
        self, *texts: str, stack: str = "", org: str = "", destroy: bool = False, store: bool = False, **more: Any
    ) -> plan_pb2.Plan:
        """
        A plan: the dry run, or one to *store*; with *more* fields of the request.

        Raises:
            InvalidPackage: The package breaks rules.
        """
        request = planner_pb2.CreatePlanRequest(validate_only=not store, target=object_pb2.Target(org=org), **more)
        if stack:
            request.stack.name = stack
        if destroy:
            request.destroy.SetInParent()
        else:
            request.package.sources.extend(sources(texts))
        stub = PlannerServiceStub(self.peers["planner"].channel)
        answer = await self.peers["planner"].call(stub.CreatePlan, request)
        if answer.HasField("invalid_package"):
            raise InvalidPackage(answer.invalid_package)
        return answer.plan

    async def stored_plan(self, name: str) -> plan_pb2.Plan:
        """A plan as it is stored."""
        stub = StackServiceStub(self.peers["stack"].channel)
        return (await self.peers["stack"].call(stub.GetPlan, stack_pb2.GetPlanRequest(plan=name))).plan

    async def apply_plan(self, plan: str, digest: str = "", **more: Any) -> AsyncIterator[operation_pb2.OperationEvent]:
        """An apply of a stored plan, event by event; with *more* fields of the request, but values may be missing."""
        request = applier_pb2.ApplyPlanRequest(plan=plan, digest=digest, **{"allow_missing": True, **more})
        stub = ApplierServiceStub(self.peers["applier"].channel)
        async for answer in self.peers["applier"].stream(stub.ApplyPlan, request):
            yield answer.event

    async def events(
        self, *texts: str, stack: str = "", org: str = "", digest: str = "", **more: Any
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        """
        An apply, event by event; with *more* fields of the request, but values may be missing.

        Raises:
            InvalidPackage: The package breaks rules.
        """
        request = applier_pb2.ApplyRequest(
            target=object_pb2.Target(org=org),
            package=planner_pb2.PackageSources(sources=sources(texts)),
            plan_digest=digest,
            **{"allow_missing": True, **more},
        )
        if stack:
            request.stack.name = stack
        stub = ApplierServiceStub(self.peers["applier"].channel)
        async for answer in self.peers["applier"].stream(stub.Apply, request):
            if answer.HasField("invalid_package"):
                raise InvalidPackage(answer.invalid_package)
            yield answer.event

    async def apply(self, *texts: str, stack: str = "", org: str = "", **more: Any) -> operation_pb2.Finished:
        """An apply to its end."""
        return [event async for event in self.events(*texts, stack=stack, org=org, **more)][-1].finished

    async def uninstall(self, stack: str) -> operation_pb2.Finished:
        """An uninstall to its end."""
        request = applier_pb2.UninstallStackRequest(stack=planner_pb2.StackRef(name=stack))
        stub = ApplierServiceStub(self.peers["applier"].channel)
        stream = self.peers["applier"].stream(stub.UninstallStack, request)
        return [answer async for answer in stream][-1].event.finished

    async def cancel(self, operation: str) -> None:
        """Ask an operation to turn back."""
        stub = ApplierServiceStub(self.peers["applier"].channel)
        await self.peers["applier"].call(stub.CancelOperation, applier_pb2.CancelOperationRequest(operation=operation))

    async def record(self, name: str) -> stack_pb2.Stack:
        """The record of a stack."""
        stub = StackServiceStub(self.peers["stack"].channel)
        named = stack_pb2.NamedStack(name=name)
        return (await self.peers["stack"].call(stub.GetStack, stack_pb2.GetStackRequest(named=named))).stack

    async def stack_names(self) -> list[str]:
        """Names of all stacks."""
        stub = StackServiceStub(self.peers["stack"].channel)
        answer = await self.peers["stack"].call(stub.ListStacks, stack_pb2.ListStacksRequest())
        return [found.name for found in answer.stacks]

    async def resources(self, org: str = "default", kinds: Collection[str] = KINDS.keys()) -> list[object_pb2.Resource]:
        """All that the platform holds, sorted by kind and id."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        request = driver_pb2.ListResourcesRequest(org=org, kinds=kinds)
        return [
            resource
            async for chunk in self.peers["platform"].stream(stub.ListResources, request)
            for resource in chunk.resources
        ]

    async def secret_keys(self, org: str = "default") -> list[str]:
        """Keys of the secrets that the platform holds, sorted."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        request = driver_pb2.ListSecretKeysRequest(org=org)
        return list((await self.peers["platform"].call(stub.ListSecretKeys, request)).keys)

    async def mutate(self, *mutations: driver_pb2.Mutation, org: str = "default") -> driver_pb2.MutateResponse:
        """Change the platform behind pkger's back, as people do."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        return await self.peers["platform"].call(stub.Mutate, driver_pb2.MutateRequest(org=org, mutations=mutations))


@asynccontextmanager
async def cluster(
    data: Path, replaced: Mapping[str, Opened] | None = None, given: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """
    Run the services.

    Args:
        data: Folder of the databases.
        replaced: Services to run in place of the usual ones.
        given: Addresses of services that run elsewhere.
    """
    addresses: dict[str, str] = dict(given or {})
    async with AsyncExitStack() as running:
        for name, opened in {**OPENED, **(replaced or {})}.items():
            if name in addresses:
                continue
            settings = Settings(addresses, "", data, data)
            service = await running.enter_async_context(opened(settings))
            addresses[name] = await running.enter_async_context(
                serving(service.register, service.names, "127.0.0.1:0", 1, service.drain)
            )
        peers = {name: await running.enter_async_context(Peer(name, address)) for name, address in addresses.items()}
        yield Cluster(addresses, peers)


def sources(texts: Sequence[str]) -> list[parser_pb2.Source]:
    """Package texts as sources; a text that begins with ``[`` is JSON."""
    return [
        parser_pb2.Source(
            name=f"source-{number}",
            text=text,
            encoding=parser_pb2.ENCODING_JSON if text.startswith("[") else parser_pb2.ENCODING_YAML,
        )
        for number, text in enumerate(texts)
    ]


class Calls(logging.Handler):
    """Counts the calls that servers of this process serve, by the last part of their method."""

    def __init__(self) -> None:
        super().__init__()
        self.methods: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Count *record* if it is the line of a call."""
        method: Any = record.__dict__.get("method")
        if record.getMessage() == "call" and method:
            self.methods.append(str(method).rpartition("/")[2])

    def count(self, method: str) -> int:
        """Number of calls of *method* so far."""
        return self.methods.count(method)
