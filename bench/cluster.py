"""Runs the five services as separate processes, as ``pkger up`` does, and measures their memory and calls."""

import os
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO

import orjson
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from bench.figures import Seconds
from services.cli.process.supervisor import Supervisor, children
from services.platforms import read_platforms
from services.rpc.client import Peer
from services.rpc.convert.drift import counts_from_pb
from services.rpc.plan_parts import JoinedPlan, joined
from services.settings import PORTS, address_variable, load

STACK = "bench"


class Unexpected(Exception):
    """A call had another result than the one to measure."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """
    The running services.

    Attributes:
        planner: Connection to the planner.
        applier: Connection to the applier.
        addresses: The addresses of all services, by name.
        logs: The folder with their logs and databases.
        pids: Their process ids by name.
    """

    planner: Peer
    applier: Peer
    addresses: Mapping[str, str]
    logs: Path
    pids: Mapping[str, int]

    async def plan(self, text: str) -> JoinedPlan:
        """
        Plan the package *text* for the one stack, with all steps.

        Raises:
            Unexpected: The package breaks rules.
        """
        request = planner_pb2.CreatePlanRequest(
            validate_only=True, package=sources(text), view=[plan_pb2.PLAN_VIEW_STEPS]
        )
        request.stack.name = STACK
        answers = self.planner.stream(PlannerServiceStub(self.planner.channel).CreatePlan, request)
        plan = await joined(answers)
        if not isinstance(plan, JoinedPlan):
            raise Unexpected(f"invalid package: {plan[0]}")
        return plan

    async def apply(
        self, text: str, end: operation_pb2.OperationState.ValueType = operation_pb2.OPERATION_STATE_SUCCEEDED
    ) -> operation_pb2.Finished:
        """
        Apply the package *text* to the one stack, and follow the events to the last one.

        Raises:
            Unexpected: It ended in another state than *end*.
        """
        request = applier_pb2.ApplyRequest(package=sources(text))
        request.stack.name = STACK
        stub = ApplierServiceStub(self.applier.channel)
        *_, last = [event async for event in self.applier.stream(stub.Apply, request)]
        if last.finished.state != end:
            raise Unexpected(f"the apply ended otherwise: {last.finished.cause or last}")
        return last.finished

    async def uninstall(self) -> None:
        """
        Uninstall the one stack, and follow the events to the last one.

        Raises:
            Unexpected: It did not succeed.
        """
        request = applier_pb2.UninstallStackRequest(
            stack=object_pb2.StackRef(name=STACK), after_uninstall=plan_pb2.AFTER_UNINSTALL_DELETE
        )
        stub = ApplierServiceStub(self.applier.channel)
        *_, last = [event async for event in self.applier.stream(stub.UninstallStack, request)]
        if last.finished.state != operation_pb2.OPERATION_STATE_SUCCEEDED:
            raise Unexpected(f"the uninstall ended otherwise: {last.finished.cause or last}")

    async def export(self, count: int) -> None:
        """
        Export the one stack, all *count* objects of it.

        Raises:
            Unexpected: The export has another number of objects.
        """
        request = planner_pb2.ExportPackageRequest()
        request.stack.name = STACK
        stream = self.planner.stream(PlannerServiceStub(self.planner.channel).ExportPackage, request)
        header, *_ = [message async for message in stream]
        if header.header.object_count != count:
            raise Unexpected(f"the export has {header.header.object_count} objects")

    async def drift(self) -> planner_pb2.DriftSummary:
        """
        Detect the drift of the one stack, and read all reports.

        Raises:
            Unexpected: A resource is not in sync.
        """
        request = planner_pb2.DetectDriftRequest(stack=object_pb2.StackRef(name=STACK))
        stub = PlannerServiceStub(self.planner.channel)
        first, *_ = [event async for event in self.planner.stream(stub.DetectDrift, request)]
        counts = counts_from_pb(first.summary.counts)
        if sum(counts) > counts.in_sync:
            raise Unexpected(f"there is drift: {counts}")
        return first.summary

    def served(self, service: str) -> list[tuple[str, Seconds]]:
        """The calls that a service has served, in the order of their ends: name of the method, and duration."""
        lines = map(orjson.loads, (self.logs / f"{service}.log").read_bytes().splitlines())
        return [
            (line["method"].rpartition("/")[2], line["duration_ms"] / 1000)
            for line in lines
            if line["message"] == "call"
        ]

    def revision_bytes(self) -> int:
        """Bytes that the compressed package of the only revision takes in the store."""
        with closing(sqlite3.connect(f"file:{self.logs / 'stack.db'}?mode=ro", uri=True)) as store:
            [(size,)] = store.execute(
                "SELECT SUM(LENGTH(body)) FROM attachment_parts JOIN revisions ON digest = package_digest"
            )
        return int(size)

    def peak_memory(self) -> dict[str, int]:
        """The peak memory of each process since ``forget_peaks``, in bytes; empty without /proc."""
        return {name: peak for name, pid in self.pids.items() if (peak := _peak(pid)) is not None}

    def cpu(self) -> Seconds:
        """The CPU time that all processes have taken so far."""
        return sum(map(cpu_of, self.pids.values()))

    def forget_peaks(self) -> None:
        """Reset the peaks of memory; if the kernel cannot, peaks are those since the start of the process."""
        for pid in self.pids.values():
            clear = Path(f"/proc/{pid}/clear_refs")
            if clear.exists():
                clear.write_text("5")


@asynccontextmanager
async def cluster(
    more: Mapping[str, str] | None = None, modules: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Cluster]:
    """
    Run the services on empty databases in a temporary folder.

    Args:
        more: Further settings.
        modules: Modules that run instead of those of the services, by their names.
    """
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as name:
        folder = Path(name)
        addresses = {address_variable(service): f"unix:{folder / service}.sock" for service in PORTS}
        # Settings of pkger in the caller's environment do not count.
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        environ = {**inherited, **addresses, "PKGER_HOME": name, **(more or {})}
        settings = load(environ)
        running_services = [
            replace(child, command=(modules[child.name],)) if child.name in modules else child
            for child in children(PORTS, settings, read_platforms(settings).values())
        ]
        supervisor = Supervisor(running_services, environ, partial(_log, folder))
        async with AsyncExitStack() as running:
            await supervisor.start()
            running.push_async_callback(supervisor.stop)
            planner = await running.enter_async_context(Peer("planner", settings.addresses["planner"]))
            applier = await running.enter_async_context(Peer("applier", settings.addresses["applier"]))
            yield Cluster(planner, applier, settings.addresses, folder, supervisor.pids)


def cpu_of(pid: int) -> Seconds:
    """The CPU time that all threads of a process have taken so far; Linux only."""
    runs = (task.joinpath("schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int(run.split()[0]) for run in runs) / 1e9


def sources(text: str) -> planner_pb2.PackageSources:
    """The package *text* in one source."""
    source = parser_pb2.Source(name="bench.yml", encoding=parser_pb2.ENCODING_YAML, text=text)
    return planner_pb2.PackageSources(sources=[source])


def _log(folder: Path, service: str) -> IO[bytes]:
    return (folder / f"{service}.log").open("ab")


def _peak(pid: int) -> int | None:
    """The peak resident memory of a process, in bytes; None if the kernel does not report it."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) * 1024
