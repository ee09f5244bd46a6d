"""
Changes of the packages of a stack (docs/dependencies.md): an operation brings packages, record, revision and platform
to what was planned, or leaves all of them as they were.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest
from pkger.model.v1 import plan_pb2

from services.core.errors import PkgerError, StackMoved, StackNotFound, TokenStale
from services.core.model import Undo
from tests.applier.composed import BASE, BOTH, CHANGES, FAILING, UPDATED, StackChange, changes
from tests.applier.conftest import some
from tests.applier.drifting import drift
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.history import numbers, roll_back
from tests.applier.package_cases import (
    PackageCase,
    PackageWorld,
    check_packages,
    finishes_the_job,
    package_world,
)
from tests.applier.test_blocked import ended
from tests.applier.test_faults import sealed_at
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, end, in_doubt, leftovers
from tests.samples import rare, slow

Which = Callable[[int], Iterable[int]]
"""Which of a number of writes or calls meet a fault."""

EACH = [
    ("installed", some),
    slow("updated", some, id="updated-some"),
    slow("emptied", some, id="emptied-some"),
    *(rare(change, range, id=f"{change}-each") for change in CHANGES),
]


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[PackageWorld]:
    async with package_world(tmp_path) as running:
        yield running


@pytest.mark.parametrize("name", CHANGES)
async def test_packages_change_as_planned_and_an_uninstall_leaves_nothing(faulty: PackageWorld, name: str) -> None:
    case = await faulty.stack_with(CHANGES[name])
    assert end(await case.change(CHANGES[name].change)).state == SUCCEEDED
    now = await case.look_at_packages()
    assert set(now.snapshot.recorded.values()) == now.snapshot.ids
    assert (await drift(case)).differences == {}
    await finishes_the_job(case, CHANGES[name], now)
    assert end(await case.uninstall()).state == SUCCEEDED
    gone = await case.look_at_packages()
    assert (gone.snapshot.content, gone.snapshot.record, gone.packages) == ([], None, [])


@pytest.mark.parametrize(("name", "which"), EACH)
async def test_a_refused_write_of_one_package_undoes_all_of_them(faulty: PackageWorld, name: str, which: Which) -> None:
    change = CHANGES[name]
    wanted, undisturbed, _ = await faulty.undisturbed(change)
    for number in which(len(undisturbed.plan.steps)):
        case = await faulty.stack_with(change)
        before = await case.look_at_packages()
        case.driver.fail({number: ItemFault.REJECT}, lasting=True)
        events = await case.change(change.change)
        if number < sealed_at(events):
            assert end(events).state == ROLLED_BACK
            check_packages(before, ROLLED_BACK, await case.look_at_packages(), wanted)
        else:
            assert end(events).state == SUCCEEDED
            assert number in leftovers(events)
            assert await case.packages() == wanted.packages
        await finishes_the_job(case, change, wanted)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, slow(ItemFault.LOSE_RESPONSE)])
@pytest.mark.parametrize("memory", [Memory.KEYS, slow(Memory.SEARCHED)])
@pytest.mark.parametrize(("name", "which"), EACH)
async def test_a_lost_write_has_its_effect_once(
    faulty: PackageWorld, name: str, which: Which, memory: Memory, fault: ItemFault
) -> None:
    change = CHANGES[name]
    faulty.driver.memory = memory
    wanted, undisturbed, _ = await faulty.undisturbed(change)
    for number in which(len(undisturbed.plan.steps)):
        case = await faulty.stack_with(change)
        before = await case.look_at_packages()
        case.driver.fail({number: fault})
        events = await case.change(change.change)
        assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 0)
        check_packages(before, SUCCEEDED, await case.look_at_packages(), wanted)


@pytest.mark.parametrize(("name", "which"), EACH)
async def test_an_interrupted_applier_is_succeeded_by_the_next_one(
    faulty: PackageWorld, name: str, which: Which
) -> None:
    change = CHANGES[name]
    wanted, _, calls = await faulty.undisturbed(change)
    for number in which(calls):
        case = await faulty.stack_with(change)
        before = await case.look_at_packages()
        case.driver.fail(calls={number: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.change(change.change)
        assert (await case.settled()).state == SUCCEEDED
        check_packages(before, SUCCEEDED, await case.look_at_packages(), wanted)
        await finishes_the_job(case, change, wanted)


@pytest.mark.parametrize(("name", "which"), EACH)
async def test_a_driver_that_is_away_blocks_or_changes_all(faulty: PackageWorld, name: str, which: Which) -> None:
    change = CHANGES[name]
    wanted, _, calls = await faulty.undisturbed(change)
    for number in which(calls):
        case = await faulty.stack_with(change)
        before = await case.look_at_packages()
        case.driver.fail(calls={number: CallFault.AWAY_AFTERWARDS}, later=CallFault.AWAY_AFTERWARDS)
        events = await case.change(change.change)
        state = end(events).state
        assert state in (BLOCKED, SUCCEEDED, ROLLED_BACK)
        if state == BLOCKED:
            assert in_doubt(events)
            # No package of the stack changes before the operation has ended.
            assert await case.packages() == before.packages
            case.driver.heal()
            state = ended(await case.recover(events[0].operation_id)).state
            check_packages(before, state, await case.look_at_packages(), wanted)
        elif not end(events).leftover_count:
            check_packages(before, state, await case.look_at_packages(), wanted)
        await finishes_the_job(case, change, wanted)


async def refused(faulty: PackageWorld) -> tuple[PackageCase, int, int]:
    """A stack that ``FAILING`` was refused for, with the numbers of mutations and calls before the undo and in all."""
    case = await faulty.stack_with(FAILING)
    events = await case.change(FAILING.change)
    assert end(events).state == ROLLED_BACK
    undone = sum(len(event.steps_undone.outcomes) for event in events)
    return case, len(case.driver.sent) - undone, len(case.driver.sent)


@pytest.mark.parametrize("which", [some, rare(range)])
async def test_a_refused_undo_blocks_with_the_packages_of_before(faulty: PackageWorld, which: Which) -> None:
    _, first, count = await refused(faulty)
    for number in which(count - first):
        case = await faulty.stack_with(FAILING)
        before = await case.look_at_packages()
        case.driver.fail({first + number: ItemFault.REJECT}, lasting=True)
        events = await case.change(FAILING.change)
        assert end(events).state == BLOCKED
        assert await case.packages() == before.packages
        case.driver.heal()
        assert ended(await case.recover(events[0].operation_id)).state == ROLLED_BACK
        check_packages(before, ROLLED_BACK, await case.look_at_packages(), None)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
@pytest.mark.parametrize("which", [some, rare(range)])
async def test_a_lost_undo_has_its_effect_once(faulty: PackageWorld, which: Which, fault: ItemFault) -> None:
    _, first, count = await refused(faulty)
    for number in which(count - first):
        case = await faulty.stack_with(FAILING)
        before = await case.look_at_packages()
        case.driver.fail({first + number: fault})
        assert end(await case.change(FAILING.change)).state == ROLLED_BACK
        check_packages(before, ROLLED_BACK, await case.look_at_packages(), None)


@pytest.mark.parametrize("which", [some, rare(range)])
async def test_an_undo_that_is_interrupted_is_finished_by_the_next_applier(faulty: PackageWorld, which: Which) -> None:
    case, _, _ = await refused(faulty)
    for number in which(case.driver.calls):
        case = await faulty.stack_with(FAILING)
        before = await case.look_at_packages()
        case.driver.fail(calls={number: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.change(FAILING.change)
        assert (await case.settled()).state == ROLLED_BACK
        check_packages(before, ROLLED_BACK, await case.look_at_packages(), None)


@pytest.mark.parametrize("which", [some, rare(range)])
async def test_a_recovery_that_meets_a_lost_write_changes_all(faulty: PackageWorld, which: Which) -> None:
    """Each write after the interruption of the first one is lost once."""
    change = CHANGES["updated"]
    wanted, undisturbed, _ = await faulty.undisturbed(change)
    for number in which(len(undisturbed.plan.steps)):
        case = await faulty.stack_with(change)
        before = await case.look_at_packages()
        case.driver.fail({number: ItemFault.LOSE_RESPONSE}, calls={0: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.change(change.change)
        assert (await case.settled()).state == SUCCEEDED
        check_packages(before, SUCCEEDED, await case.look_at_packages(), wanted)


async def test_deletions_of_all_packages_follow_what_can_be_undone_in_any(faulty: PackageWorld) -> None:
    """A bucket of one package leaves, and the other package has a write that is refused."""
    change = StackChange(BOTH, changes("update base@5.0.0; uninstall team"))
    case = await faulty.stack_with(change)
    plan = await case.plan(packages=change.change)
    final = [step.number for step in plan.steps if step.undo is Undo.NONE]
    assert [str(plan.steps[number].key) for number in final] == ["Bucket 'team.own'"]
    before = await case.look_at_packages()
    [updated] = [step.number for step in plan.steps if step.key.name == "base.raw"]
    case.driver.fail({updated: ItemFault.REJECT}, lasting=True)
    assert end(await case.apply_plan(plan)).state == ROLLED_BACK
    check_packages(before, ROLLED_BACK, await case.look_at_packages(), None)
    assert not [sent for sent in case.driver.sent if sent.delete.kind == "Bucket"]


async def test_a_plan_from_before_a_rollback_of_the_stack_is_refused(faulty: PackageWorld) -> None:
    case = await faulty.stack_with(StackChange(BASE, BOTH))
    first = await case.look_at_packages()
    assert end(await case.change(BOTH)).state == SUCCEEDED
    plan = await case.plan(packages=changes("update base@2.0.0 team@2.0.0"))
    assert end(await roll_back(case, 1)).state == SUCCEEDED
    with pytest.raises(StackMoved):
        await case.apply_plan(plan)
    now = await case.look_at_packages()
    assert now.outcome == first.outcome
    assert await numbers(case) == [3, 2, 1]


@pytest.mark.parametrize(
    ("after_uninstall", "refusal"),
    [(plan_pb2.AFTER_UNINSTALL_KEEP, StackMoved), (plan_pb2.AFTER_UNINSTALL_DELETE, StackNotFound)],
)
async def test_a_plan_from_before_an_uninstall_of_the_stack_is_refused(
    faulty: PackageWorld, after_uninstall: plan_pb2.AfterUninstall.ValueType, refusal: type[PkgerError]
) -> None:
    case = await faulty.stack_with(CHANGES["updated"])
    plan = await case.plan(packages=CHANGES["updated"].change)
    assert end(await case.uninstall(after_uninstall=after_uninstall)).state == SUCCEEDED
    with pytest.raises(refusal):
        await case.apply_plan(plan)
    gone = await case.look_at_packages()
    assert (gone.snapshot.content, gone.packages) == ([], [])


async def test_a_rollback_to_a_revision_restores_all_packages(faulty: PackageWorld) -> None:
    case = await faulty.stack_with(StackChange(BASE, BOTH))
    states = [await case.look_at_packages()]
    for change in (BOTH, UPDATED, changes("uninstall team")):
        assert end(await case.change(change)).state == SUCCEEDED
        states.append(await case.look_at_packages())
    for number in (3, 2, 1):
        assert end(await roll_back(case, number)).state == SUCCEEDED
        now = await case.look_at_packages()
        assert now.outcome == states[number - 1].outcome
        assert now.snapshot.recorded_content == states[number - 1].snapshot.recorded_content
        assert (await drift(case)).differences == {}


@pytest.mark.parametrize("which", [some, rare(range)])
async def test_a_refused_rollback_to_a_revision_restores_no_package(faulty: PackageWorld, which: Which) -> None:
    change = CHANGES["joined"]
    case = await faulty.stack_with(change)
    assert end(await case.change(change.change)).state == SUCCEEDED
    count = len((await roll_back(case, 1)).plan.steps)
    for number in which(count):
        case = await faulty.stack_with(change)
        first = await case.look_at_packages()
        assert end(await case.change(change.change)).state == SUCCEEDED
        before = await case.look_at_packages()
        case.driver.heal()
        case.driver.fail({number: ItemFault.REJECT}, lasting=True)
        events = await roll_back(case, 1)
        if end(events).state == ROLLED_BACK:
            check_packages(before, ROLLED_BACK, await case.look_at_packages(), None)
        else:
            assert number >= sealed_at(events)
            assert await case.packages() == first.packages
