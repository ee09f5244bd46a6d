"""
Case 16 of docs/reference/engine.md, "Cases", with whole packages and appliers that are killed: no stack loses a
resource, and none is left at the end.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeGuard

import pytest
from pkger.model.v1 import object_pb2, operation_pb2

from services.core.errors import SharedDiffers
from tests.applier.world import SUCCEEDED
from tests.apply.test_shared_packages import lack_nothing
from tests.corpora import corpus_parameters, package_text, packages_in
from tests.crash.stacks import APPLIERS, Answer, Caller, Shared, live
from tests.crash.world import Crashing, crashing
from tests.samples import rare

pytestmark = pytest.mark.slow

_AT_ONCE = 3
_MOST_ROUNDS = 10


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("count", "seed"), [(12, 0), rare(41, 0), rare(41, 1)])
@pytest.mark.parametrize("folder", corpus_parameters(pytest.mark.faults))
async def test_packages_live_side_by_side_and_appliers_die(
    world: Crashing, folder: Path, count: int, seed: int
) -> None:
    rng = random.Random(seed)
    paths = packages_in(folder)
    packages = {path.stem: package_text(path) for path in rng.sample(paths, min(count, len(paths)))}
    async with world.callers(APPLIERS) as callers, asyncio.TaskGroup() as tasks:
        shared = Shared(world.services, callers, world.processes)
        for name in APPLIERS:
            tasks.create_task(live(shared, name, random.Random(rng.random()), 200))
        stacks = [Caller(shared, name, random.Random(rng.random())) for name in packages]

        fitting = await _applied(stacks, packages)
        # A few packages declare a variable or label of the same name with different content.
        assert len(fitting) > 0.8 * len(packages)
        records = [await shared.services.record(each.stack) for each in fitting]
        assert any(entry.origin == object_pb2.ORIGIN_SHARED for record in records for entry in record.resources)
        for each in fitting:
            again = await each.apply(packages[each.stack])
            assert _has_succeeded(again), (each.stack, again)
            assert again.no_change, each.stack

        order = rng.sample(fitting, len(fitting))
        while order:
            leaving, order = order[:_AT_ONCE], order[_AT_ONCE:]
            await _uninstalled(shared, leaving, order)
        await shared.pulse.end()
    assert await world.services.resources() == []
    print(dict(sorted(shared.heard.items())))


def _has_succeeded(answer: Answer) -> TypeGuard[operation_pb2.Finished]:
    return isinstance(answer, operation_pb2.Finished) and answer.state == SUCCEEDED


async def _applied(stacks: Sequence[Caller], packages: dict[str, str]) -> list[Caller]:
    """Apply all packages, some at the same time; returns the stacks whose package agrees with the earlier ones."""
    fitting, left = list[Caller](), list(stacks)
    for _ in range(_MOST_ROUNDS * len(stacks)):
        some, left = left[:_AT_ONCE], left[_AT_ONCE:]
        answers = await asyncio.gather(*(each.apply(packages[each.stack]) for each in some))
        for each, answer in zip(some, answers, strict=True):
            if _has_succeeded(answer):
                fitting.append(each)
            elif not isinstance(answer, SharedDiffers):
                # Another operation was creating a resource that this one wants to share.
                left.append(each)
        await lack_nothing(some[0].shared.services, [each.stack for each in fitting])
        if not left:
            return fitting
    raise AssertionError(f"cannot be applied: {[each.stack for each in left]}")


async def _uninstalled(shared: Shared, leaving: Sequence[Caller], staying: Sequence[Caller]) -> None:
    """Uninstall stacks at the same time, and repeat it for those that became owners of shared resources."""
    for _ in range(_MOST_ROUNDS):
        await asyncio.gather(*(each.uninstall() for each in leaving))
        await lack_nothing(shared.services, [each.stack for each in staying])
        there = set(await shared.services.stack_names())
        leaving = [each for each in leaving if each.stack in there]
        if not leaving:
            return
    raise AssertionError(f"cannot be uninstalled: {[each.stack for each in leaving]}")
