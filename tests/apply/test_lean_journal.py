"""
Counts the writes of an apply to its journal, which are the same on every host (docs/reference/engine.md, "Journal").
"""

import math
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from pkger.journal.v1 import journal_pb2

from bench.package import Mix, package_text
from services.drivers.embedded.kinds import EMBEDDED
from tests.apply.packages import EVERY_KIND, text
from tests.cluster import Calls, Cluster, cluster
from tests.databases import written
from tests.transport import InMemory

__all__ = ["written"]

OBJECTS = 300

MANY = 1200
"""Objects of a package whose events would be above ``LARGEST_EVENT`` if they had four bytes more for each step."""

LARGEST_EVENT = 4096
"""Most bytes of an event without the steps and ids of its batch."""


@pytest.fixture
async def services(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Services with an empty store and an empty cache of documents, as the tests count what they write and read."""
    async with cluster(tmp_path, transport=InMemory()) as running:
        yield running


def rows(folder: Path) -> list[tuple[journal_pb2.StoredRecords, journal_pb2.StoredEvents]]:
    """The rows of the only operation in the store, in order."""
    with closing(sqlite3.connect(folder / "stack.db")) as connection:
        found = connection.execute("SELECT records, events FROM journal ORDER BY position").fetchall()
    return [
        (journal_pb2.StoredRecords.FromString(records), journal_pb2.StoredEvents.FromString(events))
        for records, events in found
    ]


async def test_a_batch_is_two_rows_of_step_numbers_and_ids(services: Cluster, tmp_path: Path, calls: Calls) -> None:
    """Intents and outcomes; the only other rows are the first and the last."""
    await services.apply(package_text(OBJECTS, Mix.SMALL), stack="s")

    written, batches = rows(tmp_path), calls.count("Mutate")
    assert batches > 1
    assert len(written) <= 2 * batches + 2
    assert all(not records.steps for records, _ in written), "events of creations need no further records"
    kinds = [event.WhichOneof("event") for _, events in written for event in events.events]
    assert {"accepted", "steps_sent", "steps_ended", "finished"} <= set(kinds)


async def test_an_apply_with_nothing_to_do_writes_no_more_than_its_operation(services: Cluster, tmp_path: Path) -> None:
    def counts() -> dict[str, int]:
        with closing(sqlite3.connect(tmp_path / "stack.db")) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {table: db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}

    package = text(*EVERY_KIND)
    await services.apply(package, stack="s")
    before = counts()
    await services.apply(package, stack="s")
    changed = {table for table, count in counts().items() if count != before[table]}
    assert changed == {"operations", "journal", "plans", "plan_headers", "plan_parts"}


async def test_an_apply_with_nothing_to_do_reads_no_inventory_but_for_its_plan(services: Cluster, calls: Calls) -> None:
    package = package_text(OBJECTS, Mix.SMALL)
    await services.apply(package, stack="s")
    calls.methods.clear()

    assert (await services.apply(package, stack="s")).no_change

    # For the planner, one page of the inventory for each 5,000 entries; at most two listings of the platform.
    assert calls.count("ListResources") <= 3
    assert calls.count("AdvanceOperation") == 0


async def test_a_batch_is_one_call_and_one_write_on_each_side(
    services: Cluster, calls: Calls, written: Counter[str]
) -> None:
    package = package_text(OBJECTS, Mix.SMALL)
    plan = await services.plan(package, stack="s", store=True)
    written.clear()

    events = [event async for event in services.apply_plan(plan.name, plan.digest)]
    assert events[-1].finished.counts.creates == OBJECTS

    steps = Counter(step.stage for step in plan.steps)
    batches = sum(math.ceil(count / EMBEDDED.max_batch_size) for count in steps.values())
    # The first call only shows the token.
    assert calls.count("Mutate") == batches + 1
    assert written["platform"] == batches + 1
    # Begin and finish; the intents of each batch, with the outcomes of the batch of the stage before.
    assert written["stack"] - calls.count("RenewLease") == batches + 2


async def test_events_are_small_but_for_steps_and_ids(services: Cluster, tmp_path: Path) -> None:
    await services.apply(package_text(MANY, Mix.MIXED), stack="s")
    events = [event for _, events in rows(tmp_path) for event in events.events]
    for event in events:
        if event.HasField("steps_sent"):
            event.steps_sent.ClearField("steps")
        if event.HasField("steps_ended"):
            event.steps_ended.ClearField("outcomes")
    assert max(event.ByteSize() for event in events) <= LARGEST_EVENT
