"""
An operation that a defect keeps from being resumed is BLOCKED until the defect is fixed (docs/reference/engine.md,
"Driver answers").
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pkger.model.v1 import operation_pb2

from applier_svc import failpoints
from services.core.errors import Internal, OperationUnfinished, TokenStale
from tests.applier.faulty import CallFault
from tests.applier.test_events import SMALL
from tests.applier.test_recovery_loop import answering
from tests.applier.world import BLOCKED, SUCCEEDED, Case, World
from tests.cli.command import environment, pkger

DEFECT = operation_pb2.BLOCKED_REASON_DEFECT


class Defect:
    """A place in the applier at which resuming an operation fails with a text; None: nowhere."""

    def __init__(self) -> None:
        self.place: str | None = None
        self.text = "broken"
        self.attempts = 0

    def __call__(self, place: str) -> None:
        self.attempts += place == "after_claim"
        if place == self.place and self.attempts:
            raise RuntimeError(self.text)


@pytest.fixture
def defect() -> Iterator[Defect]:
    hook = Defect()
    failpoints.install(hook)
    yield hook
    failpoints.install(failpoints.deadly(""))


async def left_behind(faulty: World, defect: Defect, place: str, **more: Any) -> tuple[Case, str]:
    """An operation that was interrupted in its second stage; resuming it meets a defect at *place*."""
    case = faulty.case()
    case.driver.fail(calls={1: CallFault.CUT_OFF})
    defect.place = place
    stream = case.events(SMALL, **more)
    name = (await anext(stream)).operation_id
    with pytest.raises(TokenStale):
        [event async for event in stream]
    return case, name


@pytest.mark.parametrize(("place", "open_steps"), [("after_claim", []), ("before_finish", []), ("after_send", [1, 2])])
async def test_three_attempts_to_resume_that_a_defect_ends_block_an_operation(
    faulty: World, defect: Defect, place: str, open_steps: list[int]
) -> None:
    case, name = await left_behind(faulty, defect, place)
    assert (await case.settled()).id == name
    operation = await case.operation(name)
    assert (operation.state, operation.blocked_reason, defect.attempts) == (BLOCKED, DEFECT, 3)
    assert operation.cause == "a defect keeps it from being resumed, 3 times in a row: RuntimeError: broken"
    assert [each.step.number for each in operation.blocked_steps] == open_steps
    retry = [operation_pb2.DECISION_RETRY]
    assert all((each.reason, list(each.decisions)) == (DEFECT, retry) for each in operation.blocked_steps)
    last = [event async for event in case.watch(name)][-1].finished
    assert (last.state, last.cause) == (BLOCKED, operation.cause)

    # The defect is not fixed yet.
    if open_steps:
        # The intents were written again, so the operation was no longer BLOCKED.
        with pytest.raises(Internal):
            await case.recover(name)
        assert ((await case.settled()).blocked_reason, defect.attempts) == (DEFECT, 6)
    else:
        again = await case.recover(name)
        assert (again[-1].finished.state, defect.attempts) == (BLOCKED, 4)
        assert again[-1].finished.cause == "a defect keeps it from being resumed: RuntimeError: broken"
        with pytest.raises(OperationUnfinished):
            await case.apply(SMALL)

    defect.place = None
    assert (await case.recover(name))[-1].finished.state == SUCCEEDED
    now = await case.look()
    assert set(now.recorded.values()) == now.ids


async def test_the_text_of_a_defect_has_no_secret(faulty: World, defect: Defect) -> None:
    defect.text = "the platform said hunter2"
    case, name = await left_behind(faulty, defect, "after_send", secrets={"key": "hunter2"})
    assert (await case.settled()).blocked_reason == DEFECT
    assert "hunter2" not in str(await case.operation(name))
    assert "hunter2" not in str([event async for event in case.watch(name)])


@pytest.mark.real_time
async def test_a_plan_that_cannot_be_read_blocks_its_operation(tmp_path: Path) -> None:
    """Then there are no blocked steps; the cause says what is wrong, and the remedy is shown."""
    async with answering(tmp_path) as (journal, faulty):
        case = faulty.case()
        case.driver.fail(calls={1: CallFault.CUT_OFF})
        journal.body = b"\xff"
        with pytest.raises(TokenStale):
            await case.apply(SMALL)
        operation = await case.settled()
        assert (operation.state, operation.blocked_reason, list(operation.blocked_steps)) == (BLOCKED, DEFECT, [])
        assert "DecodeError" in operation.cause

        name, env = operation.id, environment(tmp_path, faulty.services.addresses)
        shown = (await pkger("operations", "show", name, env=env)).out
        assert "DecodeError" in shown
        assert f"`pkger operations recover {name}` retries; run it once the defect is fixed" in shown
        refused = await pkger("operations", "recover", name, "--step", "0=skip", env=env)
        assert "step 0 is not blocked; blocked are: none" in refused.err
        journal.body = None
        recovered = await pkger("operations", "recover", name, env=env)
        assert (recovered.code, recovered.out.splitlines()[-1]) == (0, "succeeded")
