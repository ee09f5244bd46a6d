"""Inventories in SQLite."""

from collections.abc import Collection, Iterable
from typing import Any

import orjson
import sqlite_utils

from services.core.model import InventoryEntry, Key, Origin, Target
from stack_svc.store.inventory import Ownership, ResourceId


class SqliteInventory:
    """Inventories of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def page(self, stack: str, after: Key, most: int) -> list[InventoryEntry]:
        """Read a page of what a stack owns."""
        return _entries(
            self._db.execute(
                f"SELECT {_COLUMNS} FROM inventory WHERE stack = ? AND (kind, name) > (?, ?)"  # noqa: S608
                " ORDER BY kind, name LIMIT ?",
                [stack, *after, most],
            )
        )

    def entries(self, stack: str, keys: Collection[Key]) -> list[InventoryEntry]:
        """Read some entries of a stack."""
        # The keys travel as one JSON parameter: one query, however many. CROSS JOIN: look each up in the index.
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

    def owners(self, target: Target, resources: Collection[ResourceId]) -> list[Ownership]:
        """Tell who owns what."""
        rows = self._db.execute(
            """
            SELECT owned.stack, stacks.name, owned.kind, owned.name, owned.resource_id
            FROM json_each(:resources) AS asked
            CROSS JOIN inventory AS owned
                ON owned.platform = :platform AND owned.org = :org
                AND owned.kind = json_extract(asked.value, '$[0]')
                AND owned.resource_id = json_extract(asked.value, '$[1]')
            JOIN stacks ON stacks.id = owned.stack
            ORDER BY owned.kind, owned.resource_id
            """,
            {
                "resources": orjson.dumps(sorted(set(resources))).decode(),
                "platform": target.platform,
                "org": target.org,
            },
        )
        return [
            Ownership(stack, stack_name, Key(kind, name), resource_id)
            for stack, stack_name, kind, name, resource_id in rows
        ]

    def change(
        self, stack: str, target: Target, removed: Collection[Key], entries: Collection[InventoryEntry]
    ) -> list[Ownership]:
        """Write what changes of what a stack owns."""
        leaving = {*removed, *(entry.key for entry in entries)}
        owners = self.owners(target, [(entry.key.kind, entry.resource_id) for entry in entries])
        conflicts = [owner for owner in owners if owner.stack != stack or owner.key not in leaving]
        if conflicts:
            return conflicts
        self._db.conn.executemany(
            "DELETE FROM inventory WHERE stack = ? AND kind = ? AND name = ?", [(stack, *key) for key in leaving]
        )
        self._db.conn.executemany(
            "INSERT INTO inventory (stack, kind, name, platform, org, resource_id, origin, associations, state)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
                )
                for entry in sorted(entries, key=lambda entry: entry.key)
            ],
        )
        return []


_COLUMNS = "kind, name, resource_id, origin, associations, state = 'PENDING_DELETE'"


def _entries(rows: Iterable[Any]) -> list[InventoryEntry]:
    return [
        InventoryEntry(
            Key(kind, name),
            resource_id,
            Origin(origin),
            tuple(Key(*label) for label in orjson.loads(labels)),
            bool(is_pending_delete),
        )
        for kind, name, resource_id, origin, labels, is_pending_delete in rows
    ]
