"""Ctrl-C during an apply: it is rolled back."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub, add_DriverServiceServicer_to_server

from services.drivers.registry import opened as opened_driver
from services.drivers.servicer import SERVICES, DriverServicer
from services.platforms import Platform
from services.rpc.process import Service
from services.settings import Settings
from tests.apply.packages import STEPS
from tests.cli.command import at_terminal, ended, environment, pkger, process_at_terminal, started
from tests.cluster import Cluster, cluster


class Gate:
    """The embedded platform with a gate before the second batch of writes."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.batches = 0

    @asynccontextmanager
    async def opened(self, settings: Settings) -> AsyncIterator[Service]:
        gate = self

        class Gated(DriverServicer):
            async def Mutate(self, request: driver_pb2.MutateRequest, context: Any) -> driver_pb2.MutateResponse:
                gate.batches += 1
                if gate.batches == 2:
                    gate.reached.set()
                    await gate.open.wait()
                return await super().Mutate(request, context)

        async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
            yield Service([partial(add_DriverServiceServicer_to_server, Gated(driver))], SERVICES)


class PlanGate(Gate):
    """Holds the first listing of a plan."""

    @asynccontextmanager
    async def opened(self, settings: Settings) -> AsyncIterator[Service]:
        gate = self

        class Gated(DriverServicer):
            async def ListResources(self, request: Any, context: Any) -> AsyncIterator[Any]:
                gate.reached.set()
                await gate.open.wait()
                async for part in super().ListResources(request, context):
                    yield part

        async with opened_driver(Platform("embedded", "embedded", ""), settings.data) as driver:
            yield Service([partial(add_DriverServiceServicer_to_server, Gated(driver))], SERVICES)


async def test_ctrl_c_while_an_apply_is_planned_sends_nothing(tmp_path: Path) -> None:
    file, gate = tmp_path / "package.json", PlanGate()
    file.write_text(STEPS[1])
    async with cluster(tmp_path, replaced={"platform": gate.opened}) as services:
        env = environment(tmp_path, services.addresses)
        process = await started("apply", "-f", str(file), "--stack", "s", "--yes", env=env)
        await gate.reached.wait()
        process.send_signal(signal.SIGINT)
        assert process.stdout
        output = b""
        while b"the operation " not in output:
            output += await process.stdout.readline()
        gate.open.set()
        end = await ended(process)
        assert (end.code, end.err) == (5, "Error: the operation was cancelled; no change had to be undone\n")
        assert await services.stack_names() == []


async def test_ctrl_c_in_the_middle_of_an_apply_undoes_it(tmp_path: Path) -> None:
    file, gate = tmp_path / "package.json", Gate()
    file.write_text(STEPS[1])
    async with cluster(tmp_path, replaced={"platform": gate.opened}) as services:
        process = await started("apply", "-f", str(file), "--stack", "s", env=environment(tmp_path, services.addresses))
        await gate.reached.wait()
        process.send_signal(signal.SIGINT)
        assert process.stdout
        output = b""
        while b"the operation was asked to roll back" not in output:
            output += await process.stdout.readline()
        gate.open.set()
        end = await ended(process)
        assert end.code == 5
        assert end.err == "Error: the operation was cancelled; all changes are undone\n"
        assert await services.resources() == []
        assert await services.stack_names() == []


@pytest.mark.slow
async def test_the_operation_of_a_killed_client_continues(tmp_path: Path) -> None:
    file, gate = tmp_path / "package.json", Gate()
    file.write_text(STEPS[1])
    async with cluster(tmp_path, replaced={"platform": gate.opened}) as services:
        process = await started("apply", "-f", str(file), "--stack", "s", env=environment(tmp_path, services.addresses))
        await gate.reached.wait()
        process.kill()
        await ended(process)
        gate.open.set()
        await _applied(services)
        assert len((await services.record("s")).resources) == 3


async def _applied(services: Cluster) -> None:
    """Wait for the end of the only operation: its stack is listed once it succeeded."""
    stub = DriverServiceStub(services.peers["platform"].channel)
    while not await services.stack_names():
        await services.peers["platform"].call(stub.Describe, driver_pb2.DescribeRequest())


async def test_at_a_terminal_only_a_yes_applies(services: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "package.json"
    file.write_text(STEPS[1])
    env = environment(tmp_path, services.addresses)
    for answer, run, code, count in (
        (b"n\n", at_terminal, 1, 0),
        (b"\x03", process_at_terminal, 1, 0),
        (b"y\n", at_terminal, 0, 3),
    ):
        answers = [(b"Apply this plan? [y/N]", answer)]
        ended_with, _ = await run("apply", "-f", str(file), "--stack", "s", answers=answers, env=env)
        assert ended_with == code
        assert len(await services.resources()) == count
    plans = json.loads((await pkger("plans", "list", "-o", "json", env=env)).out)
    assert [plan["state"] for plan in plans] == ["PLAN_STATE_APPLIED"], "plans that are not approved are deleted"
