"""
Secrets when an applier dies, and a canary value that must not be found in any file or answer
(docs/reference/engine.md, "Recovery", "Tests").
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.settings import PORTS
from tests.applier.packages import FRESH
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, end, put_secrets
from tests.apply.packages import an_object, text
from tests.crash.changes import FAILING
from tests.crash.test_two_stacks import newest_operation
from tests.crash.world import Crashing, check, content_after, crashing
from tests.samples import rare

pytestmark = pytest.mark.slow

CANARY = "canary-8a1f\N{SNOWMAN}"
GIVEN = {"new": CANARY, "ours": f"{CANARY} too"}
REFUSED = text(an_object("Label", "red", "red"), an_object("Bucket", "reserved", "_system"))

OVERWRITTEN = "secrets that stay overwritten: 'ours'"
PERHAPS = "secrets that may have been overwritten: 'ours'"
AGAIN = "apply again, with the secrets"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[Crashing]:
    async with crashing(tmp_path) as running:
        yield running


CASES = [
    # Not sent, which the journal does not tell: the start is written together with the first intents.
    rare(FRESH, ["after_start"], ROLLED_BACK, [AGAIN, PERHAPS]),
    rare(FRESH, ["after_intent"], ROLLED_BACK, [AGAIN, PERHAPS]),
    # Sent, without an outcome in the journal.
    (FRESH, ["after_send"], ROLLED_BACK, [AGAIN, PERHAPS]),
    # The outcome is kept back until the next intent.
    rare(FRESH, ["after_record"], ROLLED_BACK, [AGAIN, PERHAPS]),
    # All written: the operation continues without the values.
    (FRESH, ["after_intent:2"], SUCCEEDED, []),
    rare(FRESH, ["after_send:2"], SUCCEEDED, []),
    # Refused by the platform later on.
    (FAILING, ["after_rollback"], ROLLED_BACK, ["create Bucket 'reserved'", OVERWRITTEN]),
    rare(
        FAILING,
        ["after_undo_intent:3"],
        ROLLED_BACK,
        ["create Bucket 'reserved'", OVERWRITTEN],
        marks=pytest.mark.faults,
    ),
    rare(
        FAILING, ["after_undo_send:3"], ROLLED_BACK, ["create Bucket 'reserved'", OVERWRITTEN], marks=pytest.mark.faults
    ),
    # The applier that resumes the operation dies as well.
    (FRESH, ["after_send", "after_rollback"], ROLLED_BACK, [AGAIN, PERHAPS]),
    rare(FRESH, ["after_start", "before_finish"], ROLLED_BACK, [AGAIN, PERHAPS]),
]


@pytest.mark.parametrize(("package", "failpoints", "state", "parts"), CASES, ids=lambda value: str(value)[:40])
async def test_secrets_of_a_dead_applier_are_written_or_undone(
    world: Crashing, package: str, failpoints: list[str], state: int, parts: list[str]
) -> None:
    case = await world.case_with(FRESH if package == FAILING else "")
    await put_secrets(case, {"theirs": "1", "ours": "2"})
    before = await case.look()
    await world.applier(failpoints[0])
    assert await world.apply_and_die(case, package, secrets=GIVEN)
    for failpoint in failpoints[1:]:
        await world.applier(failpoint)
        await world.processes.died("applier")
    await world.applier()
    operation = await world.settled()
    after = await case.look()
    assert operation.state == state
    assert [part for part in parts if part not in operation.cause] == []
    assert ("(secrets" in operation.cause) == bool({OVERWRITTEN, PERHAPS} & set(parts))
    # A secret that a dead applier wrote may have been overwritten by others since, so the undo keeps it.
    stays = state == SUCCEEDED or failpoints[0] in ("after_send", "after_record", "after_rollback")
    assert await case.services.secret_keys(case.org) == ["new", "ours", "theirs"][not stays :]
    if state == ROLLED_BACK:
        check(before, operation, after, after.content)
    else:
        await world.processes.kill("applier")
        check(before, operation, after, await content_after(world, "", package))
        await world.applier()
    if package != FAILING:
        assert end(await case.apply(package, secrets=GIVEN)).state == SUCCEEDED
        assert await case.services.secret_keys(case.org) == ["new", "ours", "theirs"]


@pytest.mark.parametrize(
    ("failpoint", "is_person"), [("after_record", True), rare("after_send", True), rare("after_send", False)]
)
async def test_a_secret_that_others_write_while_no_applier_lives_stays(
    world: Crashing, failpoint: str, is_person: bool
) -> None:
    """Case 6 of docs/reference/engine.md, "Cases": the undo keeps a secret that others may have written."""
    case = await world.case_with("")
    await world.applier(failpoint)
    assert await world.apply_and_die(case, REFUSED, secrets={"shared": "mine"})
    mine = await newest_operation(case)
    if is_person:
        await put_secrets(case, {"shared": "theirs"})
    await world.applier()
    other = text(an_object("Label", "o", "other"))
    theirs = await replace(case, stack="theirs").apply(other, secrets={} if is_person else {"shared": "theirs"})

    events = [event async for event in case.watch(mine)]

    assert (end(theirs).state, end(events).state) == (SUCCEEDED, ROLLED_BACK)
    assert "'shared'" in end(events).cause
    assert await case.services.secret_keys(case.org) == ["shared"]


def places(folder: Path) -> set[str]:
    """The files below *folder* that contain the canary, in UTF-8 or escaped as in JSON."""
    forms = [form.encode() for form in (CANARY, json.dumps(CANARY)[1:-1], "canary-8a1f")]
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    }


async def all_answers(case: Case) -> str:
    """The answers of the services about operations, plans, stacks and resources, as text."""
    applier, stack = case.services.peers["applier"], case.services.peers["stack"]
    stub, stack_stub = ApplierServiceStub(applier.channel), StackServiceStub(stack.channel)
    page = await applier.call(stub.ListOperations, applier_pb2.ListOperationsRequest(page_size=500))
    plans = await stack.call(stack_stub.ListPlans, stack_pb2.ListPlansRequest(page_size=500))
    stacks = await stack.call(stack_stub.ListStacks, stack_pb2.ListStacksRequest())
    assert page.operations
    assert plans.plans
    answers = [str(each) for each in (page, plans, stacks, await case.look())]
    answers += [str(await case.services.stored_plan(plan.id)) for plan in plans.plans]
    for operation in page.operations:
        answers += [str(event) async for event in case.watch(operation.id)]
    return "\n".join(answers)


@pytest.mark.parametrize("platform", [rare("services.drivers"), "tests.crash.echoing"])
async def test_the_canary_is_nowhere(tmp_path: Path, platform: str) -> None:
    """After an apply that succeeds, one that is rolled back, and three whose applier dies."""
    states = []
    async with crashing(tmp_path, modules={"platform": platform}) as world:
        case = await world.case_with("")
        await put_secrets(case, {"ours": "2"})
        plan = await case.services.plan(FRESH, stack="s", org=case.org, secret_keys=sorted(GIVEN))
        await world.applier()
        streamed = [await case.apply(FRESH, secrets=GIVEN), await case.apply(REFUSED, secrets=GIVEN)]
        states += [end(events).state for events in streamed]
        await world.processes.kill("applier")
        for failpoint, package in (("after_send", FRESH), ("after_rollback", REFUSED), ("after_record", REFUSED)):
            await world.applier(failpoint)
            assert await world.apply_and_die(case, package, secrets=GIVEN)
            await world.applier()
            states.append((await world.settled()).state)
            answers = await all_answers(case)
            await world.processes.kill("applier")
        answers += f"{plan}{streamed}"
        assert states == [SUCCEEDED, ROLLED_BACK, ROLLED_BACK, ROLLED_BACK, ROLLED_BACK]
        assert ("[secret]" in answers) == (platform != "services.drivers")
        assert "canary" not in answers
        # Checked with open databases, too, as their write-ahead logs exist only then.
        assert places(tmp_path) == set()
    assert places(tmp_path) == set()
    assert {f"{name}.log" for name in PORTS} <= {path.name for path in tmp_path.iterdir()}
    assert {"stack.db", "platform.db"} <= {path.name for path in tmp_path.iterdir()}


def test_a_canary_would_be_found(tmp_path: Path) -> None:
    for name, planted in (("a.db", CANARY), ("b.log", json.dumps({"message": CANARY})), ("c", "nothing")):
        (tmp_path / name).write_bytes(b"\0" + planted.encode())
    assert places(tmp_path) == {"a.db", "b.log"}
