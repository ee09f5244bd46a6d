"""Reservations in SQLite."""

from typing import Any

import sqlite_utils

from services.core.model import Target
from stack_svc.store.reservations import Reservation
from stack_svc.store.stacks import StackName


class SqliteReservations:
    """Reservations of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def of(self, stack: str, named: StackName) -> Reservation | None:
        """Read the reservation of a stack."""
        target = named.target
        where = "(stack = ? AND stack <> '') OR (platform = ? AND org = ? AND name = ? AND name <> '')"
        return next(iter(self._read(where, stack, target.platform, target.org, named.name)), None)

    def of_operation(self, operation: str) -> list[Reservation]:
        """Read the reservations of an operation."""
        return self._read("operation = ? ORDER BY platform, org, name", operation)

    def insert(self, reservation: Reservation) -> bool:
        """Add a reservation."""
        named = reservation.named
        added = self._db.execute(
            """
            INSERT INTO reservations (platform, org, name, stack, operation, action_set, since)
            VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                named.target.platform,
                named.target.org,
                named.name,
                reservation.stack,
                reservation.operation,
                reservation.action_set,
                reservation.since,
            ],
        )
        return bool(added.rowcount)

    def drop(self, operation: str) -> None:
        """Remove the reservations of an operation."""
        self._db.execute("DELETE FROM reservations WHERE operation = ?", [operation])

    def _read(self, where: str, *values: str) -> list[Reservation]:
        return [_reservation(row) for row in self._db.query(f"SELECT * FROM reservations WHERE {where}", values)]  # noqa: S608


def _reservation(row: dict[str, Any]) -> Reservation:
    named = StackName(Target(row["platform"], row["org"]), row["name"])
    return Reservation(named, row["stack"], row["operation"], row["action_set"], row["since"])
