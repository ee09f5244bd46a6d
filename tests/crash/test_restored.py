"""
A store restored from a backup of many applies ago, with real processes (docs/reference/engine.md, "Cases", case 9).
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

import pytest
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import OperationUnfinished, PlanUsed
from tests.applier.test_blocked import ended
from tests.applier.test_restored import RESTORED, back_up, package, restore
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, end
from tests.apply.packages import an_object, text
from tests.crash.world import Crashing, crashing

pytestmark = pytest.mark.slow

AGO = pytest.mark.parametrize("since", [1, 5, 50])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


def with_another(version: int) -> str:
    """The package, and another dashboard of the same name."""
    return text(*json.loads(package(version)), an_object("Dashboard", "mem", "cpu"))


async def applied_and_restored(
    world: Crashing, case: Case, folder: Path, packages: Iterable[str]
) -> Sequence[object_pb2.Resource]:
    """Apply *packages* with the running applier, then restore the store; returns the resources at that time."""
    for each in packages:
        assert end(await case.apply(each)).state == SUCCEEDED
    await world.processes.kill("applier")
    await world.processes.kill("stack")
    restore(folder)
    before = await world.services.resources(org=case.org)
    await world.processes.start("stack")
    await world.applier()
    return before


async def check_blocked(case: Case, name: str, before: Sequence[object_pb2.Resource]) -> None:
    operation = await case.operation(name)
    assert (operation.state, operation.blocked_reason) == (BLOCKED, RESTORED)
    assert "the store was restored from a backup" in operation.cause
    with pytest.raises(OperationUnfinished):
        await case.apply(package(98))
    assert (await case.look()).resources == before


async def check_next_apply(case: Case, forgotten: int) -> None:
    """The next apply makes each object once; *forgotten* dashboards that the store has lost stay beside them."""
    assert end(await case.apply(package(99))).state == SUCCEEDED
    now = await case.look()
    recorded = set(now.recorded.values())
    assert recorded < now.ids if forgotten else recorded == now.ids
    assert (len(recorded), len(now.ids)) == (2, 2 + forgotten)
    assert end(await case.apply(package(99))).no_change


@pytest.mark.faults
@AGO
async def test_a_plan_that_ran_since_does_not_run_again(world: Crashing, tmp_path: Path, since: int) -> None:
    case = await world.case_with(package(0))
    plan = await case.plan(with_another(0))
    back_up(tmp_path)
    await world.applier()
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    before = await applied_and_restored(world, case, tmp_path, map(with_another, range(1, since)))

    events = await case.apply_plan(plan)

    assert end(events).state == BLOCKED
    await check_blocked(case, events[0].operation_id, before)
    assert ended(await case.recover(events[0].operation_id)).state == ROLLED_BACK
    with pytest.raises(PlanUsed):
        await case.apply_plan(plan)
    assert (await case.look()).resources == before
    await check_next_apply(case, forgotten=1)


@pytest.mark.faults
@AGO
async def test_an_unfinished_operation_waits_for_consent(world: Crashing, tmp_path: Path, since: int) -> None:
    case = await world.case_with(package(0))
    # The label is updated.
    await world.applier("after_record")
    assert await world.apply_and_die(case, package(1))
    back_up(tmp_path)
    await world.applier()
    name = (await world.settled()).id
    before = await applied_and_restored(world, case, tmp_path, map(package, range(2, since + 2)))

    assert (await world.settled()).id == name
    await check_blocked(case, name, before)

    # Later applies have changed the resources that the operation was about to change.
    assert ended(await case.recover(name)).state == BLOCKED
    blocked = (await case.operation(name)).blocked_steps
    assert {each.reason for each in blocked} == {operation_pb2.BLOCKED_REASON_CONFLICT}
    keep = {f"_{each.step.number}": "keep" for each in blocked}
    assert ended(await case.recover(name, **keep)).state in (SUCCEEDED, ROLLED_BACK)
    assert (await case.look()).resources == before
    await check_next_apply(case, forgotten=0)
