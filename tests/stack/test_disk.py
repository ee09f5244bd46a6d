"""A disk that is full or cannot be written: calls fail, nothing is half written, and calls work again afterwards."""

import asyncio
import resource
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlite_utils
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from sqlite_utils.migrations import Migrations

from services.core.errors import ServiceUnavailable
from services.sqlite.database import Database
from tests.stack.process import process
from tests.stack.service import entry

SCHEMA = Migrations("notes")

T = TypeVar("T")


@SCHEMA()
def notes(db: sqlite_utils.Database) -> None:
    db.execute("CREATE TABLE notes (text TEXT NOT NULL)")


def note(db: sqlite_utils.Database) -> None:
    db.execute("INSERT INTO notes VALUES (?)", ["x" * 100_000])


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "notes.db", SCHEMA)
    yield database
    database.close()


class Inline(Executor):
    """An executor that runs work in the thread that submits it."""

    def submit(self, work: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **named))
        except Exception as error:
            done.set_exception(error)
        return done


async def test_a_database_works_without_a_thread_of_its_own(tmp_path: Path) -> None:
    database = Database(tmp_path / "notes.db", SCHEMA, Inline())
    threads = await asyncio.gather(*(database.write(lambda db: threading.get_ident()) for _ in range(2)))
    assert threads == [threading.get_ident()] * 2
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await database.read(lambda db: db.execute("SELECT * FROM elsewhere"))
    await database.write(note)
    database.close()
    again = Database(tmp_path / "notes.db", SCHEMA, Inline())
    assert await again.read(lambda db: db.table("notes").count) == 1
    again.close()


@pytest.mark.parametrize(
    ("broken", "repaired", "problem"),
    [
        ("PRAGMA max_page_count = 10", "PRAGMA max_page_count = 1000000", "database or disk is full"),
        ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "attempt to write a readonly database"),
    ],
)
async def test_a_database_that_cannot_be_written_reports_it_until_it_can(
    database: Database, tmp_path: Path, broken: str, repaired: str, problem: str
) -> None:
    await database.read(lambda db: db.execute(broken).fetchall())

    for _ in range(2):
        with pytest.raises(ServiceUnavailable) as raised:
            await database.write(note)
        assert raised.value.metadata == {
            "service": "notes",
            "address": str(tmp_path / "notes.db"),
            "problem": problem,
            "answered": "true",
        }
    assert await database.read(lambda db: db.table("notes").count) == 0

    await database.read(lambda db: db.execute(repaired).fetchall())
    await database.write(note)
    assert await database.read(lambda db: db.table("notes").count) == 1


async def test_a_database_locked_by_another_process_reports_it(database: Database, tmp_path: Path) -> None:
    await database.read(lambda db: db.execute("PRAGMA busy_timeout = 1").fetchall())
    other = sqlite3.connect(tmp_path / "notes.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(ServiceUnavailable) as raised:
        await database.write(note)

    assert raised.value.metadata["problem"] == "database is locked"
    other.execute("ROLLBACK")
    other.close()
    await database.write(note)


async def test_an_error_in_sql_is_not_reported_as_a_disk_failure(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await database.write(lambda db: db.execute("INSERT INTO nowhere VALUES (1)"))
    with pytest.raises(sqlite3.IntegrityError):
        await database.write(lambda db: db.execute("INSERT INTO notes VALUES (NULL)"))

    await database.write(note)


@pytest.mark.slow
async def test_appliers_get_an_error_while_the_store_cannot_write_and_continue_afterwards(tmp_path: Path) -> None:
    """A limit on the size of files simulates a full disk: nothing more is written, and stored data can be read."""
    async with process(tmp_path) as (server, client):
        begun = await client.begin("prod", steps=3, seconds=600)
        await client.advance(begun, [StepRecord(step=0, state=StepState.STEP_STATE_DONE)], seqs=[2], done_count=1)
        before = await client.operation(begun.operation)

        unlimited = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        for write in (
            client.advance(begun, [StepRecord(step=1, state=StepState.STEP_STATE_DONE)], seqs=[3]),
            client.renew(begun),
            client.record(begun, [entry("one")]),
            client.begin("other"),
            client.create("another"),
        ):
            with pytest.raises(ServiceUnavailable) as raised:
                await write
            assert raised.value.metadata == {
                "service": "stack",
                "address": str(tmp_path / "stack.db"),
                "problem": "disk I/O error",
                "answered": "true",
            }
        assert await client.operation(begun.operation) == before
        assert [event.seq for event in (await client.events(begun.operation)).events] == [1, 2]

        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, unlimited)
        await client.advance(begun, [StepRecord(step=1, state=StepState.STEP_STATE_DONE)], seqs=[3], done_count=2)
        assert (await client.operation(begun.operation)).done_count == 2
        assert (await client.record(begun, [entry("one")])).generation == 1
