"""The store of an earlier version: opened by this one, nothing is lost."""

import sqlite3
from pathlib import Path

import pytest
import sqlite_utils
from pkger.model.v1 import plan_pb2
from pkger.stack.v1.journal_pb2 import StepRecord, StepState

from services.core.errors import LeaseLost, StackLeased
from services.core.model import Origin
from services.database import Database
from services.rpc.convert.objects import entries_from_pb
from stack_svc.schema import MIGRATIONS
from tests.stack.service import Begun, Clock, a_plan, entry, stack_service

FIRST_JOURNAL = "nameless_stacks"
"""The first migration that databases of version 0.1.0 lack."""


def old_store(path: Path, clock: Clock) -> None:
    """A store from before there was a journal, with two stacks, one of which somebody works on."""
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
    assert after == before


async def test_an_old_stack_is_worked_on_and_removed_like_any_other(tmp_path: Path, clock: Clock) -> None:
    old_store(tmp_path / "stack.db", clock)
    async with stack_service(tmp_path / "stack.db", clock) as service:
        stack = await service.get_named("prod")
        assert (stack.generation, list(stack.sources), stack.description) == (3, ["a.yml"], "text")
        assert entries_from_pb(stack.resources) == (
            entry("one", labels=["l"]),
            entry("two", origin=Origin.ADOPTED, labels=["l"]),
        )

        begun = await service.begin("prod")
        assert begun.token == 8
        assert (await service.record(begun, [entry("two")])).generation == 4
        await service.remove(await service.begin("prod"))

        assert await service.owners([("Bucket", "id-one"), ("Bucket", "id-two")]) == []


async def test_a_lease_from_before_lasts_its_time_and_can_only_run_out(tmp_path: Path, clock: Clock) -> None:
    """Its operation is in no journal, so its end cannot be written; the applier has ended with the old version."""
    old_store(tmp_path / "stack.db", clock)
    async with stack_service(tmp_path / "stack.db", clock) as service:
        with pytest.raises(StackLeased):
            await service.begin("first")
        old = await service.get("000000000000000b")
        with pytest.raises(LeaseLost):
            await service.record(Begun("op-1", old, 7, old.create_time, True), [entry("one")])
        clock.forward(11)

        heir = await service.begin("first")

        assert (heir.stack.id, heir.token, heir.is_pending) == ("000000000000000b", 8, True)


async def test_the_plans_of_old_operations_get_names_and_states(tmp_path: Path, clock: Clock) -> None:
    """One is finished, one was cut off, one never had a plan."""
    connection = sqlite3.connect(tmp_path / "stack.db")
    MIGRATIONS.apply(sqlite_utils.Database(connection), stop_before="plans")
    operation = (
        "INSERT INTO operations (name, stack, nameless, stack_name, platform, org, kind, state, holder, token,"
        " step_count, last_seq, create_time, update_time)"
        " VALUES (?, '0a', ?, ?, 'embedded', 'default', ?, ?, 'me', ?, 3, 1, 5, 5)"
    )
    old = a_plan(3)
    old.name, old.digest, old.base_generation = "", "sha256:00", 7
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
        assert (ended.stack_id, ended.stack_name, ended.ends_stack) == ("0a", "prod", True)
        assert (ended.digest, ended.base_generation, ended.HasField("expire_time")) == ("sha256:00", 7, False)
        assert len((await service.plan("plans/0")).steps) == 3

        heir, claimed = await service.claim("operations/1")
        named = plan_pb2.Plan.FromString(claimed.plan)
        assert (named.name, len(named.steps)) == ("plans/1", 3)
        await service.advance(heir, [StepRecord(step=2, state=StepState.STEP_STATE_DONE)], seqs=[2])
        await service.abandon(heir)
        assert (await service.plan("plans/1")).state == plan_pb2.PLAN_STATE_APPLIED
