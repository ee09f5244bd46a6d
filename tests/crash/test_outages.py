"""
Services that are down for a while, appliers that are stopped, and many appliers of one stack
(docs/reference/engine.md, "Tests").
"""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.model.v1 import operation_pb2

from services.core.errors import PkgerError, ServiceUnavailable, StackLeased
from tests.applier.packages import FRESH, REVERSIBLE
from tests.applier.world import SUCCEEDED, Case, end
from tests.crash.changes import BACK, CHANGES, FORWARD
from tests.crash.world import Crashing, check, content_after, crashing

pytestmark = pytest.mark.slow


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


async def _in_the_middle(case: Case, package: str) -> "asyncio.Task[None]":
    """An apply whose first steps have ended."""
    stream = case.events(package)
    async for event in stream:
        if event.HasField("steps_ended"):
            break
    return asyncio.create_task(_to_the_end(stream))


async def _to_the_end(stream: AsyncIterator[operation_pb2.OperationEvent]) -> None:
    try:
        async for _ in stream:
            pass
    except PkgerError:
        # The applier lost the operation, and another one resumes it.
        return


@pytest.mark.parametrize("service", ["stack", "platform"])
async def test_a_service_that_dies_in_the_middle_and_comes_back_loses_nothing(world: Crashing, service: str) -> None:
    wanted = await content_after(world, FRESH, REVERSIBLE)
    case = await world.case_with(FRESH)
    before = await case.look()
    await world.applier()
    apply = await _in_the_middle(case, REVERSIBLE)
    await world.processes.kill(service)
    await world.processes.start(service)
    await apply
    check(before, await world.settled(), await case.look(), wanted)


async def test_a_store_that_cannot_write_stops_the_operation_until_it_can(world: Crashing) -> None:
    """A limit on the size of files stands for a full disk."""
    wanted = await content_after(world, FRESH, REVERSIBLE)
    case = await world.case_with(FRESH)
    before = await case.look()
    await world.applier()
    apply = await _in_the_middle(case, REVERSIBLE)
    store = world.processes.pid("stack")
    unlimited = resource.prlimit(store, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    await apply
    # Without a stored intent the applier sends no mutation.
    where_it_stopped = await case.look()
    with pytest.raises((ServiceUnavailable, StackLeased)):
        await case.apply(FRESH)
    assert await case.look() == where_it_stopped
    resource.prlimit(store, resource.RLIMIT_FSIZE, unlimited)
    check(before, await world.settled(), await case.look(), wanted)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """All failpoints to stop at with --faults; else two."""
    if "standstill" in metafunc.fixturenames:
        places = [*(("mixed", name) for name in FORWARD), *(("failing", name) for name in BACK)]
        some = places if metafunc.config.getoption("--faults") else [("mixed", "after_intent"), ("failing", BACK[-1])]
        metafunc.parametrize(("change", "standstill"), some)


async def test_an_applier_that_wakes_up_late_changes_nothing(world: Crashing, change: str, standstill: str) -> None:
    package, changed = CHANGES[change]
    wanted = [] if change == "failing" else await content_after(world, package, changed)
    case = await world.case_with(package)
    before = await case.look()
    await world.applier(f"{standstill}:STOP")
    apply = asyncio.create_task(_to_the_end(case.events(changed)))
    await world.processes.stands_still("applier")
    await world.processes.start("applier", called="another")
    operation = await world.settled()
    after = await case.look()
    check(before, operation, after, wanted)
    # It continues only now, when its lease has passed to the other applier.
    world.processes.send("applier", signal.SIGCONT)
    await apply
    assert await case.look() == after
    assert await world.settled() == operation


async def test_of_many_appliers_on_one_stack_one_works_and_the_others_learn_which(
    world: Crashing, pytestconfig: pytest.Config
) -> None:
    case = await world.case_with("")
    racers = [f"racer-{number}" for number in range(8 if pytestconfig.getoption("--faults") else 2)]
    await asyncio.gather(*(world.processes.start("applier", called=racer) for racer in racers))
    async with world.callers(racers) as callers:
        cases = [replace(case, services=caller) for caller in callers for _ in range(8 // len(racers))]
        ended = await asyncio.gather(*(each.apply(FRESH) for each in cases), return_exceptions=True)
    finished = [end(events) for events in ended if not isinstance(events, BaseException)]
    assert [one for one in finished if not one.no_change]
    assert len([one for one in finished if not one.no_change]) == 1
    for error in ended:
        if isinstance(error, BaseException):
            assert isinstance(error, StackLeased)
            assert error.metadata["operation"]
            assert error.metadata["holder"].endswith(tuple(f"/{world.processes.pid(racer)}" for racer in racers))
    assert all(one.state == SUCCEEDED for one in finished)
    now = await case.look()
    assert set(now.recorded.values()) == now.ids


async def test_an_operation_can_be_watched_from_its_beginning_when_it_is_over(world: Crashing) -> None:
    case = await world.case_with("")
    await world.applier()
    events = await case.apply(FRESH)
    watched = [event async for event in case.watch(events[0].operation_id)]
    assert watched == events
    assert [event async for event in case.watch(events[0].operation_id, after_seq=len(events) - 1)] == events[-1:]
    operation = await world.settled()
    assert operation.id == events[0].operation_id
    assert operation.state == operation_pb2.OPERATION_STATE_SUCCEEDED
    assert (operation.done_count, operation.step_count) == (len(events.plan.steps),) * 2
