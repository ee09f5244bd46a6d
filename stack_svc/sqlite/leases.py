"""Leases in SQLite."""

from dataclasses import astuple

import sqlite_utils

from stack_svc.store.leases import Lease

IS_FREE = "(leases.expires < :now OR leases.expires > :now + leases.ttl)"
"""``stack_svc.rules.leases.is_free`` as a condition with the parameter *now*."""


class SqliteLeases:
    """Leases of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def of(self, stack: str) -> Lease | None:
        """Read the last lease on a stack."""
        row = self._db.execute(
            "SELECT holder, operation, token, ttl, expires, last_token, shown_token FROM leases WHERE stack = ?",
            [stack],
        ).fetchone()
        return Lease(*row) if row else None

    def put(self, stack: str, lease: Lease) -> None:
        """Replace the lease on a stack."""
        self._db.execute(
            "UPDATE leases SET holder = ?, operation = ?, token = ?, ttl = ?, expires = ?, last_token = ?,"
            " shown_token = ? WHERE stack = ?",
            [*astuple(lease), stack],
        )
