"""
kill -9 of the applier at each failpoint while it changes several packages of a stack: all of them change, or none
(docs/reference/engine.md, "Composition").
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from applier_svc.failpoints import STATUS
from tests.applier.composed import BOTH, CHANGES, FAILING
from tests.applier.history import check_history, numbers, roll_back
from tests.applier.world import SUCCEEDED, end
from tests.crash.changes import BACK, FORWARD
from tests.crash.world import Crashing, check, content_after, crashing
from tests.samples import rare, slow

SAMPLE = [("updated", "after_send:3"), ("shared-left", "before_finish")]
EACH = [*(("left", name) for name in FORWARD), *(("failing", name) for name in BACK)]
"""Each failpoint once."""
MORE = [
    *((change, name) for change in ("installed", "failing") for name in FORWARD if name != "after_seal"),
    *(("updated", f"{name}:2") for name in FORWARD),
    *((change, f"after_{part}:{count}") for change in CHANGES for part in ("intent", "send") for count in (1, 3, 6)),
    *(("failing", f"{name}:2") for name in BACK if name != "after_rollback"),
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path, modules={"planner": "tests.composing"}) as running:
        yield running


@pytest.mark.parametrize(
    ("change", "failpoint"),
    [*SAMPLE, *(slow(*each) for each in EACH), *(rare(*each) for each in MORE if each not in SAMPLE)],
)
async def test_all_packages_change_or_none_when_an_applier_dies(world: Crashing, change: str, failpoint: str) -> None:
    packages, changed = {**CHANGES, "failing": (BOTH, FAILING)}[change]
    case = await world.case_with(packages)
    before = await case.look()
    await world.applier(failpoint)
    died = await world.apply_and_die(case, changed)
    assert died or ":" in failpoint, "the operation did not come by the failpoint"
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    if after.record:
        await check_history(case)
    if change == "failing":
        assert operation.state != SUCCEEDED
        check(before, operation, after, [])
        return
    again = end(await case.apply(changed))
    assert (again.state, again.no_change) == (SUCCEEDED, operation.state == SUCCEEDED)
    await world.processes.kill("applier")
    check(before, operation, after, await content_after(world, packages, changed))


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        rare("updated", "after_intent:2", "after_claim"),
        rare("moved", "after_send", "after_send"),
        slow("left", "after_send:2", "after_seal"),
        slow("failing", "after_undo_intent", "after_undo_send"),
        rare("failing", "after_rollback", "before_finish"),
    ],
)
async def test_an_applier_that_resumes_may_die_as_well(world: Crashing, change: str, first: str, second: str) -> None:
    packages, changed = {**CHANGES, "failing": (BOTH, FAILING)}[change]
    case = await world.case_with(packages)
    before = await case.look()
    await world.applier(first)
    assert await world.apply_and_die(case, changed)
    await world.applier(second)
    assert await world.processes.died("applier") == STATUS
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    await check_history(case)
    await world.processes.kill("applier")
    check(before, operation, after, [] if change == "failing" else await content_after(world, packages, changed))


@pytest.mark.parametrize("name", [rare(name) for name in FORWARD])
async def test_a_rollback_to_a_revision_restores_all_packages_or_none(world: Crashing, name: str) -> None:
    packages, changed = CHANGES["moved"]
    case = await world.case_with(packages)
    first = await case.look()
    await world.applier()
    assert end(await case.apply(changed)).state == SUCCEEDED
    await world.processes.kill("applier")
    before = await case.look()
    await world.applier(name)
    await world.dies_in(roll_back(case, 1))
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    check(before, operation, after, first.content)
    await check_history(case)
    assert (await numbers(case))[0] == (3 if operation.state == SUCCEEDED else 2)
