"""
kill -9 of the applier, or of the store, while packages of a stack change: all of them change, or none
(docs/dependencies.md).
"""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pkger.planner.v1 import package_pb2

from applier_svc.failpoints import STATUS
from services.core.errors import StackLeased, StackMoved
from tests.applier.composed import BASE, BOTH, CHANGES, FAILING, StackChange, changes, publish
from tests.applier.history import numbers, roll_back
from tests.applier.package_cases import (
    PackageCase,
    PackageState,
    check_packages,
    configure_repository,
    finishes_the_job,
)
from tests.applier.world import ROLLED_BACK, SUCCEEDED, end
from tests.crash.changes import BACK, FORWARD
from tests.crash.world import Crashing, crashing
from tests.samples import rare, slow

SAMPLE = [("installed", "after_send:3"), ("shared-left", "before_finish")]
EACH = [*(("updated", name) for name in FORWARD), *(("failing", name) for name in BACK)]
"""Each failpoint once."""
MORE = [
    *((change, name) for change in ("installed", "emptied", "failing") for name in FORWARD if name != "after_seal"),
    *(("updated", f"{name}:2") for name in FORWARD),
    *((change, f"after_{part}:{count}") for change in CHANGES for part in ("intent", "send") for count in (1, 3, 6)),
    *(("failing", f"{name}:2") for name in BACK if name != "after_rollback"),
]


@dataclass
class PackageCrashing:
    """All services, an applier that tests start and kill, and a repository."""

    world: Crashing

    async def stack_with(self, change: StackChange) -> PackageCase:
        """A stack as it is before *change*, in an organization of its own."""
        case = await self.world.case_with("")
        mine = PackageCase(case.services, case.driver, case.org)
        if change.before:
            await self.changed(mine, change.before)
        return mine

    async def changed(self, case: PackageCase, change: package_pb2.PackageChanges) -> PackageState:
        """The stack after a change without a crash; no applier runs before and after it."""
        await self.world.applier()
        assert end(await case.change(change)).state == SUCCEEDED
        await self.world.processes.kill("applier")
        return await case.look_at_packages()

    async def wanted(self, change: StackChange) -> PackageState | None:
        """A stack after *change* without a crash; None: it cannot succeed."""
        return None if change is FAILING else await self.changed(await self.stack_with(change), change.change)


@pytest.fixture
async def crashes(tmp_path: Path) -> AsyncIterator[PackageCrashing]:
    folder = publish(tmp_path / "repository")
    async with crashing(tmp_path, variables={"PKGER_REPOSITORY_FOLDERS": str(tmp_path)}) as running:
        await configure_repository(running.services, folder)
        yield PackageCrashing(running)


def change_named(name: str) -> StackChange:
    """The change of that name."""
    return {**CHANGES, "failing": FAILING}[name]


@pytest.mark.parametrize(
    ("name", "failpoint"),
    [*SAMPLE, *(slow(*each) for each in EACH), *(rare(*each) for each in MORE if each not in SAMPLE)],
)
async def test_all_packages_change_or_none_when_an_applier_dies(
    crashes: PackageCrashing, name: str, failpoint: str
) -> None:
    change, world = change_named(name), crashes.world
    case = await crashes.stack_with(change)
    before = await case.look_at_packages()
    await world.applier(failpoint)
    died = await world.dies_in(case.change(change.change))
    assert died or ":" in failpoint, "the operation did not come by the failpoint"
    if died and failpoint != "after_finish":
        # Until another applier ends the operation, clients see the packages of before.
        assert await case.packages() == before.packages
    await world.applier()
    operation = await world.settled()
    after = await case.look_at_packages()
    await world.processes.kill("applier")
    wanted = await crashes.wanted(change)
    check_packages(before, operation.state, after, wanted)
    if wanted:
        await world.applier()
        await finishes_the_job(case, change, wanted)
    else:
        assert operation.state != SUCCEEDED


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        rare("updated", "after_intent:2", "after_claim"),
        rare("moved", "after_send", "after_send"),
        slow("left", "after_send:2", "after_seal"),
        slow("failing", "after_undo_intent", "after_undo_send"),
        rare("failing", "after_rollback", "before_finish"),
    ],
)
async def test_an_applier_that_resumes_may_die_as_well(
    crashes: PackageCrashing, name: str, first: str, second: str
) -> None:
    change, world = change_named(name), crashes.world
    case = await crashes.stack_with(change)
    before = await case.look_at_packages()
    await world.applier(first)
    assert await world.dies_in(case.change(change.change))
    await world.applier(second)
    assert await world.processes.died("applier") == STATUS
    assert await case.packages() == before.packages
    await world.applier()
    operation = await world.settled()
    after = await case.look_at_packages()
    await world.processes.kill("applier")
    check_packages(before, operation.state, after, await crashes.wanted(change))


@pytest.mark.parametrize(
    ("name", "standstill"),
    [
        slow("updated", "after_send"),
        slow("failing", "after_undo_send"),
        slow("updated", "before_finish"),
        *(rare("updated", name) for name in FORWARD if name not in ("after_send", "before_finish", "after_finish")),
        *(rare("failing", name) for name in BACK if name != "after_undo_send"),
    ],
)
async def test_all_packages_change_or_none_when_the_store_dies(
    crashes: PackageCrashing, name: str, standstill: str
) -> None:
    """The store is killed while the applier stands still, so the next write of the journal meets no store."""
    change, world = change_named(name), crashes.world
    case = await crashes.stack_with(change)
    before = await case.look_at_packages()
    plan = await case.plan(packages=change.change, allow_empty=True)
    await world.applier(f"{standstill}:STOP")
    apply = asyncio.create_task(case.apply_plan(plan))
    await world.processes.stands_still("applier")
    await world.processes.kill("stack")
    world.processes.send("applier", signal.SIGCONT)
    await world.processes.start("stack")
    # The client may have lost the operation, which the applier then resumes.
    await asyncio.gather(apply, return_exceptions=True)
    operation = await world.settled()
    after = await case.look_at_packages()
    await world.processes.kill("applier")
    check_packages(before, operation.state, after, await crashes.wanted(change))


@pytest.mark.parametrize("failpoint", [slow("after_send"), *(rare(name) for name in FORWARD if name != "after_send")])
async def test_a_rollback_to_a_revision_restores_all_packages_or_none(crashes: PackageCrashing, failpoint: str) -> None:
    change, world = CHANGES["joined"], crashes.world
    case = await crashes.stack_with(change)
    first = await case.look_at_packages()
    before = await crashes.changed(case, change.change)
    await world.applier(failpoint)
    assert await world.dies_in(roll_back(case, 1))
    await world.applier()
    operation = await world.settled()
    check_packages(before, operation.state, await case.look_at_packages(), first)
    assert (await numbers(case))[0] == (3 if operation.state == SUCCEEDED else 2)


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, False])
async def test_of_two_appliers_that_change_one_stack_one_runs(crashes: PackageCrashing, is_new: bool) -> None:
    world = crashes.world
    case = await crashes.stack_with(StackChange(None if is_new else BASE, BOTH))
    plans = [await case.plan(packages=each) for each in (changes("install team@1.0.0"), changes("install views"))]
    racers = [f"racer-{number}" for number in range(2)]
    await asyncio.gather(*(world.processes.start("applier", called=racer) for racer in racers))
    async with world.callers(racers) as callers:
        cases = [replace(case, services=caller) for caller in callers]
        ended = await asyncio.gather(
            *(each.apply_plan(plan) for each, plan in zip(cases, plans, strict=True)), return_exceptions=True
        )
    [ran] = [number for number, each in enumerate(ended) if not isinstance(each, BaseException)]
    [refusal] = [each for each in ended if isinstance(each, BaseException)]
    # A plan that comes when the other operation has ended was made from the stack before it.
    assert isinstance(refusal, StackLeased | StackMoved)
    if isinstance(refusal, StackLeased):
        assert refusal.metadata["holder"].endswith(f"/{world.processes.pid(racers[ran])}")
    now = await case.look_at_packages()
    assert set(now.snapshot.recorded.values()) == now.snapshot.ids
    added = [{"base", "team"}, {"labels", "views"}][ran]
    assert {each.name for each in now.packages} == added | (set() if is_new else {"base"})


@pytest.mark.slow
async def test_a_plan_is_refused_while_a_rollback_of_the_stack_runs_and_afterwards(crashes: PackageCrashing) -> None:
    change, world = CHANGES["updated"], crashes.world
    case = await crashes.stack_with(StackChange(BASE, BOTH))
    first = await case.look_at_packages()
    await crashes.changed(case, BOTH)
    plan = await case.plan(packages=change.change)
    await world.applier("after_send:STOP")
    rollback = asyncio.create_task(roll_back(case, 1))
    await world.processes.stands_still("applier")
    await world.processes.start("applier", called="another")
    async with world.callers(["another"]) as [caller]:
        with pytest.raises(StackLeased):
            await replace(case, services=caller).apply_plan(plan)
        world.processes.send("applier", signal.SIGCONT)
        assert end(await rollback).state in (SUCCEEDED, ROLLED_BACK)
        with pytest.raises(StackMoved):
            await replace(case, services=caller).apply_plan(plan)
    assert (await case.look_at_packages()).outcome == first.outcome
