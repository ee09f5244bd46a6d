"""Before or after and nothing between, whatever packages and faults come together (engine.md 10.4)."""

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.core.errors import TokenStale
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.random_packages import packages
from tests.applier.world import SUCCEEDED, World, check, end

# What takes effect later than anybody waits is another matter.
prompt_faults = [fault for fault in ItemFault if fault is not ItemFault.DELAY]
item_faults = st.dictionaries(st.integers(0, 24), st.sampled_from(prompt_faults), max_size=3)
call_faults = st.dictionaries(st.integers(0, 10), st.sampled_from(CallFault), max_size=2)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=packages(),
    wanted=packages(),
    items=item_faults,
    calls=call_faults,
    lasting=st.booleans(),
    memory=st.sampled_from(Memory),
)
async def test_record_and_platform_agree_unless_an_event_says_where_not(
    faulty: World,
    before: str,
    wanted: str,
    items: dict[int, ItemFault],
    calls: dict[int, CallFault],
    lasting: bool,
    memory: Memory,
) -> None:
    faulty.driver.memory = memory
    clean, case = faulty.case(), faulty.case()
    await asyncio.gather(clean.apply(wanted), case.apply(before))
    goal, at_first = await asyncio.gather(clean.look(), case.look())
    case.driver.fail(items, calls, lasting)
    try:
        events = await case.apply(wanted)
    except TokenStale:
        # Cut off: somebody carries it on.
        await case.settled()
    else:
        check(at_first, events, await case.look(), goal.content)
        assert not any(event.HasField("late_effects") for event in events)
    case.driver.heal()
    assert end(await case.apply(wanted)).state == SUCCEEDED
    now = await case.look()
    assert now.content == goal.content
    assert set(now.recorded.values()) == now.ids
