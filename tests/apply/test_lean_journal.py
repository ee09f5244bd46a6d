"""Counts of what an apply writes to its journal, which no host changes (docs/reference/engine.md, "Journal")."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pkger.journal.v1 import journal_pb2

from bench.package import Mix, package_text
from tests.cluster import Calls, Cluster

OBJECTS = 1200


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


async def test_an_apply_with_nothing_to_do_reads_no_inventory_but_for_its_plan(services: Cluster, calls: Calls) -> None:
    package = package_text(OBJECTS, Mix.SMALL)
    await services.apply(package, stack="s")
    calls.methods.clear()

    assert (await services.apply(package, stack="s")).no_change

    # For the planner, one page of the inventory for each 5,000 entries; at most two listings of the platform.
    assert calls.count("ListResources") <= 3
    assert calls.count("AdvanceOperation") == 0
