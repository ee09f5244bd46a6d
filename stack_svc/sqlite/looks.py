"""The last drift detections in SQLite."""

import orjson
import sqlite_utils

from services.core.drift import DriftCounts
from stack_svc.store.looks import Look


class SqliteLooks:
    """The last drift detections, in one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, stack: str) -> Look | None:
        """Read the last drift detection of a stack."""
        row = self._db.execute("SELECT time, generation, counts FROM looks WHERE stack = ?", [stack]).fetchone()
        return Look(row[0], row[1], DriftCounts(**orjson.loads(row[2]))) if row else None

    def put(self, stack: str, look: Look) -> None:
        """Write the last drift detection of a stack."""
        self._db.execute(
            """
            INSERT INTO looks (stack, time, generation, counts) VALUES (?, ?, ?, ?)
            ON CONFLICT (stack)
            DO UPDATE SET time = excluded.time, generation = excluded.generation, counts = excluded.counts
            """,
            [stack, look.time, look.generation, orjson.dumps(look.counts._asdict()).decode()],
        )
