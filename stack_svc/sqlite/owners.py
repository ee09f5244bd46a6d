"""Owners in SQLite."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
import sqlite_utils

from services.core.model import Target
from stack_svc.store.owners import Owner


class SqliteOwners:
    """Owners of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Read the owners of items."""
        return self._owners({"items": _json((what,) for what in whats), **_place(target)})

    def take(self, stack: str, target: Target, operation: str, items: Mapping[str, str], now: int) -> list[Owner]:
        """Make a stack the owner of items, unless another owner conflicts."""
        values: dict[str, Any] = {
            "items": _json(items.items()),
            "stack": stack,
            "operation": operation,
            "now": now,
            **_place(target),
        }
        others = self._owners(values, _CONFLICTS)
        if not others:
            self._db.execute(_TAKE, values)
        return others

    def release(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Release items of a stack."""
        self._db.conn.executemany(
            "DELETE FROM owners WHERE platform = ? AND org = ? AND what = ? AND stack = ?",
            [(target.platform, target.org, what, stack) for what in sorted(whats)],
        )

    def drop(self, stack: str, operation: str) -> None:
        """Release the items that an operation claims."""
        self._db.execute("DELETE FROM owners WHERE stack = ? AND operation = ?", [stack, operation])

    def _owners(self, values: dict[str, Any], where: str = "TRUE") -> list[Owner]:
        # All items are one JSON parameter, so this is one query. CROSS JOIN makes SQLite look each item up by key.
        rows = self._db.execute(
            f"""
            SELECT DISTINCT owners.what, owners.name, owners.stack, stacks.name, owners.operation, owners.since
            FROM json_each(:items) AS item
            CROSS JOIN owners
                ON owners.platform = :platform AND owners.org = :org AND what = json_extract(item.value, '$[0]')
            JOIN stacks ON stacks.id = owners.stack
            WHERE {where} ORDER BY what
            """,  # noqa: S608
            values,
        )
        return [Owner(*row) for row in rows]


_CONFLICTS = """
    owners.stack <> :stack
    OR (:operation = '' AND owners.operation = '' AND owners.name <> json_extract(item.value, '$[1]'))
"""

_TAKE = """
    INSERT INTO owners (platform, org, what, stack, name, operation, since)
    SELECT :platform, :org, json_extract(value, '$[0]'), :stack, json_extract(value, '$[1]'), :operation, :now
    FROM json_each(:items) WHERE TRUE
    ON CONFLICT (platform, org, what) DO UPDATE SET operation = '', name = excluded.name WHERE excluded.operation = ''
"""


def _place(target: Target) -> dict[str, str]:
    return {"platform": target.platform, "org": target.org}


def _json(rows: Any) -> str:
    return orjson.dumps(sorted(rows)).decode()
