"""Revisions in SQLite."""

from collections.abc import Collection
from typing import Any

import orjson
import sqlite_utils

from services.core.model import OperationKind
from services.packages.installed import PackageMove
from stack_svc.store.revisions import Revision


class SqliteRevisions:
    """Revisions of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, stack: str, number: int) -> Revision | None:
        """Read one revision of a stack."""
        rows = self._db.query("SELECT * FROM revisions WHERE stack = ? AND number = ?", [stack, number])
        return next(map(_revision, rows), None)

    def page(self, stack: str, before: int, most: int) -> list[Revision]:
        """Read a page of revisions."""
        rows = self._db.query(
            "SELECT * FROM revisions WHERE stack = ? AND number < ? ORDER BY number DESC LIMIT ?", [stack, before, most]
        )
        return list(map(_revision, rows))

    def page_of_stacks(self, stacks: Collection[str], after: tuple[str, int], most: int) -> list[tuple[str, Revision]]:
        """Read a page of the revisions of some stacks."""
        stack, number = after
        rows = self._db.query(
            """
            SELECT revisions.* FROM revisions JOIN json_each(?) AS asked ON revisions.stack = asked.value
            WHERE stack > ? OR (stack = ? AND number < ?) ORDER BY stack, number DESC LIMIT ?
            """,
            [orjson.dumps(sorted(set(stacks))).decode(), stack, stack, number, most],
        )
        return [(row["stack"], _revision(row)) for row in rows]

    def bounds(self, stack: str) -> tuple[int, int]:
        """Return the lowest and the highest number."""
        lowest, highest = self._db.execute(
            "SELECT MIN(number), MAX(number) FROM revisions WHERE stack = ?", [stack]
        ).fetchone()
        return lowest or 0, highest or 0

    def add(self, stack: str, revision: Revision) -> None:
        """Add a revision."""
        self._db.execute(
            """
            INSERT INTO revisions (stack, number, kind, package_digest, sources, author, operation, leftover_count,
                rollback_of, create_time, packages)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                stack,
                revision.number,
                revision.kind,
                revision.package_digest,
                orjson.dumps(list(revision.sources)).decode(),
                revision.author,
                revision.operation,
                revision.leftover_count,
                revision.rollback_of,
                revision.create_time,
                orjson.dumps([list(each) for each in revision.packages]).decode(),
            ],
        )

    def prune(self, stack: str, oldest: int) -> None:
        """Remove revisions with lower numbers."""
        self._db.execute("DELETE FROM revisions WHERE stack = ? AND number < ?", [stack, oldest])


def _revision(row: dict[str, Any]) -> Revision:
    return Revision(
        number=row["number"],
        kind=OperationKind(row["kind"]),
        package_digest=row["package_digest"],
        sources=tuple(orjson.loads(row["sources"])),
        author=row["author"],
        operation=row["operation"],
        leftover_count=row["leftover_count"],
        rollback_of=row["rollback_of"],
        create_time=row["create_time"],
        packages=tuple(PackageMove(*each) for each in orjson.loads(row["packages"])),
    )
