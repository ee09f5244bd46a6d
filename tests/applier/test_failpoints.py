"""The failpoints that an operation reaches."""

from collections.abc import Iterator

import pytest

from applier_svc import failpoints
from tests.applier.faulty import ItemFault
from tests.applier.test_events import SMALL
from tests.applier.world import ROLLED_BACK, World, end


@pytest.fixture
def reached() -> Iterator[list[str]]:
    """The failpoints that operations of this process reach."""
    names: list[str] = []
    failpoints.install(names.append)
    yield names
    failpoints.install(failpoints.deadly(""))


async def test_an_operation_calls_the_hook_at_each_failpoint(faulty: World, reached: list[str]) -> None:
    """The third of four steps is rejected, so the first two are undone."""
    case = faulty.case()
    case.driver.fail({2: ItemFault.REJECT})
    assert end(await case.apply(SMALL)).state == ROLLED_BACK
    forward = ["after_intent", "after_send", "after_record"]
    back = ["after_undo_intent", "after_undo_send", "after_undo_record"]
    assert reached == [
        *("after_begin", "after_start", *forward, *forward, "after_rollback", *back, *back),
        *("before_finish", "after_finish"),
    ]


async def test_a_hook_can_be_replaced_while_the_process_runs(faulty: World, reached: list[str]) -> None:
    await faulty.case().apply(SMALL)
    before = list(reached)
    failpoints.install(failpoints.deadly(""))
    await faulty.case().apply(SMALL)
    assert before
    assert reached == before
