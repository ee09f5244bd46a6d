"""Uses in SQLite."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
import sqlite_utils

from services.core.model import Target
from stack_svc.store.owners import Owner

_COLUMNS = "uses.what, uses.name, uses.stack, stacks.name, uses.operation, uses.since"
_ORDER = "uses.what, uses.since, uses.stack, uses.operation"


class SqliteUses:
    """Uses of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def of(self, target: Target, whats: Collection[str]) -> list[Owner]:
        """Read the users of items."""
        # All items are one JSON parameter, so this is one query. CROSS JOIN makes SQLite look each item up by key.
        return _owners(
            self._db.execute(
                f"""
                SELECT {_COLUMNS} FROM json_each(:whats) AS asked
                CROSS JOIN uses ON uses.platform = :platform AND uses.org = :org AND uses.what = asked.value
                JOIN stacks ON stacks.id = uses.stack
                ORDER BY {_ORDER}
                """,  # noqa: S608
                {"whats": orjson.dumps(sorted(whats)).decode(), "platform": target.platform, "org": target.org},
            )
        )

    def of_stack(self, target: Target, stack: str) -> list[Owner]:
        """Read the users of the items that a stack owns."""
        # CROSS JOIN makes SQLite start with the uses, which are few; a stack may own many items.
        return _owners(
            self._db.execute(
                f"""
                SELECT {_COLUMNS} FROM uses
                CROSS JOIN owners USING (platform, org, what)
                JOIN stacks ON stacks.id = uses.stack
                WHERE uses.platform = ? AND uses.org = ? AND owners.stack = ? AND owners.operation = ''
                ORDER BY {_ORDER}
                """,  # noqa: S608
                [target.platform, target.org, stack],
            )
        )

    def add(self, stack: str, target: Target, operation: str, items: Mapping[str, str], now: int) -> None:
        """Make a stack a user of items."""
        self._db.conn.executemany(
            "INSERT INTO uses (platform, org, what, stack, name, operation, since) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (platform, org, what, stack, operation) DO UPDATE SET name = excluded.name",
            [(target.platform, target.org, what, stack, items[what], operation, now) for what in sorted(items)],
        )

    def remove(self, stack: str, target: Target, whats: Collection[str]) -> None:
        """Remove recorded uses."""
        self._db.conn.executemany(
            "DELETE FROM uses WHERE platform = ? AND org = ? AND what = ? AND stack = ? AND operation = ''",
            [(target.platform, target.org, what, stack) for what in sorted(whats)],
        )

    def drop(self, stack: str, operation: str) -> None:
        """Remove the uses that an operation claims."""
        self._db.execute("DELETE FROM uses WHERE stack = ? AND operation = ?", [stack, operation])


def _owners(rows: Iterable[Any]) -> list[Owner]:
    return [Owner(*row) for row in rows]
