"""
Several packages in one stack, composed to one (docs/reference/engine.md, "Composition"): an operation brings all of
them to what was planned, or leaves all of them as they were.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

import pytest

from services.core.errors import SharedDiffers, TokenStale
from services.core.model import Undo
from tests import composing
from tests.applier.composed import BASE, BASE_UPDATED, BOTH, CHANGES, MOVED, SHARED, SHARED_LEFT, UPDATED
from tests.applier.conftest import some
from tests.applier.drifting import drift
from tests.applier.faulty import CallFault, ItemFault, Memory
from tests.applier.history import check_history, numbers, roll_back
from tests.applier.test_faults import finishes_the_job, sealed_at, wanted_after
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, World, check, end, leftovers, world
from tests.apply.packages import an_object, text
from tests.cluster import InvalidPackage
from tests.composing import a_package
from tests.drivers.client import update
from tests.samples import slow

Which = Callable[[int], Iterable[int]]
"""Which of a number of writes or calls meet a fault."""

EACH = [("updated", some), ("moved", some), *(slow(change, range, id=f"{change}-each") for change in CHANGES)]


@pytest.fixture
async def faulty(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path, replaced={"planner": composing.opened}) as running:
        yield running


@pytest.mark.parametrize("change", CHANGES)
async def test_packages_are_planned_and_applied_as_one(faulty: World, change: str) -> None:
    before, after = CHANGES[change]
    case = await faulty.case_with(*filter(None, [before]))
    assert end(await case.apply(after)).state == SUCCEEDED
    now = await case.look()
    assert set(now.recorded.values()) == now.ids
    await check_history(case)
    assert (await drift(case)).differences == {}
    assert end(await case.apply(after)).no_change
    assert end(await case.uninstall()).state == SUCCEEDED
    gone = await case.look()
    assert (gone.content, gone.record) == ([], None)


async def test_a_label_of_one_package_is_attached_in_another(faulty: World) -> None:
    case = await faulty.case_with(BOTH)
    ids = (await case.look()).recorded
    labels = {(each.kind, each.id): each.label_ids for each in (await case.look()).resources}
    assert labels[ids["Dashboard", "team.cpu"]] == sorted(ids["Label", name][1] for name in ("base.env", "team.red"))
    [rule] = [each for each in (await case.look()).resources if each.kind == "NotificationRule"]
    assert [each.id for each in rule.references] == [ids["NotificationEndpointPagerDuty", "base.pager"][1]]
    assert sorted((await case.services.record("s", case.org)).sources) == [
        "base@1.0.0/package.json",
        "team@1.0.0/package.json",
    ]


async def test_an_object_that_moves_to_another_package_keeps_its_resource(faulty: World) -> None:
    case = await faulty.case_with(BOTH)
    before = (await case.look()).recorded
    plan = await case.plan(MOVED)
    assert [(each.old_key.name, each.new_key.name) for each in plan.record.key_changes] == [
        ("base.raw", "team.data"),
        ("team.red", "base.red"),
    ]
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    after = (await case.look()).recorded
    assert after["Bucket", "team.data"] == before["Bucket", "base.raw"]
    assert after["Label", "base.red"] == before["Label", "team.red"]


async def test_what_two_packages_have_stays_when_one_of_them_leaves(faulty: World) -> None:
    case = await faulty.case_with(SHARED)
    before = (await case.look()).recorded
    assert {name for kind, name in before if kind in ("Bucket", "Label")} == {"base.env", "base.raw", "team.red"}
    assert end(await case.apply(SHARED_LEFT)).state == SUCCEEDED
    after = (await case.look()).recorded
    assert after["Label", "team.environment"] == before["Label", "base.env"]
    assert after["Bucket", "team.data"] == before["Bucket", "base.raw"]
    # The package that comes back finds both under the keys that the stack has recorded.
    assert end(await case.apply(SHARED)).state == SUCCEEDED
    again = (await case.look()).recorded
    assert (again["Label", "team.environment"], again["Bucket", "team.data"]) == (
        before["Label", "base.env"],
        before["Bucket", "base.raw"],
    )
    assert ("Label", "base.env") not in again


async def test_packages_that_do_not_go_together_change_nothing(faulty: World) -> None:
    case = await faulty.case_with(BASE)
    before = await case.look()
    other = a_package("team", an_object("Label", "env", "env", color="blue"))
    with pytest.raises(SharedDiffers, match=r"Label 'team\.env' shares its name with .* where color is"):
        await case.apply(text(*a_package("base", an_object("Label", "env", "env")), *other))
    lacking = a_package(
        "team", an_object("Task", "roll", "roll", ["base.none"], every="1h", query="x"), requires=["base"]
    )
    with pytest.raises(InvalidPackage, match="has no label with the") as caught:
        await case.apply(text(*a_package("base", an_object("Label", "env", "env")), *lacking))
    assert 'source: "team@1.0.0/package.json"' in str(caught.value)
    assert await case.look() == before


@pytest.mark.parametrize(("change", "which"), EACH)
async def test_a_refused_write_of_one_package_undoes_all_of_them(faulty: World, change: str, which: Which) -> None:
    before, after = CHANGES[change]
    wanted, mutations, _ = await wanted_after(faulty, before, after)
    for number in which(mutations):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail({number: ItemFault.REJECT}, lasting=True)
        events = await case.apply(after)
        check(at_first, events, await case.look(), wanted)
        if number < sealed_at(events):
            assert end(events).state == ROLLED_BACK
        else:
            assert end(events).state == SUCCEEDED
            assert number in leftovers(events)
        await finishes_the_job(case, after, wanted)


@pytest.mark.parametrize("fault", [ItemFault.LOSE_REQUEST, ItemFault.LOSE_RESPONSE])
@pytest.mark.parametrize("memory", [Memory.KEYS, Memory.SEARCHED])
@pytest.mark.parametrize(("change", "which"), [("updated", some), slow("moved", range), slow("left", range)])
async def test_a_lost_write_has_its_effect_once(
    faulty: World, change: str, which: Which, memory: Memory, fault: ItemFault
) -> None:
    before, after = CHANGES[change]
    faulty.driver.memory = memory
    wanted, mutations, _ = await wanted_after(faulty, before, after)
    for number in which(mutations):
        case = await faulty.case_with(before)
        at_first = await case.look()
        case.driver.fail({number: fault})
        events = await case.apply(after)
        assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 0)
        check(at_first, events, await case.look(), wanted)


@pytest.mark.parametrize(("change", "which"), EACH)
async def test_an_interrupted_applier_is_succeeded_by_the_next_one(faulty: World, change: str, which: Which) -> None:
    before, after = CHANGES[change]
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in which(calls):
        case = await faulty.case_with(*filter(None, [before]))
        case.driver.fail(calls={number: CallFault.CUT_OFF})
        with pytest.raises(TokenStale):
            await case.apply(after)
        assert (await case.settled()).state == SUCCEEDED
        await finishes_the_job(case, after, wanted)


@pytest.mark.parametrize(("change", "which"), EACH)
async def test_a_driver_that_is_away_blocks_or_changes_all(faulty: World, change: str, which: Which) -> None:
    before, after = CHANGES[change]
    wanted, _, calls = await wanted_after(faulty, before, after)
    for number in which(calls):
        case = await faulty.case_with(*filter(None, [before]))
        at_first = await case.look()
        case.driver.fail(calls={number: CallFault.AWAY_AFTERWARDS}, later=CallFault.AWAY_AFTERWARDS)
        events = await case.apply(after)
        check(at_first, events, await case.look(), wanted)
        assert end(events).state in (BLOCKED, SUCCEEDED, ROLLED_BACK)
        await finishes_the_job(case, after, wanted)


async def test_deletions_of_all_packages_follow_what_can_be_undone_in_any(faulty: World) -> None:
    """A bucket of the first package leaves, and the last package has a write that is refused."""
    more = a_package("more", an_object("Dashboard", "last", "last"))
    case = await faulty.case_with(SHARED)
    plan = await case.plan(text(*a_package("base", an_object("Label", "env", "env")), *more))
    final = [step.key for step in plan.steps if step.undo is Undo.NONE]
    assert [str(key) for key in final] == ["Bucket 'base.raw'"]
    [created] = [step.number for step in plan.steps if step.key.name == "more.last"]
    before = await case.look()
    case.driver.fail({created: ItemFault.REJECT}, lasting=True)
    assert end(await case.apply_plan(plan)).state == ROLLED_BACK
    assert await case.look() == before
    assert not [sent for sent in case.driver.sent if sent.delete.kind == "Bucket"]


async def test_a_rollback_to_a_revision_restores_all_packages(faulty: World) -> None:
    case = await faulty.case_with(BOTH)
    first = await case.look()
    for packages in (UPDATED, MOVED, BASE, BOTH):
        assert end(await case.apply(packages)).state == SUCCEEDED
    assert await numbers(case) == [5, 4, 3, 2, 1]
    moved = (await case.look()).recorded
    for number in (3, 2, 1):
        assert end(await roll_back(case, number)).state == SUCCEEDED
        assert (await drift(case)).differences == {}
        await check_history(case)
    now = await case.look()
    assert now.content == first.content
    assert now.recorded_content == first.recorded_content
    assert (
        now.recorded["NotificationEndpointPagerDuty", "base.pager"]
        == moved["NotificationEndpointPagerDuty", "base.pager"]
    )
    assert end(await case.apply(BOTH)).no_change


async def test_a_package_that_is_left_out_stays_as_it_is(faulty: World) -> None:
    case = await faulty.case_with(BOTH)
    before = await case.look()
    keys = [{"kind": kind, "name": name} for kind, name in before.recorded if name.startswith("team.")]
    assert end(await case.apply(BASE_UPDATED, skip=keys)).state == SUCCEEDED
    after = await case.look()
    assert after.recorded == before.recorded
    assert [each.kind for each in after.resources if each not in before.resources] == ["Bucket"]
    await check_history(case)
    assert (await drift(case)).differences == {}


async def test_a_changed_resource_of_one_package_is_drift_of_the_stack(faulty: World) -> None:
    case = await faulty.case_with(BOTH)
    assert (await drift(case)).differences == {}
    [board] = [each for each in (await case.look()).resources if each.kind == "Dashboard"]
    edited = {**json.loads(board.spec_json), "description": "theirs"}
    await case.services.mutate(update("Dashboard", board.id, edited), org=case.org)
    assert (await drift(case)).statuses == {("Dashboard", "team.cpu"): "drifted"}
    assert end(await case.apply(BOTH)).state == SUCCEEDED
    assert (await drift(case)).differences == {}
