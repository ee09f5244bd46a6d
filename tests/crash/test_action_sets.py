"""
kill -9 of the applier at every failpoint of a backup, its restore and its deletion: the end is that of an undisturbed
run (docs/actions.md, "When something goes wrong").
"""

import asyncio
import resource
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1 import action_pb2, operation_pb2

from tests.action_applier import notes
from tests.action_sets.test_backups import CHANGED, PACKAGE
from tests.action_sets.world import COMPLETE, FAILED, action_set, blueprint, do
from tests.applier.world import ROLLED_BACK, SUCCEEDED, end
from tests.crash.action_sets import PARTS, Chain, End, chains
from tests.crash.recording import Write, writes
from tests.crash.refusing import refuse
from tests.crash.world import Crashing
from tests.samples import rare, slow

LONGER_THAN_A_LEASE = 3.0

ALWAYS = (
    *("after_begin", "after_start", "after_phase_intent", "after_phase_effect", "after_phase_record"),
    *("before_defer", "after_defer", "before_finish", "after_finish"),
)
"""The failpoints that each action set reaches."""

OF_OPERATION = (
    *(
        "after_begin:2",
        "after_child_begin",
        "after_start:2",
        "after_intent",
        "after_send",
        "after_record",
        "after_seal",
    ),
    *("before_finish:2", "after_finish:2", "after_child_end"),
)
"""The failpoints that the operation of a restore adds."""

REACHED = {
    "backup": (*ALWAYS, "after_reserve", "after_emit", "before_artifacts", "after_phase_record:2"),
    "restore": (*ALWAYS, "after_reserve", "after_phase_intent:2", "after_phase_record:2", *OF_OPERATION),
    "delete": ALWAYS,
}
"""The failpoints of each part, with the number of the arrival."""

EACH = [(part, failpoint) for part, failpoints in REACHED.items() for failpoint in failpoints]

SAMPLES: dict[str, list[tuple[str, ...]]] = {
    "death": [("backup", "after_emit"), ("restore", "after_intent"), ("delete", "after_phase_effect")],
    "again": [("restore", "after_send", "after_claim")],
    "taken_over": [("restore", "after_child_begin")],
    "standstill": [("restore", "after_intent")],
}
"""What runs without ``--faults``."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each failpoint of each part with --faults; else a sample."""
    is_whole = metafunc.config.getoption("--faults")
    again = [(part, first, second) for part, first in EACH for second in ("after_claim", first)]
    for name, whole in (("death", EACH), ("again", again), ("taken_over", EACH), ("standstill", EACH)):
        if name in metafunc.fixturenames:
            cases: Sequence[tuple[str, ...]] = whole if is_whole else SAMPLES[name]
            metafunc.parametrize(name, [slow(each, id=" ".join(each)) for each in cases])


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with chains(tmp_path) as running:
        yield running


async def before(world: Crashing, folder: Path, part: str) -> Chain:
    """A stack for which all parts before *part* have run, undisturbed; no applier runs."""
    chain = Chain(world, folder, await world.case_with(PACKAGE))
    for each in PARTS[: PARTS.index(part)]:
        await change(chain, each)
        assert (await chain.run(each)).state == COMPLETE
        await world.processes.kill("applier")
    await change(chain, part)
    return chain


async def change(chain: Chain, part: str) -> None:
    """Change the stack before its restore; no applier runs before and after."""
    if part == "restore":
        await chain.world.applier()
        assert end(await chain.case.apply(CHANGED)).state == SUCCEEDED
        await chain.world.processes.kill("applier")


async def undisturbed(world: Crashing, folder: Path, part: str) -> End:
    """The end of *part* without a death."""
    chain = await before(world, folder, part)
    left = await chain.end(await chain.run(part))
    await world.processes.kill("applier")
    return left


async def test_the_end_is_that_of_an_undisturbed_run(world: Crashing, tmp_path: Path, death: tuple[str, str]) -> None:
    part, failpoint = death
    wanted = await undisturbed(world, tmp_path, part)
    chain = await before(world, tmp_path, part)

    done = await chain.run(part, [failpoint])

    assert chain.deaths == 1
    assert await chain.end(done) == wanted
    await chain.check(done)


async def test_an_applier_that_resumes_may_die_as_well(
    world: Crashing, tmp_path: Path, again: tuple[str, str, str]
) -> None:
    part, *failpoints = again
    wanted = await undisturbed(world, tmp_path, part)
    chain = await before(world, tmp_path, part)

    done = await chain.run(part, failpoints)

    assert chain.deaths
    assert await chain.end(done) == wanted
    await chain.check(done)


async def test_an_applier_beside_it_takes_over(world: Crashing, tmp_path: Path, taken_over: tuple[str, str]) -> None:
    part, failpoint = taken_over
    wanted = await undisturbed(world, tmp_path, part)
    chain = await before(world, tmp_path, part)
    await world.applier(failpoint)
    await world.processes.start("applier", called="another")

    async with world.callers(["another"]) as [another]:
        if not await chain.answer(part):
            await world.processes.died("applier")
        done = await chain.ended(part, another)
        await world.processes.kill("another")

    await world.applier()
    await chain.quiet()
    assert await chain.end(done) == wanted
    await chain.check(done)


async def test_an_applier_that_wakes_up_late_changes_nothing(
    world: Crashing, tmp_path: Path, standstill: tuple[str, str]
) -> None:
    part, failpoint = standstill
    wanted = await undisturbed(world, tmp_path, part)
    chain = await before(world, tmp_path, part)
    await world.applier(f"{failpoint}:STOP")
    late = asyncio.create_task(chain.answer(part))
    await world.processes.stands_still("applier")
    await world.processes.start("applier", called="another")
    async with world.callers(["another"]) as [another]:
        done = await chain.ended(part, another)
        seen = await chain.end(done)
        made = writes(tmp_path)
        world.processes.send("applier", signal.SIGCONT)
        await late
        # It ends when all that it still runs has ended.
        await world.processes.kill("applier", signal.SIGTERM)
        assert await chain.ended(part, another) == done
    assert (await chain.end(done), changes_of(writes(tmp_path))) == (seen, changes_of(made))
    assert seen == wanted
    await world.processes.kill("another")
    await world.applier()
    await chain.check(done)


def changes_of(made: list[Write]) -> list[Write]:
    """The changes among writes; the others show tokens."""
    return [each for each in made if each.verb]


@pytest.mark.parametrize(
    "failpoint", [slow("after_emit"), *(rare(each) for each in ALWAYS), rare("after_intent"), rare("after_child_end")]
)
async def test_the_chain_of_all_parts_with_a_death_in_each(world: Crashing, tmp_path: Path, failpoint: str) -> None:
    wanted = await undisturbed(world, tmp_path, PARTS[-1])
    chain = Chain(world, tmp_path, await world.case_with(PACKAGE))
    for part in PARTS:
        await change(chain, part)
        done = await chain.run(part, [failpoint])
        assert done.state == COMPLETE
        await chain.check(done)
        await world.processes.kill("applier")
    await world.applier()
    assert await chain.end(done) == wanted
    assert chain.deaths


class OnceOnly(Chain):
    """An action set whose phases run once only."""

    def request(self, part: str, **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        phases = [do("one", func="NoteOnce"), do("two", func="NoteOnce")]
        run = {"phases": phases, "deferPhase": do("after", func="NoteOnce")}
        return blueprint(run=run), action_set("run")


ONCE = ("after_phase_intent", "after_phase_effect", "after_phase_record", "before_defer", "after_defer", "after_finish")


@pytest.mark.parametrize("recovery", [slow("after_claim"), rare("")])
@pytest.mark.parametrize("failpoint", [slow(ONCE[1]), *(rare(each) for each in ONCE if each != ONCE[1])])
async def test_what_runs_once_does_not_run_twice(
    world: Crashing, tmp_path: Path, failpoint: str, recovery: str
) -> None:
    chain = OnceOnly(world, tmp_path, await world.case_with(""))

    done = await chain.run("run", [failpoint, *filter(None, [recovery])])

    assert chain.deaths
    calls = notes(tmp_path)
    assert len(set(calls)) == len({step for step, _ in calls}) == len(calls)
    await chain.check(done)
    failures = {each.reason for each in done.failures}
    assert (done.state, failures) in ((COMPLETE, set()), (FAILED, {action_pb2.PHASE_REASON_INTERRUPTED}))


UNDOES = (
    *("after_intent", "after_send", "after_rollback", "after_undo_intent", "after_undo_record"),
    *("before_finish", "after_child_end", "after_phase_record:2"),
)


@pytest.mark.parametrize("failpoint", [slow("after_undo_send"), *map(rare, UNDOES)])
async def test_a_restore_that_is_refused_leaves_the_stack_as_it_was(tmp_path: Path, failpoint: str) -> None:
    async with chains(tmp_path, "tests.crash.refusing") as world:
        chain = await before(world, tmp_path, "restore")
        was = await chain.case.look()
        refuse(tmp_path, "Readings")

        done = await chain.run("restore", [failpoint])

        assert chain.deaths == 1
        assert (done.state, done.failures[0].reason) == (FAILED, action_pb2.PHASE_REASON_CHILD_ROLLED_BACK)
        now = await chain.case.look()
        assert (now.content, now.recorded_content) == (was.content, was.recorded_content)
        states = [each.state for each in await chain.operations() if each.parent]
        assert set(states) <= {ROLLED_BACK, operation_pb2.OPERATION_STATE_FAILED}
        await chain.check(done)


@pytest.mark.slow
async def test_a_phase_that_was_interrupted_three_times_leaves_no_operation(world: Crashing, tmp_path: Path) -> None:
    """Its operation stands still, as the platform does, and is undone when that answers again."""
    chain = await before(world, tmp_path, "restore")
    was = await chain.case.look()
    await world.applier("after_intent")
    assert not await chain.answer("restore")
    await world.processes.died("applier")
    world.processes.send("platform", signal.SIGSTOP)
    for count in (1, 2):
        await world.applier()
        await chain.interrupted(count)
        await world.processes.kill("applier")
    await world.applier()

    done = await chain.ended("restore")

    [failure] = done.failures
    assert (failure.reason, failure.message) == (
        action_pb2.PHASE_REASON_INTERRUPTED,
        "an applier ended while it ran, 3 times",
    )
    world.processes.send("platform", signal.SIGCONT)
    await chain.quiet()
    now = await chain.case.look()
    assert (now.content, now.recorded_content) == (was.content, was.recorded_content)
    await chain.check(done)


@pytest.mark.parametrize("part", [slow("backup"), rare("restore"), rare("delete")])
async def test_a_store_that_cannot_write_stops_the_action_set_until_it_can(
    world: Crashing, tmp_path: Path, part: str
) -> None:
    """A limit on the size of files stands for a full disk."""
    wanted = await undisturbed(world, tmp_path, part)
    chain = await before(world, tmp_path, part)
    store = world.processes.pid("stack")
    await world.applier("after_phase_intent:STOP")
    answer = asyncio.create_task(chain.answer(part))
    await world.processes.stands_still("applier")
    unlimited = resource.prlimit(store, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    made = writes(tmp_path)
    world.processes.send("applier", signal.SIGCONT)
    # The end of the lease is no event that could be awaited.
    await asyncio.sleep(LONGER_THAN_A_LEASE)
    assert writes(tmp_path) == made
    resource.prlimit(store, resource.RLIMIT_FSIZE, unlimited)

    done = await answer or await chain.ended(part)

    assert await chain.end(done) == wanted
    await chain.check(done)
