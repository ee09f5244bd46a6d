"""
Late effects are reported at the end of the operation, and never silently left on the platform
(docs/reference/engine.md, "Recovery").
"""

import asyncio
import math
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.core.errors import TokenStale
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.world import QUICK, ROLLED_BACK, SUCCEEDED, Events, World, end, lines, world
from tests.apply.packages import an_object, text

ONE = text(an_object("Task", "roll", "roll", every="1h", query="buckets()"))
TWO_TASKS = text(*(an_object("Task", name, name, every="1h", query="buckets()") for name in ("roll", "wrap")))
RED_ONE = text(an_object("Label", "red", "red"))
FAILING = text(an_object("Label", "red", "crimson"), an_object("Bucket", "reserved", "_system"))

FORGETFUL = [Memory.NOTHING, Memory.LIES]


def late(events: Events) -> list[str]:
    """The lines of the event before the last."""
    assert events[-2].HasField("late_effects")
    return list(lines(events)[-2])


@pytest.mark.parametrize("memory", FORGETFUL)
async def test_a_late_creation_is_reported(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = faulty.case()
    case.driver.fail({0: ItemFault.DELAY})
    # Reads: the plan, the ids before the creation, two lookups, and the late effects at the end.
    case.driver.arrive_before_look(4)
    events = await case.apply(ONE)
    assert end(events).state == SUCCEEDED
    assert late(events) == ["late: Task roll: it may have been created late: no stack owns it"]
    [effect] = events[-2].late_effects.effects
    now = await case.look()
    assert now.ids - set(now.recorded.values()) == {("Task", effect.resource_id)}
    assert case.driver.looks == 6


@pytest.mark.parametrize("memory", FORGETFUL)
async def test_a_late_creation_of_a_stopped_applier_is_reported(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = faulty.case()
    case.driver.fail({0: ItemFault.DELAY}, calls={0: CallFault.CUT_OFF})
    # Reads: the plan, the ids before the creation, three lookups by the next applier, and the late effects at the end.
    case.driver.arrive_before_look(5)
    with pytest.raises(TokenStale):
        await case.apply(ONE)
    operation = await case.settled()
    assert operation.state == SUCCEEDED
    events = await case.collected(case.watch(operation.id))
    assert late(events) == ["late: Task roll: it may have been created late: no stack owns it"]


@pytest.mark.parametrize("memory", FORGETFUL)
async def test_a_write_that_arrives_after_its_undo_is_reported(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.DELAY})
    # Reads: the plan, and the late effects at the end.
    case.driver.arrive_before_look(1)
    events = await case.apply(FAILING)
    assert end(events).state == ROLLED_BACK
    assert late(events) == ["late: Label red: it differs from the end of the operation"]
    assert events.plan.steps[0].key.name == "red"


@pytest.mark.parametrize("memory", FORGETFUL)
async def test_a_failed_search_for_late_effects_is_reported(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    case.driver.hide(look=1)
    events = await case.apply(text(an_object("Label", "red", "crimson")))
    assert end(events).state == SUCCEEDED
    assert "could not be looked up" in events[-2].late_effects.problem


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NAMES])
async def test_a_platform_that_fences_is_not_read_again(faulty: World, memory: Memory) -> None:
    faulty.driver.memory = memory
    case = await faulty.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    assert end(await case.apply(text(an_object("Label", "red", "crimson")))).state == SUCCEEDED
    assert case.driver.looks == 1


@pytest.fixture
async def patient(tmp_path: Path) -> AsyncIterator[World]:
    """An applier that would wait an hour for late requests."""
    async with world(tmp_path, replace(QUICK, settle=3600.0)) as faulty:
        yield faulty


@pytest.mark.timeout(60)
@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NAMES])
async def test_what_arrives_after_a_roll_back_is_refused_by_a_platform_that_fences(
    patient: World, memory: Memory
) -> None:
    patient.driver.memory = memory
    case = await patient.case_with(RED_ONE)
    before = await case.look()
    case.driver.fail({0: ItemFault.DELAY})
    case.driver.arrive_before_look(math.inf)
    assert end(await case.apply(FAILING)).state == ROLLED_BACK
    assert await case.driver.arrive() == 1
    assert await case.look() == before


@pytest.mark.timeout(60)
async def test_what_arrives_after_the_end_is_refused_by_a_platform_that_fences(patient: World) -> None:
    case = await patient.case_with(RED_ONE)
    case.driver.fail({0: ItemFault.DELAY})
    case.driver.arrive_before_look(math.inf)
    assert end(await case.apply(text(an_object("Label", "red", "crimson")))).state == SUCCEEDED
    assert await case.driver.arrive() == 1


@pytest.mark.timeout(60)
async def test_a_creation_that_is_looked_up_arrives_no_more_at_a_platform_that_fences(patient: World) -> None:
    patient.driver.memory = Memory.NAMES
    case = patient.case()
    case.driver.fail({0: ItemFault.DELAY})
    case.driver.arrive_before_look(math.inf)
    assert end(await case.apply(ONE)).state == SUCCEEDED
    assert await case.driver.arrive() == 1
    now = await case.look()
    assert set(now.recorded.values()) == now.ids
    assert len(now.ids) == 1


@pytest.mark.timeout(60)
async def test_a_batch_that_is_on_its_way_while_the_token_is_raised_is_sent_again(patient: World) -> None:
    patient.driver.memory, patient.driver.batch_size = Memory.NAMES, 1
    case = patient.case()
    case.driver.fail({1: ItemFault.DELAY})
    case.driver.arrive_before_look(math.inf)
    gate = case.driver.gate(0)
    apply = asyncio.create_task(case.apply(TWO_TASKS))
    await case.driver.raised.wait()
    gate.opened.set()
    assert end(await apply).state == SUCCEEDED
    assert case.driver.calls == 4
    assert await case.driver.arrive() == 1
    now = await case.look()
    assert set(now.recorded.values()) == now.ids
    assert len(now.ids) == 2


async def test_a_platform_that_ignores_the_raised_token_is_waited_for(faulty: World) -> None:
    case = await faulty.case_with(RED_ONE)
    before = await case.look()
    case.driver.fail({0: ItemFault.LOSE_RESPONSE})
    gate = case.driver.gate(0)
    apply = asyncio.create_task(case.apply(FAILING))
    await gate.reached.wait()
    case.driver.unshown = 3
    gate.opened.set()
    assert end(await apply).state == ROLLED_BACK
    assert case.driver.unshown == 0
    assert await case.look() == before
