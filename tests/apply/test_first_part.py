"""The header of a plan is enough for a client: the plan is stored before it is sent."""

from collections.abc import Sequence

import pytest
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub

from services.rpc.plan_parts import View
from tests.apply.packages import STEPS
from tests.cluster import ALL_VIEWS, Cluster, place, sources


@pytest.mark.parametrize("view", [(), ALL_VIEWS], ids=["no-view", "all-views"])
@pytest.mark.parametrize("request_id", ["", "r-1"])
async def test_a_plan_whose_stream_is_cancelled_after_the_header_can_be_read_and_applied(
    services: Cluster, view: Sequence[View], request_id: str
) -> None:
    peer = services.peers["planner"]
    request = planner_pb2.CreatePlanRequest(
        **place(services.target(), "s"),
        package=planner_pb2.PackageSources(sources=sources([STEPS[1]])),
        view=view,
        request_id=f"{request_id} {services.org} {len(view)}" if request_id else "",
    )
    parts = peer.stream(PlannerServiceStub(peer.channel).CreatePlan, request)
    header = (await anext(parts)).part.header
    await parts.aclose()

    stored = await services.stored_plan(header.id)
    assert stored.header == header
    assert len(stored.steps) == sum([header.counts.creates, header.counts.attaches]) > 0
    assert [event async for event in services.apply_plan(header.id, header.digest)][-1].HasField("finished")
