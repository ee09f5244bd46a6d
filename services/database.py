"""One SQLite file behind one thread: whole transactions hop, not single statements."""

import asyncio
import fcntl
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlite_utils
from sqlite_utils.migrations import Migrations

T = TypeVar("T")

BUSY_SECONDS = 30.0
"""How long a transaction waits for one of another process on the same file."""


class Database:
    """
    A SQLite file in WAL mode, used by one thread of this process.

    Work is a function that gets a ``sqlite_utils.Database`` and runs within one transaction; it is committed when the
    function returns and undone when it raises. ``synchronous=FULL``: what was committed survives a power cut.
    """

    def __init__(self, path: Path, migrations: Migrations) -> None:
        """
        Open *path*, creating it and its folder when missing, and bring its schema up to date.

        Raises:
            OSError: The file cannot be opened, or is no such database.
        """
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.stem}")
        self._db = self._executor.submit(_open, path, migrations).result()

    async def write(self, work: Callable[[sqlite_utils.Database], T]) -> T:
        """Run *work* in a transaction that holds the write lock from its start (``BEGIN IMMEDIATE``)."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transact, "BEGIN IMMEDIATE", work)

    async def read(self, work: Callable[[sqlite_utils.Database], T]) -> T:
        """Run *work*, which only reads, on one consistent snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transact, "BEGIN", work)

    def close(self) -> None:
        """Wait for the work in hand and close the file."""
        self._executor.submit(self._db.conn.close).result()
        self._executor.shutdown()

    def _transact(self, begin: str, work: Callable[[sqlite_utils.Database], T]) -> T:
        connection = self._db.conn
        connection.execute(begin)
        try:
            result = work(self._db)
        except BaseException:
            connection.rollback()
            raise
        connection.commit()
        return result


def _open(path: Path, migrations: Migrations) -> sqlite_utils.Database:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may open one file at the same moment; one of them creates the schema.
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            database = sqlite_utils.Database(connection)
            migrations.apply(database)
        except sqlite3.DatabaseError as error:
            raise OSError(f"cannot use the database {path}: {error}") from error
    return database
