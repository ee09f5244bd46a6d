"""Stores of earlier versions: opened by this version, they lose no data that is needed."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlite_utils
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from pkger.model.v1 import operation_pb2, plan_pb2

from services.core.errors import OperationNotFound, StackLeased, StackNotFound
from services.core.model import Origin
from services.sqlite.database import Database
from stack_svc.leases import LONGEST
from stack_svc.sqlite.frozen import messages as frozen
from stack_svc.sqlite.schema import MIGRATIONS
from tests.stack.service import Begun, Client, Clock, entry, stack_service

FIRST_JOURNAL = "nameless_stacks"
"""The first migration that databases of version 0.1.0 lack."""


def old_store(path: Path, clock: Clock) -> None:
    """A store of a version without a journal, with two stacks, one of which is leased."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys=ON")
    MIGRATIONS.apply(sqlite_utils.Database(connection), stop_before=FIRST_JOURNAL)
    stack = (
        "INSERT INTO stacks (id, platform, org, name, description, config, state, generation, sources, lease_holder,"
        " lease_operation, lease_token, lease_expires, create_time, update_time)"
        " VALUES (?, 'embedded', 'default', ?, 'text', '{}', ?, 3, '[\"a.yml\"]', 'me', 'op-1', 7, ?, ?, ?)"
    )
    for stack_id, name, state, expires in (
        ("000000000000000a", "prod", "ACTIVE", 0),
        ("000000000000000b", "first", "PENDING", clock.now + 10_000_000),
    ):
        connection.execute(stack, [stack_id, name, state, expires, clock.now, clock.now])
    connection.executemany(
        "INSERT INTO inventory (stack, kind, name, platform, org, remote_id, origin, associations)"
        " VALUES ('000000000000000a', 'Bucket', ?, 'embedded', 'default', ?, ?, '[[\"Label\", \"l\"]]')",
        [("one", "id-one", "created"), ("two", "id-two", "adopted")],
    )
    connection.execute("INSERT INTO requests VALUES ('r-1', 'digest', '000000000000000a', ?)", [clock.now + 1])
    connection.commit()
    connection.close()


def content(path: Path, *tables: str) -> dict[str, list[tuple[object, ...]]]:
    connection = sqlite3.connect(path)
    found = {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in tables}
    connection.close()
    return found


def test_every_row_is_kept_as_it_was(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "stack.db"
    old_store(path, clock)
    tables = ("stacks", "inventory", "requests")
    before = content(path, *tables)
    assert len(before["inventory"]) == 2

    Database(path, MIGRATIONS).close()

    after = content(path, *tables)
    assert after.pop("inventory") == [(*row, "PRESENT", "{}") for row in before.pop("inventory")]
    # Without the column of settings, which was never written.
    assert after.pop("stacks") == [
        (*row[:5], *row[7:9], *row[13:], 2 if row[3] == "prod" else 0, 0, "", "{}", row[6], "[]", 1)
        for row in before["stacks"]
    ]
    # The token of the lease before is unknown, so the lease gets its own.
    leases = [(row[0], *row[9:12], LONGEST, row[12], row[11]) for row in before.pop("stacks")]
    assert content(path, "leases")["leases"] == leases
    assert after == before


async def test_an_old_stack_is_applied_and_removed_like_any_other(tmp_path: Path, clock: Clock) -> None:
    old_store(tmp_path / "stack.db", clock)
    async with stack_service(tmp_path / "stack.db", clock) as service:
        stack = await service.get_named("prod")
        assert (stack.generation, list(stack.sources), stack.description) == (3, ["a.yml"], "text")
        assert await service.resources(stack.id) == (
            entry("one", labels=["l"]),
            entry("two", origin=Origin.ADOPTED, labels=["l"]),
        )

        begun = await service.begin("prod")
        assert begun.token == clock.now
        assert (await service.record(begun, [entry("two")])).generation == 4
        await service.remove(await service.begin("prod"))

        assert await service.owners([("Bucket", "id-one"), ("Bucket", "id-two")]) == []


async def test_an_old_lease_can_only_expire(tmp_path: Path, clock: Clock) -> None:
    """Its operation is in no journal, so its end cannot be written; its applier ended with the old version."""
    old_store(tmp_path / "stack.db", clock)
    async with stack_service(tmp_path / "stack.db", clock) as service:
        with pytest.raises(StackLeased):
            await service.begin("first")
        old = await service.get("000000000000000b")
        with pytest.raises(OperationNotFound):
            await service.record(Begun("op-1", old, 7, old.create_time, True), [entry("one")])
        clock.forward(11)

        heir = await service.begin("first")

        assert (heir.stack.id, heir.token, heir.is_pending) == ("000000000000000b", clock.now, True)


async def test_the_plans_of_old_operations_get_names_and_states(tmp_path: Path, clock: Clock) -> None:
    """One is finished, one was interrupted, one never had a plan."""
    connection = sqlite3.connect(tmp_path / "stack.db")
    MIGRATIONS.apply(sqlite_utils.Database(connection), stop_before="plans")
    operation = (
        "INSERT INTO operations (name, stack, nameless, stack_name, platform, org, kind, state, holder, token,"
        " step_count, last_seq, create_time, update_time)"
        " VALUES (?, '0a', ?, ?, 'embedded', 'default', ?, ?, 'me', ?, 3, 1, 5, 5)"
    )
    steps = [
        {
            "number": number,
            "verb": 1,
            "undo": 1,
            "key": {"kind": "Bucket", "name": "b"},
            "new_spec_json": '{"name":"b"}',
        }
        for number in range(3)
    ]
    old = frozen.Plan(digest="sha256:00", base_generation=7, steps=steps)
    for number, row in enumerate(
        [(0, "prod", "UNINSTALL", "SUCCEEDED"), (1, "", "APPLY", "APPLYING"), (0, "prod", "APPLY", "FAILED")]
    ):
        connection.execute(operation, [f"operations/{number}", *row, number])
        if number < 2:
            body = old.SerializeToString()
            connection.execute("INSERT INTO operation_plans VALUES (?, ?)", [f"operations/{number}", body])
    connection.execute(
        "INSERT INTO stacks (id, platform, org, name, description, state, lease_token, create_time, update_time)"
        " VALUES ('0a', 'embedded', 'default', '', '', 'NAMELESS', 2, 5, 5)"
    )
    connection.commit()
    connection.close()
    async with stack_service(tmp_path / "stack.db", clock) as service:
        plans = {plan.name: plan for plan in (await service.plans()).plans}
        assert {name: (plan.state, plan.operation) for name, plan in plans.items()} == {
            "plans/0": (plan_pb2.PLAN_STATE_APPLIED, "operations/0"),
            "plans/1": (plan_pb2.PLAN_STATE_APPLYING, "operations/1"),
        }
        ended = plans["plans/0"]
        assert (ended.stack_name, ended.kind) == ("prod", plan_pb2.OPERATION_KIND_UNINSTALL)
        # The older version had no choice.
        assert ended.then == plan_pb2.AFTER_UNINSTALL_DELETE
        assert plans["plans/1"].then == plan_pb2.AFTER_UNINSTALL_UNSPECIFIED
        assert (ended.digest, ended.base_generation, ended.HasField("expire_time")) == ("sha256:00", 7, False)
        assert [step.number for step in await steps_of(service, "plans/0")] == [0, 1, 2]

        heir, claimed = await service.claim("operations/1")
        kept = journal_pb2.PlanBody.FromString(claimed.body).steps
        assert (claimed.plan.name, len(kept), kept[2].create.display_name) == ("plans/1", 3, "b")
        await service.advance(heir, [StepRecord(step=2, state=StepState.STEP_STATE_DONE)], seqs=[2])
        await service.abandon(heir)
        with pytest.raises(StackNotFound):
            await service.get("0a")
        assert (await service.plan("plans/1")).state == plan_pb2.PLAN_STATE_APPLIED


FINISHED_STACK, FINISHED_OPERATION = "c680633fcdd1ea6b", "operations/8caf7f98f713d724"
PENDING_PLAN = "plans/8cd4c5d2d8bcfe91"
CUT_OFF, CUT_OFF_FIRST, CUT_OFF_STACKLESS, BLOCKED = (
    f"operations/{name}" for name in ("b277a3992a32759d", "3a0febd39ba3f1b9", "5db20acd9fdb46a3", "1df9f2230323474b")
)


@pytest.fixture
async def opened(tmp_path: Path, clock: Clock) -> AsyncIterator[Client]:
    """
    The store of which ``stack-ebdd516.sql`` is a dump, at a time when all of its leases have expired.

    The services of commit ebdd516 wrote it, with the packages of ``tests/applier/packages.py`` and a driver that waits
    in the middle of three applies.
    """
    connection = sqlite3.connect(tmp_path / "stack.db")
    connection.executescript((Path(__file__).parent / "stack-ebdd516.sql").read_text())
    clock.now = 1 + max(connection.execute("SELECT MAX(lease_expires), MAX(update_time) FROM stacks").fetchone())
    connection.close()
    async with stack_service(tmp_path / "stack.db", clock) as service:
        yield service


async def steps_of(service: Client, plan: str) -> list[plan_pb2.Step]:
    parts = await service.parts(plan, plan_pb2.PLAN_VIEW_STEPS)
    return [step for part in parts for step in part.steps.steps]


async def record_of(service: Client, plan: str) -> tuple[list[str], list[str]]:
    """Names of the entries that a plan changes and removes in the record."""
    records = [part.record for part in await service.parts(plan, plan_pb2.PLAN_VIEW_RECORD)]
    return (
        [entry.key.name for record in records for entry in record.entries],
        [key.name for record in records for key in record.removed],
    )


async def test_a_finished_stack_of_ebdd516_is_there_with_its_events(opened: Client) -> None:
    stack = await opened.get(FINISHED_STACK)
    assert (stack.name, stack.generation, stack.resource_count) == ("s", 1, 6)
    assert len(await opened.resources(FINISHED_STACK)) == 6

    operation = await opened.operation(FINISHED_OPERATION)

    assert (operation.state, operation.done_count) == (operation_pb2.OPERATION_STATE_SUCCEEDED, 10)
    assert operation.end_time == operation.update_time
    events = (await opened.events(FINISHED_OPERATION)).events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert (events[0].accepted.plan, events[0].accepted.counts.creates) == (operation.plan, 6)
    assert events[-1].finished == operation.result
    assert (operation.result.state, operation.result.generation) == (operation.state, stack.generation)
    assert len(await steps_of(opened, operation.plan)) == 10
    assert await record_of(opened, operation.plan) == ([], [])


async def test_a_stored_plan_of_ebdd516_is_shown_and_run(opened: Client) -> None:
    views = (plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_DIFFS, plan_pb2.PLAN_VIEW_SUMMARY)
    parts = await opened.parts(PENDING_PLAN, *views)
    assert [part.WhichOneof("part") for part in parts] == ["header", "steps"]
    header, steps = parts[0].header, parts[1].steps.steps
    assert (header.state, header.kind, header.stack_id) == (
        plan_pb2.PLAN_STATE_PENDING,
        plan_pb2.OPERATION_KIND_APPLY,
        FINISHED_STACK,
    )
    counts = plan_pb2.StepCounts(creates=3, updates=1, deletes=4, attaches=2, detaches=4, secrets=2, irreversible=1)
    assert (header.counts, len(steps)) == (counts, 16)
    secret, other = (step.put_secret for step in steps[:2])
    assert [(each.key, each.overwrites) for each in (secret, other)] == [("new", False), ("there", True)]
    update = next(step.update for step in steps if step.HasField("update"))
    assert (update.key.name, update.old_display_name, update.display_name) == ("red", "red", "crimson")
    assert update.resource_id
    assert {step.delete.key.name for step in steps if step.HasField("delete")} == {"raw", "green", "mem", "roll"}
    changed, removed = await record_of(opened, PENDING_PLAN)
    assert (changed, removed) == (["cpu", "disk", "blue", "region"], ["raw", "mem", "green", "roll"])

    begun = await opened.begin_planned(PENDING_PLAN)

    assert begun.plan.name == PENDING_PLAN
    assert list(journal_pb2.PlanBody.FromString(begun.body).steps) == list(steps)
    heir = Begun(begun.operation.name, begun.stack, begun.token, begun.expire_time, begun.is_pending)
    await opened.start(heir, stored_plan=PENDING_PLAN)
    assert (await opened.operation(heir.operation)).step_count == 16


@pytest.mark.parametrize(
    ("operation", "kept", "changed"),
    [(CUT_OFF, 6, 4), (CUT_OFF_FIRST, 0, 6), (CUT_OFF_STACKLESS, 0, 0)],
)
async def test_an_operation_of_ebdd516_that_was_cut_off_ends(
    opened: Client, operation: str, kept: int, changed: int
) -> None:
    assert operation in await opened.abandoned()
    [first, *_] = (await opened.events(operation)).events

    heir, claimed = await opened.claim(operation)

    body = journal_pb2.PlanBody.FromString(claimed.body)
    assert (len(body.steps), claimed.plan.name) == (claimed.operation.step_count, claimed.operation.plan)
    assert all(step.WhichOneof("change") for step in body.steps)
    accepted = first.accepted
    assert (accepted.plan, accepted.digest, accepted.counts) == (
        claimed.plan.name,
        claimed.plan.digest,
        claimed.plan.counts,
    )
    assert any(record.state == StepState.STEP_STATE_INTENT for record in claimed.steps)
    assert (len(await opened.resources(heir.stack.id)), len(body.record.entries)) == (kept, changed)
    await opened.advance(heir, rollback=True, cause="its applier died")
    await opened.abandon(heir)
    assert (await opened.operation(operation)).result.state == operation_pb2.OPERATION_STATE_ROLLED_BACK


async def test_a_blocked_operation_of_ebdd516_is_recovered(opened: Client) -> None:
    operation = await opened.operation(BLOCKED)
    assert operation.blocked_reason == operation_pb2.BLOCKED_REASON_CONFLICT
    [blocked] = operation.blocked_steps
    assert (blocked.step.update.key.name, blocked.reason) == ("roll", operation.blocked_reason)
    assert blocked.step.update.resource_id == blocked.found_resource_id
    assert len(blocked.decisions) == 4
    [listed] = (await opened.operations(states=[operation_pb2.OPERATION_STATE_BLOCKED])).operations
    assert (listed.blocked_step_count, len(listed.blocked_steps)) == (1, 0)
    events = (await opened.events(BLOCKED)).events
    assert [event.WhichOneof("event") for event in events] == [
        "accepted",
        "stage_started",
        "steps_ended",
        "steps_ended",
        "finished",
    ]
    assert events[-1].finished.state == operation_pb2.OPERATION_STATE_BLOCKED

    heir, claimed = await opened.claim(BLOCKED)
    assert claimed.operation.blocked_steps == operation.blocked_steps
    await opened.advance(heir, [StepRecord(step=0, state=StepState.STEP_STATE_GIVEN_UP)], seqs=[claimed.last_seq + 1])


def test_owners_are_migrated_and_removed_with_their_stack(tmp_path: Path) -> None:
    """Their table was ordered by its primary key before."""
    path = tmp_path / "stack.db"
    connection = sqlite3.connect(path)
    MIGRATIONS.apply(sqlite_utils.Database(connection), stop_before="owners_by_rowid")
    connection.executemany(
        "INSERT INTO stacks (id, platform, org, name, description, state, create_time, update_time)"
        " VALUES (?, 'embedded', 'default', ?, '', 'ACTIVE', 5, 5)",
        [("0a", "prod"), ("0b", "test")],
    )
    owned = [
        ("embedded", "default", "i:Bucket:1", "0a", "one", "", 5),
        ("embedded", "default", "n:Bucket:two", "0b", "two", "operations/1", 6),
    ]
    connection.executemany("INSERT INTO owners VALUES (?, ?, ?, ?, ?, ?, ?)", owned)
    connection.commit()
    connection.close()
    database = Database(path, MIGRATIONS)
    assert content(path, "owners") == {"owners": owned}
    database._db.execute("DELETE FROM stacks WHERE id = '0a'")
    assert content(path, "owners") == {"owners": owned[1:]}
    database.close()


def test_rows_of_operations_without_a_stack_are_stackless(tmp_path: Path) -> None:
    """They were called NAMELESS before, although stacks of users may have no name, too."""
    path = tmp_path / "stack.db"
    connection = sqlite3.connect(path)
    MIGRATIONS.apply(sqlite_utils.Database(connection), stop_before="stackless_operations")
    connection.executemany(
        "INSERT INTO stacks (id, platform, org, name, description, state, create_time, update_time)"
        " VALUES (?, 'embedded', 'default', ?, '', ?, 5, 5)",
        [("0a", "prod", "ACTIVE"), ("0b", "first", "PENDING"), ("0c", "", "NAMELESS")],
    )
    connection.executemany(
        "INSERT INTO operations (name, stack, nameless, stack_name, platform, org, kind, state, holder, token,"
        " create_time, update_time) VALUES (?, ?, ?, '', '', '', 'APPLY', 'APPLYING', '', 1, 1, 1)",
        [("operations/1", "0a", 0), ("operations/2", "0c", 1)],
    )
    connection.execute("INSERT INTO leases VALUES ('0c', 'me', 'operations/2', 1, 5, 5, 0)")
    connection.commit()
    connection.close()

    database = Database(path, MIGRATIONS)

    rows = database._db.execute("SELECT id, state FROM stacks ORDER BY id").fetchall()
    assert rows == [("0a", "ACTIVE"), ("0b", "PENDING"), ("0c", "STACKLESS")]
    assert database._db.execute("SELECT stackless FROM operations ORDER BY name").fetchall() == [(0,), (1,)]
    assert database._db.execute("SELECT stack FROM leases").fetchall() == [("0c",)]
    database.close()
