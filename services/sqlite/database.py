"""A SQLite file behind one executor, which runs whole transactions, not single statements."""

import asyncio
import fcntl
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import sqlite_utils
from sqlite_utils.migrations import Migrations

from services.core.errors import ServiceUnavailable
from services.private_files import open_private, private_file, private_folder, restrict
from services.sqlite.schema import OtherSchema, check_origin, has_tables

T = TypeVar("T")

LONGEST_LOG = 16 * 1024 * 1024
"""Maximal size of the write-ahead log after a checkpoint, in bytes."""

BUSY_SECONDS = 30.0
"""Seconds that a transaction waits for one of another process on the same file."""

_ENVIRONMENT_ERRORS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
"""Primary result codes that are caused by the machine, not by our SQL (https://www.sqlite.org/rescode.html)."""


class Database:
    """
    A SQLite file in WAL mode, used by one transaction of this process at a time.

    Work is a function that gets a ``sqlite_utils.Database`` and runs within one transaction. The transaction is
    committed when the function returns, and rolled back when it raises. With ``synchronous=FULL`` a committed
    transaction survives a power cut.

    A full or read-only disk makes a transaction fail with ``ServiceUnavailable``, whose service is named after the
    file. The next transaction works again as soon as the disk does.
    """

    def __init__(self, path: Path, migrations: Migrations, executor: Executor | None = None) -> None:
        """
        Open *path*, creating it and its folder when missing, and apply the migrations that it lacks.

        Args:
            path: The file.
            migrations: Its schema.
            executor: Runs transactions, one after another; it is shut down with the database. None: a thread.

        Raises:
            PathRefused: Another user may control the file or its folder.
            OSError: The file cannot be opened, is no database, or has another schema.
        """
        self._path = path
        self._db = _open(path, migrations)
        self._executor = executor or ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"sqlite-{path.stem}")

    async def write(self, work: Callable[[sqlite_utils.Database], T]) -> T:
        """Run *work* in a transaction that holds the write lock from its start (``BEGIN IMMEDIATE``)."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transact, "BEGIN IMMEDIATE", work)

    async def read(self, work: Callable[[sqlite_utils.Database], T]) -> T:
        """Run *work*, which only reads, on one consistent snapshot."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transact, "BEGIN", work)

    def close(self) -> None:
        """Wait for running work, and close the file."""
        self._executor.shutdown()
        self._db.conn.close()

    def _transact(self, begin: str, work: Callable[[sqlite_utils.Database], T]) -> T:
        connection = self._db.conn
        try:
            connection.execute(begin)
            result = work(self._db)
            connection.commit()
        except BaseException as error:
            # A failed commit may leave the transaction open, and a full disk may have ended it; this is right for both.
            connection.rollback()
            if isinstance(error, sqlite3.Error) and _primary(error) in _ENVIRONMENT_ERRORS:
                raise ServiceUnavailable(self._path.stem, str(self._path), str(error), answered=True) from error
            raise
        return result


def _primary(error: sqlite3.Error) -> int | None:
    """The result code without its extension; None for an error of the Python module itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _open(path: Path, migrations: Migrations) -> sqlite_utils.Database:
    private_folder(path.parent)
    # Several processes may open one file at the same moment; one of them creates the schema.
    guard = path.with_name(path.name + ".lock")
    with open(guard, "ab", opener=open_private) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # SQLite takes an empty file for a new database, and gives files that it makes beside it the same mode.
        private_file(path)
        for suffix in ("-wal", "-shm", "-journal"):
            restrict(path.with_name(path.name + suffix))
        try:
            connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            # What a file from elsewhere defines, such as a trigger, reaches no other file and no function with effects.
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            connection.execute("PRAGMA trusted_schema=OFF")
            database = sqlite_utils.Database(connection)
            if has_tables(database):
                check_origin(database, migrations)
            else:
                # It takes effect only before anything is written.
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA journal_size_limit={LONGEST_LOG}")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")
            migrations.apply(database)
        except (sqlite3.DatabaseError, OtherSchema) as error:
            raise OSError(f"cannot use the database {path}: {error}") from error
    return database
