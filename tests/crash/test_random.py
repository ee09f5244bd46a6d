"""Random packages and crashes: a change takes effect as a whole or not at all (docs/reference/engine.md, "Tests")."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier_svc.failpoints import NAMES
from tests.applier.random_packages import packages
from tests.applier.world import SUCCEEDED, end
from tests.apply.packages import an_object, text
from tests.crash.world import Crashing, check, crashing

pytestmark = pytest.mark.slow

REFUSED = an_object("Bucket", "reserved", "_system")
"""An object with a reserved name, which the platform refuses, so that the operation rolls back."""

failpoints = st.builds("{}:{}".format, st.sampled_from(NAMES), st.integers(1, 3))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


@pytest.mark.timeout(1800)
@settings(settings.get_profile("crashes"))
@given(before=packages(), wanted=packages(), is_refused=st.booleans(), first=failpoints, second=failpoints)
async def test_a_change_that_crashes_twice_happens_or_does_not(
    world: Crashing, before: str, wanted: str, is_refused: bool, first: str, second: str
) -> None:
    clean, case = await world.case_with(wanted), await world.case_with(before)
    goal, at_first = (await clean.look()).content, await case.look()
    package = text(*json.loads(wanted), REFUSED) if is_refused else wanted
    await world.applier(first)
    if await world.apply_and_die(case, package):
        await world.applier(second)
        await _settled_or_dead(world)
    await world.applier()
    check(at_first, await world.settled(), await case.look(), goal)
    assert end(await case.apply(wanted)).state == SUCCEEDED
    last = await case.look()
    assert last.content == goal
    assert set(last.recorded.values()) == last.ids
    await world.processes.kill("applier")


async def _settled_or_dead(world: Crashing) -> None:
    """Wait until the applier has ended the operation that it found, or has died."""
    ends = [asyncio.ensure_future(world.settled()), asyncio.ensure_future(world.processes.ended("applier"))]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for waiting in ends:
        waiting.cancel()
    await asyncio.gather(*ends, return_exceptions=True)
    await world.processes.kill("applier")
