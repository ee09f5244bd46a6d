"""What the journal of an apply costs, with fsync and without, beside plain inserts of the same rows."""

import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import sqlite_utils
from pkger.model.v1 import operation_pb2

from bench.figures import Figure, Seconds, seconds
from services.core.model import InventoryEntry, Key, OperationKind, Origin, Target
from services.engine.operation import OperationState
from services.engine.step_life import StepRecord, StepState
from stack_svc import endings, journal
from stack_svc.endings import Ending, Record
from stack_svc.events import Event
from stack_svc.journal import Beginning, Begun
from stack_svc.leases import SECOND, machine_clock
from stack_svc.plans import NewPlan
from stack_svc.schema import MIGRATIONS
from stack_svc.stacks import Named

T = TypeVar("T")

BATCH = 500
"""Steps in one write, as the embedded platform takes them."""

_NAME = "operations/bench"
_PLAN_BYTES_PER_STEP = 500
_TABLES = ("stacks", "operations", "plans", "plan_bodies", "steps", "events", "inventory")


def journaling(step_count: int) -> list[Figure]:
    """
    Write the journal of an apply of *step_count* creates as an applier does, but by calls instead of requests.

    Intents and outcomes of each batch are transactions of their own, and so are beginning, start and end.
    """
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        safe, unsafe, plain = (Path(folder, name) for name in ("safe.db", "unsafe.db", "plain.db"))
        with_fsync = _journalled(_opened(safe, "FULL"), step_count)
        without = _journalled(_opened(unsafe, "OFF"), step_count)
        inserts, rows = _inserted(safe, _opened(plain, "FULL"))
    return [
        Figure("journal of an apply", f"{step_count:,} creates", seconds(with_fsync)),
        Figure("  without fsync", "", seconds(without)),
        Figure(f"  plain inserts of the same {rows:,} rows, one transaction", "", seconds(inserts)),
        Figure(
            "  ratio to plain inserts, with and without fsync",
            "",
            f"{with_fsync / inserts:.1f}, {without / inserts:.1f}",
        ),
    ]


def _journalled(db: sqlite_utils.Database, step_count: int) -> Seconds:
    batches = [range(first, min(first + BATCH, step_count)) for first in range(0, step_count, BATCH)]
    records = [(_records(batch, StepState.INTENT), _records(batch, StepState.DONE)) for batch in batches]
    # The first event is told before the first batch, the last one after all of them.
    events = [_event(2 + number, batch) for number, batch in enumerate(batches)]
    record = Record(_entries(step_count), ["bench.yml"], True)
    last = _event(2 + len(batches))
    ending = Ending(OperationState.SUCCEEDED, record, 0, "", lambda generation: last)
    started = time.perf_counter()
    begun = _transact(db, lambda: journal.begin(db, _beginning(), machine_clock()))
    assert isinstance(begun, Begun)
    token, stack = begun.lease.token, begun.stack.record.id
    _transact(db, lambda: journal.start(db, _NAME, token, _plan(stack, step_count), _event(1), machine_clock()))
    for (intents, outcomes), event in zip(records, events, strict=True):
        _advance(db, token, intents, [])
        _advance(db, token, outcomes, [event])
    _transact(db, lambda: endings.finish(db, stack, token, ending, machine_clock()))
    taken = time.perf_counter() - started
    db.close()
    return taken


def _advance(db: sqlite_utils.Database, token: int, records: list[StepRecord], events: list[Event]) -> None:
    _transact(db, lambda: journal.advance(db, _NAME, token, records, events, False, False, "", machine_clock()))


def _inserted(source: Path, db: sqlite_utils.Database) -> tuple[Seconds, int]:
    """Seconds that it takes to insert all rows of *source* into the empty *db*, and their number."""
    original = _opened(source, "FULL")
    rows = {table: original.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}
    original.close()

    def insert() -> None:
        for table, found in rows.items():
            places = ",".join("?" * len(found[0]))
            db.conn.executemany(f"INSERT INTO {table} VALUES ({places})", found)

    started = time.perf_counter()
    _transact(db, insert)
    taken = time.perf_counter() - started
    db.close()
    return taken, sum(map(len, rows.values()))


def _opened(path: Path, synchronous: str) -> sqlite_utils.Database:
    """A store, set up as ``services.database`` does but for *synchronous*."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=WAL", f"synchronous={synchronous}", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")
    db = sqlite_utils.Database(connection)
    MIGRATIONS.apply(db)
    return db


def _transact(db: sqlite_utils.Database, work: Callable[[], T]) -> T:
    db.execute("BEGIN IMMEDIATE")
    result = work()
    db.conn.commit()
    return result


def _beginning() -> Beginning:
    return Beginning(_NAME, Named(Target(), "bench"), True, OperationKind.APPLY, "bench", 600 * SECOND)


def _plan(stack: str, step_count: int) -> NewPlan:
    body = b"\0" * (_PLAN_BYTES_PER_STEP * step_count)
    return NewPlan(
        "plans/bench",
        stack,
        "bench",
        Target(),
        "sha256:bench",
        0,
        OperationKind.APPLY,
        step_count,
        message=b"",
        body=body,
        content=b"",
    )


def _records(steps: range, state: StepState) -> list[StepRecord]:
    return [StepRecord(step, state, "" if state is StepState.INTENT else f"{step:016x}") for step in steps]


def _event(seq: int, steps: range = range(0)) -> Event:
    event = operation_pb2.OperationEvent(operation=_NAME, seq=seq)
    event.steps_ended.outcomes.extend(
        operation_pb2.StepOutcome(step=step, done=operation_pb2.StepDone(resource_id=f"{step:016x}")) for step in steps
    )
    return Event(seq, event.SerializeToString())


def _entries(count: int) -> list[InventoryEntry]:
    label = Key("Label", "label-0")
    return [
        InventoryEntry(Key("Bucket", f"bucket-{step}"), f"{step:016x}", Origin.CREATED, (label,))
        for step in range(count)
    ]
