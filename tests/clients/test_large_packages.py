"""
Clients with gRPC's default limits plan, apply, watch and uninstall a package of 40,000 objects (docs/clients.md,
"Limits").
"""

from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2, operation_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from bench.cluster import cluster
from bench.package import Mix, package_text
from services.rpc.parts import MAX_PART_BYTES
from services.views.ids import add_ids
from tests import needs
from tests.clients.page import blocks, build, shell
from tests.cluster import ALL_VIEWS, Cluster
from tests.ports import Home
from tests.samples import rare

pytestmark = pytest.mark.slow

OBJECTS = 40_000

RAISED = {"PKGER_MAX_BYTES": str(64 * 1024 * 1024), "PKGER_MAX_NODES": "10000000", "PKGER_MAX_SECONDS": "120"}
"""Bounds of the parser; the default ones suit packages written by hand."""

STACK = object_pb2.StackRef(name="large")
SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED

FRAME = 64
"""Bytes that the message adds to its content."""


async def received(messages: AsyncIterable[Any]) -> list[Any]:
    """All messages of a stream, checked against the bound of their size."""
    found = [message async for message in messages]
    assert max(message.ByteSize() for message in found) <= MAX_PART_BYTES + FRAME
    return found


def sizes_without_ids(events: Sequence[operation_pb2.OperationEvent]) -> list[int]:
    """Bytes of each event without the ids of resources in it."""
    return [
        event.ByteSize() - sum(len(outcome.done.resource_id) for outcome in event.steps_ended.outcomes)
        for event in events
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("objects", [8_000, rare(OBJECTS)])
async def test_a_python_client_with_default_limits_does_everything(objects: int) -> None:
    source = parser_pb2.Source(name="large.yml", text=package_text(objects, Mix.SMALL))
    package = planner_pb2.PackageSources(sources=[source])
    async with cluster(RAISED) as services:
        channels = {name: grpc.aio.insecure_channel(address) for name, address in services.addresses.items()}
        planner, applier = PlannerServiceStub(channels["planner"]), ApplierServiceStub(channels["applier"])
        stacks = StackServiceStub(channels["stack"])

        request = planner_pb2.CreatePlanRequest(stack=STACK, package=package, view=ALL_VIEWS)
        parts = [answer.part for answer in await received(planner.CreatePlan(request))]
        header = parts[0].header
        assert header.counts.creates == objects
        assert sum(len(part.steps.steps) for part in parts) > objects
        assert sum(len(part.diffs.resources) for part in parts) == objects

        options = applier_pb2.RunOptions(expected_plan_digest=header.digest)
        applying = applier.ApplyPlan(applier_pb2.ApplyPlanRequest(plan_id=header.id, run_options=options))
        begun, *events = await received(applying)
        assert (events[-1].finished.state, events[-1].finished.counts) == (SUCCEEDED, header.counts)
        assert {event.operation_id for event in events} == {begun.operation_id}
        assert max(sizes_without_ids(events)) <= 4096

        watching = applier.WatchOperation(applier_pb2.WatchOperationRequest(operation_id=begun.operation_id))
        assert await received(watching) == events

        shown = stack_pb2.GetPlanRequest(plan_id=header.id, view=ALL_VIEWS)
        diffs = [each for answer in await received(stacks.GetPlan(shown)) for each in answer.part.diffs.resources]
        listing, owned = stack_pb2.ListResourcesRequest(stack=STACK, page_size=5000), list[str]()
        while not owned or listing.page_token:
            page = await stacks.ListResources(listing)
            assert page.ByteSize() <= MAX_PART_BYTES
            owned += [entry.resource_id for entry in page.resources]
            listing.page_token = page.next_page_token
        # The plan was made before its resources; their ids are in the events.
        made = dict[int, str]()
        for event in events:
            add_ids(made, event)
        assert [made[diff.create_step] for diff in diffs] == owned
        assert len(set(owned)) == objects

        uninstalling = applier.UninstallStack(applier_pb2.UninstallStackRequest(stack=STACK))
        assert (await received(uninstalling))[-1].finished.state == SUCCEEDED
        for channel in channels.values():
            await channel.close()


@pytest.mark.faults
@pytest.mark.timeout(900)
@needs.program("go")
@needs.program("buf")
async def test_a_client_in_go_does_everything(tmp_path: Path) -> None:
    package = tmp_path / "large.yml"
    package.write_text(package_text(OBJECTS, Mix.SMALL))
    folder = tmp_path / "client"
    folder.mkdir()
    async with cluster(RAISED) as running:
        home = Home(Cluster({}, {}), running.addresses, tmp_path)
        make, _ = blocks("Go")
        await build(make, home, folder)
        status, output, errors = await shell(f"./fleet {package}", home, folder, 600)
    assert (status, errors) == (0, ""), errors
    assert output.count("resource: ") == OBJECTS
    assert output.count("operation: succeeded") == 3
