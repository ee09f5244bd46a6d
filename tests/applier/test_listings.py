"""
A listing does not prove absence: nothing is created twice, and nothing is lost (docs/reference/engine.md, "Cases",
case 7).
"""

import pytest
from pkger.model.v1 import object_pb2

from services.core.errors import ServiceUnavailable
from tests.applier.world import SUCCEEDED, World, end
from tests.apply.packages import an_object, text

PACKAGE = text(
    an_object("Label", "l", "sensors"), an_object("Bucket", "b", "raw", ["l"]), an_object("Dashboard", "d", "board")
)
WITHOUT_BOARD = text(an_object("Label", "l", "sensors"), an_object("Bucket", "b", "raw", ["l"]))


@pytest.mark.parametrize("way", ["apply", "apply less", "uninstall"])
@pytest.mark.parametrize("kinds", [["Label"], ["Bucket"], ["Dashboard"], ["Label", "Bucket", "Dashboard"]])
async def test_a_resource_that_a_listing_lacks_gets_no_step(faulty: World, way: str, kinds: list[str]) -> None:
    case = await faulty.case_with(PACKAGE)
    before = await case.look()
    case.driver.heal()
    case.driver.list_old({0: [each for each in before.resources if each.kind not in kinds]})

    with pytest.raises(ServiceUnavailable, match="which exists"):
        await (case.uninstall() if way == "uninstall" else case.apply(PACKAGE if way == "apply" else WITHOUT_BOARD))

    assert case.driver.calls == 0
    assert await case.look() == before
    assert end(await case.apply(PACKAGE)).no_change
    assert end(await case.uninstall()).state == SUCCEEDED
    assert (await case.look()).ids == set()


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_listing_with_a_resource_twice_is_refused(faulty: World, is_new: bool) -> None:
    case = await faulty.case_with("" if is_new else PACKAGE)
    board = object_pb2.Resource(kind="Dashboard", id="1", display_name="board", spec_json='{"name":"board"}')
    listed = [board] if is_new else [*(await case.look()).resources]
    before = await case.look()
    case.driver.heal()
    case.driver.list_old({0: [*listed, listed[-1]]})

    with pytest.raises(ServiceUnavailable, match="twice"):
        await case.apply(PACKAGE)

    assert await case.look() == before


async def test_a_stale_listing_creates_nothing_again(faulty: World) -> None:
    case = await faulty.case_with(WITHOUT_BOARD)
    old = [*(await case.look()).resources]
    assert end(await case.apply(PACKAGE)).state == SUCCEEDED
    now = await case.look()
    case.driver.heal()
    case.driver.list_old({0: old})

    with pytest.raises(ServiceUnavailable, match="which exists"):
        await case.apply(PACKAGE)

    assert await case.look() == now
