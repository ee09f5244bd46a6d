"""Calls of a driver that fail over real connections. Tests elsewhere that need these or real clocks are marked."""

import pytest

from tests.applier.faulty import CallFault
from tests.applier.packages import CHANGES
from tests.applier.world import SUCCEEDED, World, check, end

pytestmark = pytest.mark.real_time


@pytest.mark.parametrize(
    "fault",
    [
        CallFault.AWAY,
        CallFault.AWAY_AFTERWARDS,
        CallFault.RESET,
        CallFault.DEFECT,
        CallFault.BARE,
        CallFault.SHORT,
    ],
)
async def test_a_call_that_fails_once_changes_nothing(faulty: World, fault: CallFault) -> None:
    before, after = CHANGES["mixed"]
    undisturbed = await faulty.case_with(before)
    assert end(await undisturbed.apply(after)).state == SUCCEEDED
    wanted = (await undisturbed.look()).content

    case = await faulty.case_with(before)
    at_first = await case.look()
    case.driver.fail(calls={1: fault})
    events = await case.apply(after)
    assert end(events).state == SUCCEEDED
    assert not end(events).leftover_count
    check(at_first, events, await case.look(), wanted)
