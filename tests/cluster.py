"""All five services in this process, connected by gRPC as in production, or in memory (tests/transport.py)."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.journal.v1 import planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

import applier_svc.__main__ as applier
import parser_svc.__main__ as parser
import planner_svc.__main__ as planner
import services.drivers.__main__ as platform
import stack_svc.__main__ as stack
from services.kinds.registry import KINDS
from services.platforms import Platform
from services.rpc.channel import Connect, grpc_channel
from services.rpc.client import Peer
from services.rpc.convert.plans import step_from_pb
from services.rpc.plan_parts import JoinedPlan, View, joined
from services.rpc.process import Opened
from services.settings import Settings
from services.views.ids import fill_in
from services.views.warnings import warning_lines
from tests.databases import copy_databases
from tests.transport import Transport, through, transport_of_loop

OPENED: Mapping[str, Opened] = {
    "stack": stack.opened,
    "platform": partial(platform.opened, platform=Platform("embedded", "embedded", "")),
    "parser": parser.opened,
    "planner": planner.opened,
    "applier": applier.opened,
}
"""The services in the order of their calls: a service follows all services that it calls."""


ALL_VIEWS = (
    plan_pb2.PLAN_VIEW_STEPS,
    plan_pb2.PLAN_VIEW_DIFFS,
    plan_pb2.PLAN_VIEW_SUMMARY,
    plan_pb2.PLAN_VIEW_RECORD,
)
"""All parts of a plan."""


class InvalidPackage(Exception):
    """The package breaks rules at ``paths``."""

    def __init__(self, violations: Sequence[object_pb2.Violation]) -> None:
        super().__init__("\n".join(map(str, violations)))
        self.paths = [violation.path for violation in violations]


class Shown:
    """
    A plan as tests read it: header and remarks together, steps as values.

    Attributes:
        parts: The plan, joined.
        steps: Its steps.
        resource_diffs: Its diffs of objects.
        label_mapping_diffs: Its diffs of associations.
        summary: The summary document.
    """

    def __init__(self, parts: JoinedPlan) -> None:
        self.parts = parts
        self.header = parts.header
        self.name, self.digest, self.no_change = parts.header.id, parts.header.digest, parts.header.no_change
        self.stages, self.state = list(parts.header.stages), parts.header.state
        self.steps = [step_from_pb(step) for step in parts.steps]
        self.resource_diffs = list(parts.diffs.resources)
        self.label_mapping_diffs = list(parts.diffs.label_mappings)
        self.record = parts.body.record
        self.summary = json.loads(parts.summary) if parts.summary else None
        self.missing_env_refs = list(parts.remarks.missing_env_refs)
        self.unresolved_env_refs = list(parts.remarks.unresolved_env_refs)
        self.missing_secrets = list(parts.remarks.missing_secrets)
        self.warnings = list(warning_lines(parts.remarks, full=True))
        self.conflicts = list(parts.remarks.conflicts)


@dataclass(frozen=True)
class Record:
    """The record of a stack: its header and inventory."""

    stack: stack_pb2.Stack
    resources: list[object_pb2.InventoryEntry]

    @property
    def id(self) -> str:
        return self.stack.id

    @property
    def name(self) -> str:
        return self.stack.name

    @property
    def generation(self) -> int:
        return self.stack.generation

    @property
    def sources(self) -> list[str]:
        return list(self.stack.sources)

    @property
    def ids(self) -> dict[tuple[str, str], str]:
        """Ids of the resources by kind and name of their objects."""
        return {(entry.key.kind, entry.key.name): entry.resource_id for entry in self.resources}


@dataclass
class Export:
    """The joined parts of an export."""

    header: planner_pb2.ExportHeader = field(default_factory=planner_pb2.ExportHeader)
    warnings: list[planner_pb2.ExportWarning] = field(default_factory=list)
    secret_keys: list[str] = field(default_factory=list)
    text: str = ""

    def add(self, message: planner_pb2.ExportPackageResponse) -> None:
        """Add one message of the response."""
        match message.WhichOneof("part"):
            case "header":
                self.header = message.header
            case "warnings":
                self.warnings += message.warnings.warnings
            case "secrets":
                self.secret_keys += message.secrets.keys
            case _:
                self.text += message.text

    @property
    def warning_texts(self) -> list[str]:
        """The texts of the warnings."""
        return [warning.text for warning in self.warnings]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The documents of the YAML text, as PyYAML reads them."""
        return list(yaml.safe_load_all(self.text))


@dataclass
class Cluster:
    """
    The services as clients see them.

    Attributes:
        addresses: Their addresses.
        peers: Connections to them.
        org: The organization of calls that name none; empty: the default one.
        connect: Makes channels to the services.
    """

    addresses: dict[str, str]
    peers: dict[str, Peer]
    org: str = ""
    connect: Connect = grpc_channel

    def in_org(self, org: str) -> "Cluster":
        """The same services, with another organization for calls that name none."""
        return replace(self, org=org)

    def target(self, platform: str = "", org: str = "") -> object_pb2.Target:
        """The target of calls; an empty *org* means that of this object."""
        return object_pb2.Target(platform=platform, org=org or self.org)

    async def plan(
        self,
        *texts: str,
        stack: str = "",
        org: str = "",
        platform: str = "",
        destroy: bool = False,
        store: bool = False,
        standalone: bool = False,
        after_uninstall: plan_pb2.AfterUninstall.ValueType = plan_pb2.AFTER_UNINSTALL_UNSPECIFIED,
        **more: Any,
    ) -> Shown:
        """
        A plan: of a dry run, or to *store*; of a package, maybe a *standalone* one.

        *more* are fields of the request or its options; a stack is ``stack_ref``.

        Raises:
            InvalidPackage: The package breaks rules.
        """
        where = place(self.target(platform, org), stack, more.pop("stack_ref", None))
        fields: dict[str, Any] = {"view": ALL_VIEWS, **where, **with_options(more)}
        request = planner_pb2.CreatePlanRequest(validate_only=not store, **fields)
        if destroy:
            request.destroy.after_uninstall = after_uninstall
            request.destroy.SetInParent()
        elif texts:
            request.package.sources.extend(sources(texts))
        peer = self.peers["planner"]
        if standalone:
            message = planning_pb2.PlanStandalonePackageRequest(request=request)
            parts = peer.stream(PlanningServiceStub(peer.channel).PlanStandalonePackage, message)
            made = await joined(each.part async for each in parts if each.HasField("part"))
        else:
            answers = peer.stream(PlannerServiceStub(peer.channel).CreatePlan, request)
            made = await joined(answers)
        if not isinstance(made, JoinedPlan):
            raise InvalidPackage(made)
        return Shown(made)

    async def export(self, stack: str = "", org: str = "", platform: str = "", **more: Any) -> "Export":
        """An export, joined; with *more* fields of the request, a stack as ``stack_ref``."""
        where = place(self.target(platform, org), stack, more.pop("stack_ref", None))
        request = planner_pb2.ExportPackageRequest(**where, **more)
        stub, export = PlannerServiceStub(self.peers["planner"].channel), Export()
        async for message in self.peers["planner"].stream(stub.ExportPackage, request):
            export.add(message)
        return export

    async def stored_plan(self, name: str, view: Sequence[View] = ALL_VIEWS) -> Shown:
        """A stored plan."""
        stub = StackServiceStub(self.peers["stack"].channel)
        answers = self.peers["stack"].stream(stub.GetPlan, stack_pb2.GetPlanRequest(plan_id=name, view=view))
        plan = await joined(answers)
        assert isinstance(plan, JoinedPlan)
        return Shown(plan)

    async def apply_plan(self, plan: str, digest: str = "", **more: Any) -> AsyncIterator[operation_pb2.OperationEvent]:
        """The events of an apply of a stored plan; with *more* fields or options; values may be missing."""
        fields = {"allow_missing": True, "expected_plan_digest": digest, **more}
        request = applier_pb2.ApplyPlanRequest(plan_id=plan, **with_options(fields))
        stub = ApplierServiceStub(self.peers["applier"].channel)
        async for event in after_begun(self.peers["applier"].stream(stub.ApplyPlan, request)):
            yield event

    async def events(
        self, *texts: str, stack: str = "", org: str = "", platform: str = "", digest: str = "", **more: Any
    ) -> AsyncIterator[operation_pb2.OperationEvent]:
        """
        The events of an apply; with *more* fields of the request or its options, a stack as ``stack_ref``.

        Values may be missing.

        Raises:
            InvalidPackage: The package breaks rules.
        """
        request = applier_pb2.ApplyRequest(
            **place(self.target(platform, org), stack, more.pop("stack_ref", None)),
            package=planner_pb2.PackageSources(sources=sources(texts)) if texts else None,
            **with_options({"allow_missing": True, "expected_plan_digest": digest, **more}),
        )
        stub = ApplierServiceStub(self.peers["applier"].channel)
        violations: list[object_pb2.Violation] = []
        async for event in after_begun(self.peers["applier"].stream(stub.Apply, request)):
            if event.HasField("package_invalid"):
                violations += event.package_invalid.violations
            else:
                yield event
        if violations:
            raise InvalidPackage(violations)

    async def apply(self, *texts: str, stack: str = "", org: str = "", **more: Any) -> operation_pb2.Finished:
        """An apply to its end."""
        return [event async for event in self.events(*texts, stack=stack, org=org, **more)][-1].finished

    async def plan_that_ran(self, *texts: str, stack: str = "", org: str = "", **more: Any) -> Shown:
        """The stored plan of an apply that succeeded, with the ids of the resources that it created."""
        events = [event async for event in self.events(*texts, stack=stack, org=org, **more)]
        assert events[-1].finished.state == operation_pb2.OPERATION_STATE_SUCCEEDED, events[-1].finished.cause
        parts = (await self.stored_plan(events[0].accepted.plan_id)).parts
        fill_in(parts, events)
        return Shown(parts)

    async def uninstall(
        self,
        stack: str = "",
        platform: str = "",
        after_uninstall: plan_pb2.AfterUninstall.ValueType = plan_pb2.AFTER_UNINSTALL_DELETE,
        stack_id: str = "",
    ) -> operation_pb2.Finished:
        """An uninstall of a stack, by name or by id, to its end; it deletes the stack, unless *then* says otherwise."""
        ref = stack_ref(stack, stack_id, self.target(platform))
        request = applier_pb2.UninstallStackRequest(stack=ref, after_uninstall=after_uninstall)
        stub = ApplierServiceStub(self.peers["applier"].channel)
        stream = self.peers["applier"].stream(stub.UninstallStack, request)
        return [event async for event in stream][-1].finished

    async def newest_operation(self) -> operation_pb2.Operation:
        """The operation that began last."""
        peer, request = self.peers["applier"], applier_pb2.ListOperationsRequest(page_size=1)
        return (await peer.call(ApplierServiceStub(peer.channel).ListOperations, request)).operations[0]

    async def cancel(self, operation: str) -> None:
        """Cancel an operation."""
        stub = ApplierServiceStub(self.peers["applier"].channel)
        await self.peers["applier"].call(
            stub.CancelOperation, applier_pb2.CancelOperationRequest(operation_id=operation)
        )

    async def record(self, name: str = "", org: str = "", platform: str = "", stack_id: str = "") -> Record:
        """The record of a stack, by name or by id."""
        peer, ref = self.peers["stack"], stack_ref(name, stack_id, self.target(platform, org))
        stub = StackServiceStub(peer.channel)
        stack = (await peer.call(stub.GetStack, stack_pb2.GetStackRequest(stack=ref))).stack
        request, resources = stack_pb2.ListResourcesRequest(stack=ref), list[object_pb2.InventoryEntry]()
        while True:
            page = await peer.call(stub.ListResources, request)
            resources += page.resources
            if not page.next_page_token:
                return Record(stack, resources)
            request.page_token = page.next_page_token

    async def stack_names(self) -> list[str]:
        """Names of the stacks of the organization; without one, of all stacks."""
        stub = StackServiceStub(self.peers["stack"].channel)
        request = stack_pb2.ListStacksRequest(target=self.target() if self.org else None)
        answer = await self.peers["stack"].call(stub.ListStacks, request)
        return [found.name for found in answer.stacks]

    async def resources(self, org: str = "", kinds: Collection[str] = KINDS.keys()) -> list[object_pb2.Resource]:
        """All resources of the platform, sorted by kind and id."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        request = driver_pb2.ListResourcesRequest(org=org or self.org or "default", kinds=kinds)
        return [
            resource
            async for chunk in self.peers["platform"].stream(stub.ListResources, request)
            for resource in chunk.resources
        ]

    async def secret_keys(self, org: str = "") -> list[str]:
        """Keys of the secrets that the platform holds, sorted."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        request = driver_pb2.ListSecretKeysRequest(org=org or self.org or "default")
        return list((await self.peers["platform"].call(stub.ListSecretKeys, request)).keys)

    async def mutate(self, *mutations: driver_pb2.Mutation, org: str = "") -> driver_pb2.MutateResponse:
        """Change the platform outside pkger, as users do."""
        stub = DriverServiceStub(self.peers["platform"].channel)
        return await self.peers["platform"].call(
            stub.Mutate, driver_pb2.MutateRequest(org=org or self.org or "default", mutations=mutations)
        )


@asynccontextmanager
async def cluster(
    data: Path,
    replaced: Mapping[str, Opened] | None = None,
    given: Mapping[str, str] | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[Cluster]:
    """
    Run the services.

    Args:
        data: Folder of the databases.
        replaced: Services that replace the usual ones.
        given: Addresses of services that run elsewhere.
        transport: Connects the services, such as ``InMemory()``; None: that of the running loop.
    """
    transport = transport or transport_of_loop()
    addresses: dict[str, str] = dict(given or {})
    async with AsyncExitStack() as running:
        for name, opened in {**OPENED, **(replaced or {})}.items():
            if name in addresses:
                continue
            copy_databases(data, name)
            settings = Settings(addresses, data, data, data, repository_folders=None)
            service = await running.enter_async_context(through(transport, opened)(settings))
            addresses[name] = await running.enter_async_context(transport.serving(service))
        peers = {
            name: await running.enter_async_context(Peer(name, address, connect=transport.connect))
            for name, address in addresses.items()
        }
        yield Cluster(addresses, peers, connect=transport.connect)


async def after_begun(
    stream: AsyncIterator[operation_pb2.OperationEvent],
) -> AsyncIterator[operation_pb2.OperationEvent]:
    """The events of a new operation after ``begun``, which is the first one."""
    is_first = True
    async for event in stream:
        assert event.HasField("begun") == is_first
        if not is_first:
            yield event
        is_first = False


def stack_ref(name: str, stack_id: str, target: object_pb2.Target) -> object_pb2.StackRef:
    """A stack by its id, or by its name in *target* if *stack_id* is empty."""
    return object_pb2.StackRef(id=stack_id) if stack_id else object_pb2.StackRef(target=target, name=name)


def place(target: object_pb2.Target, stack: str, ref: object_pb2.StackRef | None = None) -> dict[str, Any]:
    """
    The fields of a request that name its subject: a stack, or a target without a stack.

    Args:
        target: The target.
        stack: The name of the stack; empty: *ref* names the stack, or there is none.
        ref: The stack; *target* is added, except to an id.
    """
    if not stack and ref is None:
        return {"target": target}
    known = object_pb2.StackRef(name=stack)
    if ref is not None:
        known.MergeFrom(ref)
    if not (known.id or known.HasField("target")):
        known.target.CopyFrom(target)
    return {"stack": known}


def with_options(fields: Mapping[str, Any]) -> dict[str, Any]:
    """*fields* of a request, among them fields of its options, as the request has them."""
    made = dict(fields)
    for name, options in (("options", planner_pb2.PlanOptions), ("run_options", applier_pb2.RunOptions)):
        given = {each: made.pop(each) for each in options.DESCRIPTOR.fields_by_name if each in made}
        if given:
            made[name] = options(**given)
    return made


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
    """The calls that servers of this process handle for somebody, by the last part of the method."""

    def __init__(self) -> None:
        super().__init__()
        self.methods: list[str] = []
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Count *record* if it logs a call, but for the one that a running applier makes every few seconds."""
        method = str(record.__dict__.get("method", "")).rpartition("/")[2]
        if record.getMessage() == "call" and method not in ("", "ListAbandonedOperations"):
            self.methods.append(method)
            self._more.set()

    async def ended(self, method: str, count: int = 1) -> None:
        """Wait until as many calls of *method* have ended: a client may get the last answer of a call before that."""
        while self.count(method) < count:
            self._more.clear()
            await self._more.wait()

    def count(self, method: str) -> int:
        """Number of calls of *method* so far."""
        return self.methods.count(method)
