"""
A fault at every single write, or at some of them: an apply succeeds, is undone, or reports its unknown outcomes
(docs/reference/engine.md, "Tests").
"""

from collections.abc import Callable, Iterable

import pytest

from services.core.errors import TokenStale
from services.core.model import Undo, Verb
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.packages import CHANGES, FRESH
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, Content, Events, World, check, end, leftovers
from tests.samples import slow

EVERYWHERE = [
    *((Memory.KEYS, change) for change in CHANGES),
    *((Memory.NOTHING, change) for change in ("mixed", "replaced", "rewired", "turned")),
    *((memory, "mixed") for memory in (Memory.NAMES, Memory.SEARCHED)),
]
"""Every change on a platform that keeps keys and tokens; on other platforms, the changes that run differently there."""

Numbers = Callable[[int], Iterable[int]]
"""Which of a number of writes or calls meet a fault."""

SAMPLE = [(Memory.KEYS, "mixed"), slow(Memory.NOTHING, "rewired")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every change on every platform with --faults; else a sample, of which a part is slow."""
    is_whole, names = metafunc.config.getoption("--faults"), set(metafunc.fixturenames)
    if {"memory", "change"} <= names:
        metafunc.parametrize(("memory", "change"), EVERYWHERE if is_whole else SAMPLE)
    elif "change" in names:
        metafunc.parametrize("change", list(CHANGES) if is_whole else ["mixed", slow("turned")])
    elif "memory" in names:
        metafunc.parametrize("memory", list(Memory) if is_whole else [Memory.SEARCHED])


async def wanted_after(faulty: World, before: str, after: str) -> tuple[Content, int, int]:
    """The result of a change without faults, and the number of its mutations and calls."""
    case = await faulty.case_with(*filter(None, [before]))
    events = await case.apply(after)
    assert end(events).state == SUCCEEDED
    counts = len(faulty.driver.sent), faulty.driver.calls
    assert counts[0] == len(events.plan.steps)
    return (await case.look()).content, *counts


async def finishes_the_job(case: Case, package: str, wanted: Content) -> None:
    """Check that the next apply, without faults, reaches the desired state."""
    case.driver.heal()
    assert end(await case.apply(package)).state == SUCCEEDED
    now = await case.look()
    assert now.content == wanted
    assert set(now.recorded.values()) == now.ids
    assert end(await case.apply(package)).no_change


def sealed_at(events: Events) -> int:
    """Number of the first irreversible step; the number of steps if there is none."""
    steps = events.plan.steps
    return next((step.number for step in steps if step.undo is Undo.NONE), len(steps))


async def test_a_refused_write_is_undone_or_left_for_the_next_apply(
    faulty: World, change: str, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    wanted, mutations, _ = await wanted_after(faulty, before, after)
    for number in numbers(mutations):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail({number: ItemFault.REJECT}, lasting=True)
        events = await case.apply(after)
        check(at_first, events, await case.look(), wanted)
        finished = end(events)
        if number < sealed_at(events):
            assert finished.state == ROLLED_BACK
            assert "scripted refusal" in finished.cause
        else:
            assert finished.state == SUCCEEDED
            assert number in leftovers(events)
        await finishes_the_job(case, after, wanted)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
async def test_a_write_lost_once_has_its_effect_once(
    faulty: World, memory: Memory, change: str, fault: ItemFault, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    faulty.driver.memory = memory
    wanted, mutations, _ = await wanted_after(faulty, before, after)
    for number in numbers(mutations):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail({number: fault})
        events = await case.apply(after)
        assert end(events).state == SUCCEEDED
        assert not end(events).leftover_count
        check(at_first, events, await case.look(), wanted)
        is_found = (
            memory is not Memory.KEYS
            and fault is ItemFault.LOSE_RESPONSE
            and case.driver.sent[number].HasField("create")
        )
        assert len(case.driver.sent) == (mutations if is_found else mutations + 1)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
async def test_a_write_lost_for_good_is_undone_or_found_or_blocks(
    faulty: World, memory: Memory, change: str, fault: ItemFault, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    faulty.driver.memory = memory
    wanted, mutations, _ = await wanted_after(faulty, before, after)
    for number in numbers(mutations):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail({number: fault}, lasting=True)
        events = await case.apply(after)
        now = await case.look()
        finished, step = end(events), events.plan.steps[number]
        if memory is Memory.KEYS and step.verb is Verb.CREATE:
            # Only sending the same key again would return the outcome.
            assert finished.state == BLOCKED
            check(at_first, events, now, wanted)
        elif fault is ItemFault.LOSE_RESPONSE:
            assert (finished.state, finished.leftover_count, now.content) == (SUCCEEDED, 0, wanted)
        elif finished.state == SUCCEEDED:
            assert number in leftovers(events)
            assert step.number >= sealed_at(events)
        else:
            assert finished.state == ROLLED_BACK
            check(at_first, events, now, wanted)
        await finishes_the_job(case, after, wanted)


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
async def test_a_call_that_fails_once_changes_nothing(
    faulty: World, change: str, fault: CallFault, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in numbers(calls):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail(calls={number: fault})
        events = await case.apply(after)
        assert end(events).state == SUCCEEDED
        assert not end(events).leftover_count
        check(at_first, events, await case.look(), wanted)


@pytest.mark.parametrize("fault", [CallFault.AWAY, CallFault.AWAY_AFTERWARDS])
async def test_a_driver_that_dies_leaves_a_record_of_all_that_is_known(
    faulty: World, change: str, fault: CallFault, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in numbers(calls):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail(calls={number: fault}, later=fault)
        events = await case.apply(after)
        check(at_first, events, await case.look(), wanted)
        # The call had no effect, or it can neither be finished nor undone.
        assert end(events).state in (BLOCKED, SUCCEEDED, ROLLED_BACK)
        await finishes_the_job(case, after, wanted)


async def test_nothing_is_sent_to_a_driver_that_knows_a_newer_token_until_the_operation_is_resumed(
    faulty: World, change: str, numbers: Numbers
) -> None:
    before, after = CHANGES[change]
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in numbers(calls):
        case = await faulty.case_with(*filter(None, [before]))
        case.driver.fail(calls={number: CallFault.STALE})
        with pytest.raises(TokenStale):
            await case.apply(after)
        assert case.driver.calls == number + 1
        assert (await case.settled()).state == SUCCEEDED
        await finishes_the_job(case, after, wanted)


async def test_the_writes_of_an_interrupted_applier_are_found_by_the_one_that_resumes(
    faulty: World, memory: Memory, numbers: Numbers
) -> None:
    before, after = CHANGES["mixed"]
    faulty.driver.memory = memory
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in numbers(calls):
        case = await faulty.case_with(before)
        case.driver.fail(calls={number: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.apply(after)
        assert (await case.settled()).state == SUCCEEDED
        now = await case.look()
        assert now.content == wanted
        assert set(now.recorded.values()) == now.ids


async def test_a_rejected_uninstall_is_undone(faulty: World, numbers: Numbers) -> None:
    case = await faulty.case_with(FRESH)
    steps = len((await case.uninstall()).plan.steps)
    for number in numbers(steps):
        case = await faulty.case_with(FRESH)
        at_first = await case.look()
        case.driver.fail({number: ItemFault.REJECT}, lasting=True)
        events = await case.uninstall()
        check(at_first, events, await case.look(), [])
        case.driver.heal()
        assert end(await case.uninstall()).state == SUCCEEDED
        gone = await case.look()
        assert (gone.content, gone.record) == ([], None)


async def test_a_rejected_undo_is_reported_and_recorded(faulty: World) -> None:
    case = faulty.case()
    at_first = await case.look()
    # The third creation is rejected, and so is the deletion of a resource that was created before it.
    case.driver.fail({2: ItemFault.REJECT, 7: ItemFault.REJECT}, lasting=True)
    events = await case.apply(FRESH)
    check(at_first, events, await case.look(), [])
    assert end(events).state == BLOCKED
    case.driver.heal()
    assert end(await case.apply(FRESH)).state == SUCCEEDED
