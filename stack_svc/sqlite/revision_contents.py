"""The contents of the packages of revisions, in SQLite."""

from collections.abc import Collection

import sqlite_utils


class SqliteRevisionContents:
    """The contents of revisions, in one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def add(self, stack: str, number: int, digests: Collection[str]) -> None:
        """Add the contents of a revision."""
        self._db.conn.executemany(
            "INSERT INTO revision_contents (stack, revision, digest) VALUES (?, ?, ?)",
            [(stack, number, digest) for digest in sorted(digests)],
        )
