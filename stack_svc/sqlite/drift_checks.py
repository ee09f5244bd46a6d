"""The last drift detections in SQLite."""

import orjson
import sqlite_utils

from services.core.drift import DriftCounts
from stack_svc.store.drift_checks import DriftCheck


class SqliteDriftChecks:
    """The last drift detections, in one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, stack: str) -> DriftCheck | None:
        """Read the last drift detection of a stack."""
        row = self._db.execute("SELECT time, generation, counts FROM drift_checks WHERE stack = ?", [stack]).fetchone()
        return DriftCheck(row[0], row[1], DriftCounts(**orjson.loads(row[2]))) if row else None

    def put(self, stack: str, drift_check: DriftCheck) -> None:
        """Write the last drift detection of a stack."""
        self._db.execute(
            """
            INSERT INTO drift_checks (stack, time, generation, counts) VALUES (?, ?, ?, ?)
            ON CONFLICT (stack)
            DO UPDATE SET time = excluded.time, generation = excluded.generation, counts = excluded.counts
            """,
            [stack, drift_check.time, drift_check.generation, orjson.dumps(drift_check.counts._asdict()).decode()],
        )
