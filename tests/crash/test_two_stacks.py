"""
kill -9 of an applier while another stack, or a person, wants the resources of its operation
(docs/reference/engine.md, "Cases", cases 1, 3 and 4).
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2

from services.core.errors import ResourceOwned
from tests.applier.test_blocked import ended
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, end
from tests.apply.packages import an_object, text
from tests.crash.world import Crashing, crashing
from tests.drivers.client import update
from tests.samples import rare

pytestmark = pytest.mark.slow

LABEL = text(an_object("Label", "l", "sensors"))
OURS = text(an_object("Label", "l", "sensors"), an_object("Bucket", "b", "raw", description="old"))
NEXT = text(an_object("Label", "l", "sensors", color="#000002"), an_object("Bucket", "b", "raw", description="new"))


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


async def newest_operation(case: Case) -> str:
    """The name of the operation that began last."""
    journal, newest = case.services.peers["stack"], journal_pb2.ListOperationsRequest(page_size=1)
    [operation] = (await journal.call(JournalServiceStub(journal.channel).ListOperations, newest)).operations
    return operation.id


async def check_refused_or_shared(case: Case, package: str) -> None:
    """Apply a *package* that needs a resource of stack 's': it is refused, or shares it once 's' has ended."""
    try:
        finished = end(await case.apply(package))
    except ResourceOwned as error:
        refusal = str(error)
    else:
        refusal = finished.cause
        assert finished.state == (ROLLED_BACK if refusal else SUCCEEDED)
    record = (await case.look()).record
    if refusal:
        assert "stack 's'" in refusal
        assert record is None
    else:
        assert record
        assert [entry.origin for entry in record.resources] == [object_pb2.ORIGIN_SHARED]


@pytest.mark.parametrize("failpoint", ["after_intent", "after_send", rare("after_record"), rare("before_finish")])
async def test_another_stack_cannot_take_what_a_dead_applier_was_creating(world: Crashing, failpoint: str) -> None:
    case = await world.case_with("")
    theirs = replace(case, stack="theirs")
    await world.applier(failpoint)
    assert await world.apply_and_die(case, LABEL)
    mine = await newest_operation(case)
    await world.applier()

    await check_refused_or_shared(theirs, LABEL)

    events = [event async for event in case.watch(mine)]
    assert events[-1].finished.state == SUCCEEDED
    [label] = (await case.look()).resources
    assert set((await case.look()).recorded.values()) == {("Label", label.id)}
    assert end(await case.uninstall()).state == SUCCEEDED
    assert end(await theirs.apply(LABEL)).state == SUCCEEDED


async def test_an_edit_while_no_applier_runs_is_kept(world: Crashing) -> None:
    case = await world.case_with(OURS)
    # The label is updated; the bucket is about to be.
    await world.applier("after_intent:2")
    assert await world.apply_and_die(case, NEXT)
    [bucket] = [each for each in (await case.look()).resources if each.kind == "Bucket"]
    edited = {**json.loads(bucket.spec_json), "description": "theirs"}
    await case.services.mutate(update("Bucket", bucket.id, edited), org=case.org)
    await world.applier()

    operation = await world.settled()

    # The update may have been sent, so a person has to decide.
    assert operation.state == BLOCKED
    [step] = (await case.operation(operation.id)).blocked_steps
    assert '/description is "theirs", expected "old"' in step.message
    assert ended(await case.recover(operation.id, **{f"_{step.step.number}": "skip"})).state == SUCCEEDED
    specs = {each.kind: json.loads(each.spec_json) for each in (await case.look()).resources}
    assert (specs["Bucket"]["description"], specs["Label"]["color"]) == ("theirs", "#000002")


@pytest.mark.parametrize(
    "failpoint", ["after_start", rare("after_intent"), rare("before_finish"), rare("after_finish")]
)
async def test_what_a_dead_applier_was_using_is_not_deleted(world: Crashing, failpoint: str) -> None:
    """Its deletion was planned before another stack used it (docs/reference/engine.md, "Cases", case 5)."""
    more = an_object("Label", "m", "more")
    case = await world.case_with(text(*json.loads(LABEL), more))
    theirs = replace(case, stack="theirs")
    plan = await case.plan(text(more))
    await world.applier(failpoint)
    assert await world.apply_and_die(theirs, text(an_object("Label", "tag", "sensors"), an_object("Label", "o", "own")))
    using = await newest_operation(case)
    await world.applier()

    refused = end(await case.apply_plan(plan))

    # Refused in both cases: the operation that uses it may have ended by then, or not.
    assert refused.state == ROLLED_BACK
    assert "is used by" in refused.cause
    assert "stack 'theirs'" in refused.cause
    events = [event async for event in theirs.watch(using)]
    assert events[-1].finished.state == SUCCEEDED
    assert (await theirs.look()).recorded["Label", "tag"] in (await case.look()).ids
    assert end(await case.uninstall()).state == SUCCEEDED
    now = await theirs.look()
    assert set(now.recorded.values()) == now.ids
