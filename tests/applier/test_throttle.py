"""Fewer batches in flight on a platform that throttles: the arithmetic, and an apply on such a platform."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier_svc.execution.throttle import Budget, Limit, Throttle
from tests.applier.faulty import ItemFault, Memory
from tests.applier.packages import CHANGES
from tests.applier.test_faults import Numbers, finishes_the_job, sealed_at, wanted_after
from tests.applier.world import QUICK, ROLLED_BACK, SUCCEEDED, World, check, end, world
from tests.apply.packages import an_object, text


def after(limit: Limit, words: str) -> list[int]:
    """The limit after each of *words*: taken, refused, or late (refused, but sent before the last cut)."""
    shown = []
    for word in words.split():
        match word:
            case "taken":
                limit = limit.after_success()
            case "refused":
                limit = limit.after_refusal(limit.cuts)
            case _:
                limit = limit.after_refusal(limit.cuts - 1)
        shown.append(next(count for count in range(100) if not limit.admits(count)))
    return shown


@pytest.mark.parametrize(
    ("most", "words", "expected"),
    [
        (4, "taken taken", [4, 4]),
        (8, "refused refused refused refused", [4, 2, 1, 1]),
        (8, "refused late late", [4, 4, 4]),
        (4, "refused refused taken taken taken taken taken", [2, 1, 2, 2, 2, 3, 3]),
        (1, "refused taken", [1, 1]),
        (0, "taken", [1]),
    ],
)
def test_the_limit_is_halved_when_throttled_and_grows_by_one_with_each_full_window(
    most: int, words: str, expected: Sequence[int]
) -> None:
    assert after(Limit.of(most), words) == expected


@given(st.integers(0, 64), st.lists(st.sampled_from(["taken", "refused", "late"])))
def test_the_limit_is_at_least_one_and_at_most_that_of_the_driver(most: int, words: list[str]) -> None:
    assert all(1 <= count <= max(most, 1) for count in after(Limit.of(most), " ".join(words)))


@pytest.mark.parametrize(
    ("waits", "left"),
    [
        ([(0, 4)], 6),
        ([(0, 4), (0, 4)], 6),
        ([(0, 4), (2, 4)], 4),
        ([(0, 4), (1, 2)], 6),
        ([(0, 4), (9, 6)], 0),
        ([(0, 4), (9, 7)], None),
        ([(0, 11)], None),
    ],
)
def test_waits_at_the_same_time_are_spent_once(waits: Sequence[tuple[float, float]], left: float | None) -> None:
    budget: Budget | None = Budget(10)
    for now, seconds in waits:
        assert budget is not None
        budget = budget.after_wait(now, seconds)
    assert (budget.left if budget else None) == left


async def test_as_many_pass_at_a_time_as_the_limit_says() -> None:
    throttle = Throttle(3)

    async def most_inside(calls: int, expected: int, refused: bool) -> int:
        """Most of *calls* in flight at a time, if none ends before the *expected* number has begun."""
        inside = most = 0
        full = asyncio.Event()

        async def call() -> None:
            nonlocal inside, most
            async with throttle.slot() as slot:
                slot.was_refused = refused
                inside += 1
                most = max(most, inside)
                if inside == expected:
                    full.set()
                await full.wait()
                inside -= 1

        await asyncio.gather(*(call() for _ in range(calls)))
        return most

    assert await most_inside(3, 3, refused=True) == 3
    assert await most_inside(3, 1, refused=False) == 1


@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.NOTHING])
@pytest.mark.parametrize("fault", [ItemFault.BUSY, ItemFault.OVERLOADED])
async def test_a_throttled_write_is_done_later(
    faulty: World, memory: Memory, fault: ItemFault, numbers: Numbers
) -> None:
    before, change = CHANGES["mixed"]
    faulty.driver.memory = memory
    wanted, mutations, _ = await wanted_after(faulty, before, change)
    for number in numbers(mutations):
        case = await faulty.case_with(before)
        at_first = await case.look()
        case.driver.fail({number: fault})
        events = await case.apply(change)
        assert end(events).state == SUCCEEDED
        assert not end(events).leftover_count
        check(at_first, events, await case.look(), wanted)


async def test_a_platform_that_always_throttles_is_a_failure_like_any_other(faulty: World, numbers: Numbers) -> None:
    before, change = CHANGES["mixed"]
    wanted, mutations, _ = await wanted_after(faulty, before, change)
    for number in numbers(mutations):
        case = await faulty.case_with(before)
        at_first = await case.look()
        case.driver.fail({number: ItemFault.BUSY}, lasting=True)
        events = await case.apply(change)
        check(at_first, events, await case.look(), wanted)
        assert end(events).state == (ROLLED_BACK if number < sealed_at(events) else SUCCEEDED)
        assert "busy" in end(events).cause
        await finishes_the_job(case, change, wanted)


async def test_fewer_batches_are_in_flight_on_a_platform_that_takes_one_at_a_time(tmp_path: Path) -> None:
    labels = text(*(an_object("Label", f"l{number}", f"l{number}") for number in range(12)))
    async with world(tmp_path, replace(QUICK, throttled=60.0)) as faulty:
        case = faulty.case()
        case.driver.batch_size = 1
        gates = [case.driver.gate(call) for call in range(4)]
        case.driver.allow(1)
        apply = asyncio.create_task(case.apply(labels))
        await asyncio.gather(*(gate.reached.wait() for gate in gates))
        retry = case.driver.gate(4)
        for gate in gates[1:]:
            gate.opened.set()
        # Three batches were throttled at once, so the limit of four is halved: the waiting batch and one of the three,
        # sent again, are in flight.
        await retry.reached.wait()
        assert case.driver.in_flight == [1, 2, 3, 4, 2]
        retry.opened.set()
        gates[0].opened.set()
        events = await apply
        assert end(events).state == SUCCEEDED
        assert len((await case.look()).ids) == 12
