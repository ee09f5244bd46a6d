"""
Clocks that are set back or forward while an operation runs (docs/reference/engine.md, "Restored stores", "Cases" case
12).
"""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import applier_svc.__main__ as applier
from services.core.errors import LeaseLost, TokenStale
from services.settings import Settings
from tests.applier.test_events import SMALL
from tests.applier.world import QUICK, SUCCEEDED, end, world
from tests.stack.service import Clock, stack_service
from tests.transport import through, transport_of_loop

ALONE = replace(QUICK, recovery=3600.0)
"""Timeouts of an applier that does not look for abandoned operations."""


@pytest.mark.parametrize("call", [0, 1], ids=["with a creation in flight", "in its second stage"])
@pytest.mark.parametrize("jump", [-3600, 3600])
async def test_an_operation_claimed_after_the_clock_of_the_store_jumped_runs_once(
    tmp_path: Path, jump: int, call: int
) -> None:
    """The first applier waits for the platform, which answers once the second applier is done."""
    clock = Clock()
    async with (
        stack_service(tmp_path / "stack.db", clock) as store,
        world(tmp_path, ALONE, given={"stack": store.address}) as faulty,
    ):
        case = faulty.case()
        gate = case.driver.gate(call)
        first = asyncio.create_task(case.apply(SMALL))
        await gate.reached.wait()
        clock.forward(jump)
        settings = Settings(faulty.services.addresses, tmp_path, tmp_path, tmp_path, holder="second")
        async with through(transport_of_loop(), partial(applier.opened, timeouts=QUICK))(settings):
            operation = await case.settled()
        assert (operation.state, operation.holder) == (SUCCEEDED, "second")
        before = await case.look()
        gate.opened.set()
        # The clock of the store, or that of the platform.
        with pytest.raises((LeaseLost, TokenStale)):
            await first
        assert await case.look() == before
        assert set(before.recorded.values()) == before.ids
        assert len(before.ids) == 3


async def test_a_lease_renewed_after_the_clock_of_the_store_was_set_back_is_kept(tmp_path: Path) -> None:
    clock = Clock()
    async with stack_service(tmp_path / "stack.db", clock) as store:
        begun = await store.begin("prod", seconds=30)
        clock.forward(-3600)
        assert await store.abandoned() == [begun.operation]
        await store.renew(begun, seconds=30)
        assert await store.abandoned() == []
        clock.forward(31)
        assert await store.abandoned() == [begun.operation]


@pytest.mark.parametrize("jump", [-3600, 3600])
async def test_the_clock_of_an_applier_only_dates_its_events(tmp_path: Path, jump: int) -> None:
    clock = Clock()
    opened = partial(applier.opened, timeouts=ALONE, clock=clock)
    async with world(tmp_path, replaced={"applier": opened}) as faulty:
        case = faulty.case()
        gate = case.driver.gate(0)
        apply = asyncio.create_task(case.apply(SMALL))
        await gate.reached.wait()
        clock.forward(jump)
        gate.opened.set()
        events = await apply
        assert end(events).state == SUCCEEDED
        assert events[-1].time.ToMicroseconds() - events[0].time.ToMicroseconds() == jump * 1_000_000
