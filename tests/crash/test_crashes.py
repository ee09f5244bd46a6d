"""
kill -9 of the applier at every failpoint: the next one finishes or undoes its operation
(docs/reference/engine.md, "Tests").
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from applier_svc.failpoints import STATUS
from tests.applier.history import check_history, numbers, roll_back
from tests.applier.packages import FRESH
from tests.applier.world import SUCCEEDED, end
from tests.crash.changes import BACK, CHANGES, FORWARD
from tests.crash.world import Crashing, check, content_after, crashing
from tests.samples import rare, slow

ALL = [
    (change, f"{name}:{count}")
    for change in CHANGES
    for name in (*FORWARD, *(BACK if change == "failing" else ()))
    for count in range(1, 5)
]
SAMPLE = [
    *(("new", "after_send"), ("mixed", "after_seal"), ("new", "before_finish")),
    *(slow("new", name) for name in ("after_begin", "after_finish")),
    *(slow("mixed", "after_intent:3"), slow("replaced", "after_record:2"), slow("turned", "after_send:4")),
    *(slow("moved", "after_send:2"), slow("failing", "after_rollback"), slow("failing", "after_undo_send")),
]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With --faults, each failpoint at its first to fourth arrival; else a sample."""
    if "failpoint" in metafunc.fixturenames:
        cases = ALL if metafunc.config.getoption("--faults") else SAMPLE
        metafunc.parametrize(("change", "failpoint"), cases)


async def test_the_operation_of_a_dead_applier_is_finished_or_undone(
    world: Crashing, change: str, failpoint: str
) -> None:
    package, changed = CHANGES[change]
    case = await world.case_with(package)
    before = await case.look()
    await world.applier(failpoint)
    died = await world.apply_and_die(case, changed)
    assert died or ":" in failpoint, "the operation did not come by the failpoint"
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    await world.processes.kill("applier")
    wanted = after.content if change == "failing" else await content_after(world, package, changed)
    check(before, operation, after, wanted)
    if after.record:
        await check_history(case)
    if change != "failing":
        await world.applier()
        again = end(await case.apply(changed))
        assert again.state == SUCCEEDED
        assert again.no_change == (operation.state == SUCCEEDED)


@pytest.mark.parametrize("name", [rare(name) for name in FORWARD])
async def test_a_rollback_to_a_revision_is_finished_or_undone(world: Crashing, name: str) -> None:
    package, changed = CHANGES["mixed"]
    case = await world.case_with(package)
    wanted = (await case.look()).content
    await world.applier()
    assert end(await case.apply(changed)).state == SUCCEEDED
    await world.processes.kill("applier")
    before = await case.look()
    await world.applier(name)
    await world.dies_in(roll_back(case, 1))
    await world.applier()
    operation = await world.settled()
    check(before, operation, await case.look(), wanted)
    await check_history(case)
    assert (await numbers(case))[0] == (3 if operation.state == SUCCEEDED else 2)


@pytest.mark.slow
async def test_an_apply_with_nothing_to_do_changes_nothing_when_it_is_resumed(world: Crashing) -> None:
    case = await world.case_with(FRESH)
    before = await case.look()
    await world.applier("after_start")
    assert await world.apply_and_die(case, FRESH)
    await world.applier()
    assert (await world.settled()).state == SUCCEEDED
    assert await case.look() == before


@pytest.mark.parametrize(
    ("change", "first", "second"),
    [
        rare("reversible", "after_intent:2", "after_claim"),
        slow("reversible", "after_intent:2", "after_send"),
        rare("mixed", "after_send:3", "after_seal"),
        slow("failing", "after_undo_send", "after_undo_intent"),
        rare("failing", "after_rollback", "before_finish"),
    ],
)
async def test_an_applier_that_resumes_may_die_as_well(world: Crashing, change: str, first: str, second: str) -> None:
    package, changed = CHANGES[change]
    case = await world.case_with(package)
    before = await case.look()
    await world.applier(first)
    assert await world.apply_and_die(case, changed)
    await world.applier(second)
    assert await world.processes.died("applier") == STATUS
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    await world.processes.kill("applier")
    wanted = after.content if change == "failing" else await content_after(world, package, changed)
    check(before, operation, after, wanted)
