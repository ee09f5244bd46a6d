"""A stored plan, and a request that is retried, run once although their applier dies."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import operation_pb2, plan_pb2

from services.cli.exit_codes import Exit
from services.core.errors import PlanUsed
from tests.applier.packages import FRESH, REVERSIBLE
from tests.applier.world import SUCCEEDED, end
from tests.cli.command import ended, environment, started
from tests.crash.world import Crashing, check, content_after, crashing
from tests.samples import rare

pytestmark = pytest.mark.slow

FAILED = operation_pb2.OPERATION_STATE_FAILED


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


@pytest.mark.parametrize("failpoint", [rare("after_start"), "after_intent:2", rare("before_finish"), "after_finish"])
async def test_an_apply_of_a_stored_plan_is_resumed(world: Crashing, failpoint: str) -> None:
    wanted = await content_after(world, FRESH, REVERSIBLE)
    case = await world.case_with(FRESH)
    plan, before = await case.plan(REVERSIBLE), await case.look()
    await world.applier(failpoint)
    assert await world.dies_in(case.apply_plan(plan))
    await world.applier()

    operation = await world.settled()

    assert operation.state == SUCCEEDED
    check(before, operation, await case.look(), wanted)
    stored = await case.services.stored_plan(plan.name)
    assert (stored.state, stored.header.operation_id) == (plan_pb2.PLAN_STATE_APPLIED, operation.id)
    with pytest.raises(PlanUsed):
        await case.apply_plan(plan)


async def test_a_stored_plan_can_be_applied_after_its_applier_died_before_the_start(world: Crashing) -> None:
    case = await world.case_with(FRESH)
    plan = await case.plan(REVERSIBLE)
    await world.applier("after_begin")
    assert await world.dies_in(case.apply_plan(plan))
    await world.applier()
    assert (await world.settled()).state == FAILED

    assert end(await case.apply_plan(plan)).state == SUCCEEDED


async def test_the_command_line_tells_that_an_operation_ended_before_it_had_a_plan(
    world: Crashing, tmp_path: Path
) -> None:
    package = tmp_path / "package.yaml"
    package.write_text(FRESH)
    await world.applier()
    world.processes.send("planner", signal.SIGSTOP)
    env = environment(tmp_path, world.processes.addresses)
    process = await started("apply", "-f", str(package), "--stack", "s", "--yes", "-o", "json", env=env)
    assert process.stdout
    assert "begun" in json.loads(await process.stdout.readline())
    await world.processes.kill("applier")
    world.processes.send("planner", signal.SIGCONT)
    await world.applier()

    result = await ended(process)

    operation = await world.settled()
    assert (result.code, operation.state) == (Exit.ERROR, FAILED)
    problem = f"operation {operation.id} ended before it had a plan: {operation.cause}"
    assert f"{problem}; nothing was written, apply again" in result.err


@pytest.mark.parametrize("failpoint", ["after_begin", rare("after_start"), "after_intent:2", rare("after_finish")])
async def test_a_request_that_is_retried_runs_once(world: Crashing, failpoint: str) -> None:
    """The retry gets all events from another applier, after a restart of the store."""
    wanted = await content_after(world, FRESH, REVERSIBLE)
    case = await world.case_with(FRESH)
    await world.applier(failpoint)
    assert await world.dies_in(case.apply(REVERSIBLE, request_id="r-1"))
    await world.processes.kill("stack")
    await world.processes.start("stack")
    await world.applier()

    events = await case.apply(REVERSIBLE, request_id="r-1")

    assert end(events).state == SUCCEEDED
    after = await case.look()
    assert (after.content, set(after.recorded.values())) == (wanted, after.ids)
    assert after.record is not None
    stack = world.services.peers["stack"]
    request = journal_pb2.ListOperationsRequest(stack_id=after.record.id)
    answer = await stack.call(JournalServiceStub(stack.channel).ListOperations, request)
    names = [operation.id for operation in answer.operations if operation.state != FAILED]
    assert (names[0], len(names)) == (events[0].operation_id, 2)
