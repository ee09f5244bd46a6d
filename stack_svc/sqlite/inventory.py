"""Inventories in SQLite."""

from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

import orjson
import sqlite_utils

from services.core.model import InventoryEntry, Key, Origin, Target
from stack_svc.store.inventory import NamelessStack


class SqliteInventory:
    """Inventories of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read a page of the inventory of a stack."""
        return _entries(
            self._db.execute(
                f"SELECT {_COLUMNS} FROM inventory WHERE stack = ? AND (kind, name) > (?, ?)"  # noqa: S608
                " ORDER BY kind, name LIMIT ?",
                [stack, *after, most],
            )
        )

    def of_nameless(self, target: Target, keys: Collection[Key]) -> list[NamelessStack]:
        """Read the stacks without a name that have entries of *keys*."""
        # The signs make SQLite read each entry once, and not look each key up in each stack.
        rows = self._db.execute(
            f"""
            WITH nameless AS (
                SELECT id, create_time, COUNT(*) AS entry_count FROM stacks JOIN inventory ON stack = id
                WHERE stacks.platform = :platform AND stacks.org = :org AND stacks.name = ''
                    AND stacks.state = 'ACTIVE' AND inventory.state = 'PRESENT'
                GROUP BY id
            )
            SELECT id, entry_count, {_COLUMNS} FROM nameless JOIN inventory ON stack = id
            WHERE state = 'PRESENT' AND (+kind, +name) IN (
                SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:keys)
            )
            ORDER BY create_time DESC, id, kind, name
            """,  # noqa: S608
            {
                "keys": orjson.dumps(list(map(list, keys))).decode(),
                "platform": target.platform,
                "org": target.org,
            },
        )
        return [
            NamelessStack(stack, count, _entries(row[2:] for row in own))
            for (stack, count), own in groupby(rows, lambda row: row[:2])
        ]

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read some entries of a stack."""
        # All keys are one JSON parameter, so this is one query. CROSS JOIN makes SQLite look each key up in the index.
        return _entries(
            self._db.execute(
                f"""
                SELECT {_COLUMNS} FROM json_each(:keys) AS asked
                CROSS JOIN inventory ON stack = :stack AND kind = json_extract(asked.value, '$[0]')
                    AND name = json_extract(asked.value, '$[1]')
                """,  # noqa: S608
                {"keys": orjson.dumps(list(map(list, keys))).decode(), "stack": stack},
            )
        )

    def change(self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]) -> None:
        """Write changes of the inventory of a stack."""
        self._db.conn.executemany(
            "DELETE FROM inventory WHERE stack = ? AND kind = ? AND name = ?",
            [(stack, *key) for key in sorted(removed)],
        )
        # An upsert keeps the row, and with it the baseline that refers to it.
        self._db.conn.executemany(
            """
            INSERT INTO inventory (stack, kind, name, platform, org, resource_id, origin, associations, state, policy,
                own_policy)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (stack, kind, name) DO UPDATE SET resource_id = excluded.resource_id, origin = excluded.origin,
                associations = excluded.associations, state = excluded.state, policy = excluded.policy,
                own_policy = excluded.own_policy
            """,
            [
                (
                    stack,
                    *entry.key,
                    target.platform,
                    target.org,
                    entry.resource_id,
                    entry.origin.value,
                    orjson.dumps(list(map(list, entry.associations))).decode(),
                    "PENDING_DELETE" if entry.is_pending_delete else "PRESENT",
                    entry.policy or "{}",
                    entry.own_policy or "{}",
                )
                for entry in sorted(entries, key=lambda entry: entry.key)
            ],
        )


_COLUMNS = """kind, name, resource_id, origin, associations, state = 'PENDING_DELETE', NULLIF(policy, '{}'),
    NULLIF(own_policy, '{}')"""


def _entries(rows: Iterable[Any]) -> list[InventoryEntry]:
    return [
        InventoryEntry(
            Key(kind, name),
            resource_id,
            Origin(origin),
            tuple(Key(*label) for label in orjson.loads(labels)),
            bool(is_pending_delete),
            policy or "",
            own_policy or "",
        )
        for kind, name, resource_id, origin, labels, is_pending_delete, policy, own_policy in rows
    ]
