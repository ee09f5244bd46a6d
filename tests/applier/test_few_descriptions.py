"""How long the services keep the description of a driver."""

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub

from services.core.errors import KindUnsupported
from tests.applier.world import SUCCEEDED, World, end
from tests.apply.packages import LABEL, an_object, text


async def test_a_description_that_lacks_a_kind_is_asked_for_again(faulty: World) -> None:
    """A driver that answered wrong once refuses one plan, and not all plans of its connection."""
    case = faulty.case()
    peer = case.services.peers["platform"]
    described = await peer.call(DriverServiceStub(peer.channel).Describe, driver_pb2.DescribeRequest())
    kinds = [each for each in described.kinds if each.kind != "Bucket"]
    del described.kinds[:]
    described.kinds.extend(kinds)
    case.driver.descriptions = [described]
    package = text(LABEL, an_object("Bucket", "raw", "raw"))
    with pytest.raises(KindUnsupported):
        await case.apply(package)
    assert end(await case.apply(package)).state == SUCCEEDED
