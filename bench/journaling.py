"""Measures the journal of an apply, with fsync and without, compared with plain inserts of the same rows."""

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

import sqlite_utils
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2

from bench.figures import Figure, Seconds, seconds
from services.core.model import InventoryEntry, Key, OperationKind, Origin, RecordChanges, Target
from services.engine.operation import OperationState
from services.system import machine_clock
from stack_svc.rules import finish, operations, plans
from stack_svc.rules.finish import FinishRequest, RecordOutcome
from stack_svc.rules.leases import SECOND
from stack_svc.rules.operations import Advance, BeginRequest, BeginResult, JournalWrite, Start, Writes
from stack_svc.rules.plans import NewPlan
from stack_svc.rules.requests import RequestId
from stack_svc.rules.stacks import NewStack
from stack_svc.sqlite.schema import MIGRATIONS
from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.plans import Part
from stack_svc.store.stacks import StackName
from stack_svc.store.store import Store

BATCH = 500
"""Steps in one write, as in a batch of the embedded platform."""

SIZES = (1, 64, 1000)
"""Steps in one write, to measure the cost of a write: a platform may take one step at a time."""

_NAME = "operation-bench"
_PLAN_BYTES_PER_STEP = 500
_TABLES = ("stacks", "leases", "operations", "plans", "plan_headers", "plan_parts", "journal", "inventory")


def journaling(step_count: int) -> list[Figure]:
    """
    Write the journal of an apply of *step_count* creates as an applier does, but without gRPC.

    Intents and outcomes of each batch are separate transactions, and so are beginning, start and end.
    """
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        safe, unsafe, plain = (Path(folder, name) for name in ("safe.db", "unsafe.db", "plain.db"))
        with_fsync = asyncio.run(_journalled(safe, step_count, BATCH))
        without = asyncio.run(_journalled(unsafe, step_count, BATCH, "OFF"))
        inserts, rows = _inserted(safe, _opened(plain))
        by_size = {
            size: asyncio.run(_journalled(Path(folder, f"{size}.db"), min(step_count, 2 * size + 500), size))
            for size in SIZES
        }
    figures = [
        Figure("journal of an apply", f"{step_count:,} creates", seconds(with_fsync)),
        Figure("  without fsync", "", seconds(without)),
        Figure("  plain inserts of the same rows, one transaction", f"{rows:,} rows", seconds(inserts)),
        Figure(
            "  ratio to plain inserts, with and without fsync",
            "",
            f"{with_fsync / inserts:.1f}, {without / inserts:.1f}",
        ),
    ]
    for size, taken in by_size.items():
        count = min(step_count, 2 * size + 500)
        figures.append(Figure(f"  in batches of {size:,}", f"{count:,} creates", f"{count / taken:,.0f} steps/s"))
    return figures


async def _journalled(path: Path, step_count: int, size: int, synchronous: str = "FULL") -> Seconds:
    """Seconds that the journal of an apply takes in a new store at *path*, in batches of *size* steps."""
    batches = [range(first, min(first + size, step_count)) for first in range(0, step_count, size)]
    # The first event precedes the first batch, the last one follows all of them.
    writes = [
        (_sent(2 * number, batch), _ended(2 * number + 1, batch)) for number, batch in enumerate(batches, start=1)
    ]
    record = RecordOutcome(RecordChanges(tuple(_entries(step_count))), ["bench.yml"], True)
    last = 2 + 2 * len(batches)
    ending = FinishRequest(last, b"", OperationState.SUCCEEDED, record, 0, "", _event(last))
    store = SqliteStore(path, machine_clock)
    if synchronous != "FULL":
        # Only this benchmark runs a store without fsync, so there is no setting for it.
        store._database._db.execute(f"PRAGMA synchronous={synchronous}")
    started = time.perf_counter()
    begun = await store.write(lambda tx: operations.begin(tx, _beginning()))
    assert isinstance(begun, BeginResult)
    token, plan = begun.lease.token, _plan(begun.stack.record.id, step_count)
    first = JournalWrite(1, b"", _events(_event(1)), [1])
    await store.write(lambda tx: plans.store_for(tx, plan, _NAME))
    start = Writes(Start(plan.id, plan.digest, first))
    await store.write(lambda tx: operations.advance(tx, _NAME, token, start))
    done = 0
    for intents, outcomes in writes:
        await _advance(store, token, intents, done)
        done += len(outcomes.steps)
        await _advance(store, token, outcomes, done)
    await store.write(lambda tx: finish.finish(tx, _NAME, token, ending))
    taken = time.perf_counter() - started
    await store.close()
    return taken


async def _advance(store: Store, token: int, write: JournalWrite, done: int) -> None:
    change = Advance((), (), done, seal=False, rollback=False, cause="")
    await store.write(lambda tx: operations.advance(tx, _NAME, token, Writes(advances=[(write, change)])))


def _inserted(source: Path, db: sqlite_utils.Database) -> tuple[Seconds, int]:
    """Seconds that it takes to insert all rows of *source* into the empty *db*, and their number."""
    original = _opened(source)
    rows = {table: original.execute(f"SELECT * FROM {table}").fetchall() for table in _TABLES}
    original.close()
    started = time.perf_counter()
    db.execute("BEGIN IMMEDIATE")
    for table, table_rows in rows.items():
        places = ",".join("?" * len(table_rows[0]))
        db.conn.executemany(f"INSERT INTO {table} VALUES ({places})", table_rows)
    db.conn.commit()
    taken = time.perf_counter() - started
    db.close()
    return taken, sum(map(len, rows.values()))


def _opened(path: Path) -> sqlite_utils.Database:
    """The file of a store, set up as ``services.sqlite.database`` does."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {setting}")
    db = sqlite_utils.Database(connection)
    MIGRATIONS.apply(db)
    return db


def _beginning() -> BeginRequest:
    named = StackName(Target(), "bench")
    return BeginRequest(_NAME, named, True, OperationKind.APPLY, "bench", 600 * SECOND, NewStack("0a"), RequestId())


def _plan(stack: str, step_count: int) -> NewPlan:
    return NewPlan(
        "plan-bench",
        stack,
        "bench",
        Target(),
        "sha256:bench",
        0,
        OperationKind.APPLY,
        step_count,
        package_digest="",
        creates_nameless_stack=False,
        baselines_digest="",
        rollback_of=0,
        message=b"",
        parts=(Part(0, b"\0" * (_PLAN_BYTES_PER_STEP * step_count), b""),),
    )


def _sent(seq: int, steps: range) -> JournalWrite:
    event = operation_pb2.OperationEvent(operation_id=_NAME, seq=seq)
    event.steps_sent.steps.extend(steps)
    return JournalWrite(seq, b"", _events(event), [seq], steps)


def _ended(seq: int, steps: range) -> JournalWrite:
    event = operation_pb2.OperationEvent(operation_id=_NAME, seq=seq)
    event.steps_ended.outcomes.extend(
        operation_pb2.StepOutcome(step=step, done=operation_pb2.StepDone(resource_id=f"{step:016x}")) for step in steps
    )
    return JournalWrite(seq, b"", _events(event), [seq], steps)


def _event(seq: int) -> operation_pb2.OperationEvent:
    return operation_pb2.OperationEvent(operation_id=_NAME, seq=seq, finished=operation_pb2.Finished())


def _events(event: operation_pb2.OperationEvent) -> bytes:
    return journal_pb2.StoredEvents(events=[event]).SerializeToString()


def _entries(count: int) -> list[InventoryEntry]:
    label = Key("Label", "label-0")
    return [
        InventoryEntry(Key("Bucket", f"bucket-{step}"), f"{step:016x}", Origin.CREATED, (label,))
        for step in range(count)
    ]
