"""
What took effect after nobody waited for it any more is told at the end, and never silently left
(docs/reference/engine.md, "Recovery").
"""

import pytest

from tests.applier.faulty import ItemFault, Memory
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Events, World, end, told
from tests.apply.packages import an_object, text

ONE = text(an_object("Task", "roll", "roll", every="1h", query="buckets()"))
RED_ONE = text(an_object("Label", "red", "red"))
FAILING = text(an_object("Label", "red", "crimson"), an_object("Bucket", "reserved", "_system"))


def late(events: Events) -> list[str]:
    """What was told before the end."""
    assert events[-2].HasField("late_effects")
    return list(told(events)[-2])


async def test_a_creation_that_arrives_late_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = faulty.case()
    case.driver.fail({0: ItemFault.DELAY})
    # The plan, what was there before, what became of it, twice, and what is there at the end.
    case.driver.arrive_before_look(4)
    events = await case.apply(ONE)
    assert end(events).state == SUCCEEDED
    assert late(events) == ["late: Task roll: it may have been created late: no stack owns it"]
    [effect] = events[-2].late_effects.effects
    now = await case.look()
    assert now.ids - set(now.recorded.values()) == {("Task", effect.resource_id)}
    assert case.driver.looks == 6


async def test_a_write_that_arrives_after_it_was_taken_back_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.DELAY})
    # The plan, and what is there at the end.
    case.driver.arrive_before_look(1)
    events = await case.apply(FAILING)
    assert end(events).state == ROLLED_BACK
    assert late(events) == ["late: Label red: it is not as the operation left it"]
    assert events.plan.steps[0].key.name == "red"


async def test_that_nobody_could_look_is_told(faulty: World) -> None:
    faulty.driver.memory = Memory.NOTHING
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    case.driver.hide(look=1)
    events = await case.apply(text(an_object("Label", "red", "crimson")))
    assert end(events).state == SUCCEEDED
    assert "nobody could look" in events[-2].late_effects.problem


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NAMES])
async def test_a_platform_that_fences_is_not_looked_at_again(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    assert end(await case.apply(text(an_object("Label", "red", "crimson")))).state == SUCCEEDED
    assert case.driver.looks == 1
