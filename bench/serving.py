"""Measures the HTTP gateway: the time that it adds to a call, its memory, and its requests per second."""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import yaml
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.journal.v1 import planning_pb2
from pkger.journal.v1.planning_pb2_grpc import PlanningServiceStub
from pkger.model.v1 import plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2

from bench.cluster import Cluster, Unexpected, cluster, cpu_of
from bench.figures import Figure, Seconds, median_of_async, seconds
from bench.package import Mix, package_text
from services.rpc.message_json import document_of
from services.rpc.plan_parts import joined
from services.settings import address_variable

APPLY = "/api/v2/templates/apply"

STACKS = 100

CLIENTS = 32

TIMES = 5

APPLIES = 10
"""Applies whose events are counted, over HTTP and by gRPC."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """
    A running gateway.

    Attributes:
        http: Its client.
        org: Id of its organization.
        pid: Its process id.
        start: Seconds from the start of its process to its first response.
    """

    http: aiohttp.ClientSession
    org: str
    pid: int
    start: Seconds

    async def post(self, path: str, body: bytes) -> None:
        """
        Send a request and read its response.

        Raises:
            Unexpected: The response is an error.
        """
        async with self.http.post(path, data=body) as answer:
            await answer.read()
            if answer.status >= 300:
                raise Unexpected(f"{path}: {answer.status}")

    async def events(self, path: str, body: bytes) -> list[Seconds]:
        """
        The age of each event of a stream when its message arrives.

        Raises:
            Unexpected: The response is an error, or the operation did not succeed.
        """
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        ages: list[Seconds] = []
        last: dict[str, Any] = {}
        async with self.http.post(path, data=body, headers=headers) as answer:
            async for line in answer.content:
                if line.startswith(b"data: "):
                    now, last = datetime.now(UTC), orjson.loads(line.removeprefix(b"data: "))
                    ages.append((now - datetime.fromisoformat(last["time"])).total_seconds())
        if last.get("finished", {}).get("state") != "OPERATION_STATE_SUCCEEDED":
            raise Unexpected(f"{path}: {answer.status}: {last}")
        return ages

    def cpu(self) -> Seconds:
        """The CPU time that all its threads have taken."""
        return cpu_of(self.pid)

    async def get(self, path: str) -> None:
        """
        Send a request and read its response.

        Raises:
            Unexpected: The response is an error.
        """
        async with self.http.get(path) as answer:
            await answer.read()
            if answer.status >= 300:
                raise Unexpected(f"{path}: {answer.status}")

    def peak(self) -> int:
        """Its peak memory, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(dict(line.split(":", 1) for line in status.splitlines())["VmHWM"].split()[0]) * 1024


async def serving(sizes: list[int]) -> list[Figure]:
    """All figures about the gateway, for packages of these sizes."""
    figures: list[Figure] = []
    counted = min(2.0, max(sizes) / 500)
    async with cluster() as services, gateway(services) as http:
        figures.append(Figure("gateway: start", "", seconds(http.start), "< 1 s"))
        for size in sorted({1, *sizes}):
            figures.append(await _dry_run(services, http, size))
        figures.append(Figure("  its peak memory", "", f"{http.peak() / 1e6:.0f} MB", "< 300 MB"))
        rate = await _rate(counted, lambda: http.get("/health"))
        figures.append(Figure("gateway: /health", "", f"{rate:,.0f} a second"))
        for number in range(STACKS):
            await http.post("/api/v2/stacks", orjson.dumps({"orgID": http.org, "name": f"stack-{number}"}))
        rate = await _rate(counted, lambda: http.get(f"/api/v2/stacks?orgID={http.org}"))
        figures.append(Figure("gateway: list of stacks", f"{STACKS} stacks", f"{rate:,.1f} a second"))
        figures.append(await _together(http, min(1_000, max(sizes))))
        figures += await _events(services, http)
    return figures


@asynccontextmanager
async def gateway(services: Cluster) -> AsyncIterator[Gateway]:
    """A gateway in front of *services*."""
    path = services.logs / "http.sock"
    addresses = {address_variable(name): address for name, address in services.addresses.items()}
    environ = {**os.environ, **addresses, "PKGER_LISTEN": f"unix:{path}", "PKGER_HOME": str(services.logs)}
    began = time.perf_counter()
    with (services.logs / "http.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.gateway", env=environ, stderr=log
        )
    try:
        # The client does not inflate responses: its work is not part of the time of the gateway.
        connector, sent = aiohttp.UnixConnector(str(path)), {"Accept-Encoding": "gzip"}
        async with aiohttp.ClientSession(
            "http://localhost", connector=connector, headers=sent, auto_decompress=False
        ) as http:
            while True:
                try:
                    async with http.get("/api/v2/orgs") as answer:
                        org = (await answer.json())["orgs"][0]["id"]
                        break
                except aiohttp.ClientConnectionError:
                    await asyncio.sleep(0.01)
            yield Gateway(http, org, process.pid, time.perf_counter() - began)
    finally:
        process.terminate()
        await process.wait()


async def _dry_run(services: Cluster, http: Gateway, size: int) -> Figure:
    """The time that a dry run takes over HTTP in addition to the same call by gRPC."""
    objects = [_jsonable(each) for each in yaml.load_all(package_text(size, Mix.MIXED), yaml.CSafeLoader)]
    body = _body(http, objects)
    source = parser_pb2.Source(
        name="bench", encoding=parser_pb2.ENCODING_JSON, text=orjson.dumps(objects).decode(), generated=True
    )
    request = planner_pb2.CreatePlanRequest(
        validate_only=True,
        package=planner_pb2.PackageSources(sources=[source]),
        view=[plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_SUMMARY],
    )
    message = planning_pb2.PlanStandalonePackageRequest(request=request)
    stub = PlanningServiceStub(services.planner.channel)

    async def by_grpc() -> None:
        answers = services.planner.stream(stub.PlanStandalonePackage, message)
        await joined(each.part async for each in answers if each.HasField("part"))

    times = 3 if size > 1_000 else TIMES * 4
    await http.post(APPLY, body)
    began, own_began = http.cpu(), time.process_time()
    by_grpc_took = await median_of_async(times, by_grpc)
    own = time.process_time() - own_began
    by_http_took = await median_of_async(times, lambda: http.post(APPLY, body))
    cpu = http.cpu() - began - own
    goals = {1: "2 ms", 1_000: "40 ms", 10_000: "500 ms"}
    value = (
        f"{cpu / times * 1000:,.1f} ms of CPU, {(by_http_took - by_grpc_took) * 1000:,.1f} ms "
        f"of {by_http_took * 1000:,.1f} ms"
    )
    return Figure("gateway: its own time for a dry run", f"{size:,} mixed", value, goals.get(size, ""))


def _body(http: Gateway, objects: list[Any]) -> bytes:
    return orjson.dumps({"dryRun": True, "orgID": http.org, "template": {"contents": objects}})


def _jsonable(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


async def _rate(counted: Seconds, ask: Callable[[], Awaitable[None]]) -> float:
    """Requests per second of eight clients, which ask for *counted* seconds."""
    until, count = time.perf_counter() + counted, 0

    async def client() -> None:
        nonlocal count
        while time.perf_counter() < until:
            await ask()
            count += 1

    await asyncio.gather(*(client() for _ in range(8)))
    return count / counted


async def _together(http: Gateway, size: int) -> Figure:
    """The longest response time of a ping while many clients plan, and the CPU time of the gateway in it."""
    body = _body(http, [_jsonable(each) for each in yaml.load_all(package_text(size, Mix.MIXED), yaml.CSafeLoader)])
    waits: list[Seconds] = []
    busy: list[Seconds] = []
    is_over = asyncio.Event()

    async def pings() -> None:
        while not is_over.is_set():
            began, cpu = time.perf_counter(), http.cpu()
            await http.get("/ping")
            waits.append(time.perf_counter() - began)
            busy.append(http.cpu() - cpu)
            await asyncio.sleep(0.005)

    pinging = asyncio.create_task(pings())
    await asyncio.gather(*(http.post(APPLY, body) for _ in range(CLIENTS)))
    is_over.set()
    await pinging
    value = (
        f"{max(busy) * 1000:,.0f} ms of CPU, {max(waits) * 1000:,.0f} ms; "
        f"median {statistics.median(waits) * 1000:,.1f} ms"
    )
    return Figure(f"gateway: a ping while {CLIENTS} clients plan", f"{size:,} mixed", value, "< 50 ms")


async def _events(services: Cluster, http: Gateway) -> list[Figure]:
    """The age of events of small applies when a client receives them: over HTTP, and by gRPC."""
    by_http: list[Seconds] = []
    by_grpc: list[Seconds] = []
    stub = ApplierServiceStub(services.applier.channel)
    # Each package changes objects of the one before.
    packages = [package_text(10, Mix.SMALL, seed) for seed in range(APPLIES * 2)]
    for text in packages[::2]:
        by_http += await http.events("/api/pkger/v1/packages:apply", orjson.dumps(document_of(_apply(text))))
    for text in packages[1::2]:
        async for event in services.applier.stream(stub.Apply, _apply(text)):
            by_grpc.append(datetime.now(UTC).timestamp() - event.time.ToNanoseconds() / 1e9)
    return [
        Figure("gateway: from an event to its SSE message", f"{len(by_http)} events", _shown(by_http), "< 20 ms"),
        Figure("  by gRPC", f"{len(by_grpc)} events", _shown(by_grpc)),
    ]


def _apply(text: str) -> applier_pb2.ApplyRequest:
    request = applier_pb2.ApplyRequest()
    request.stack.name = "events"
    request.package.sources.add(text=text)
    return request


def _shown(ages: list[Seconds]) -> str:
    return f"median {statistics.median(ages) * 1000:,.1f} ms, most {max(ages) * 1000:,.1f} ms"
