"""Stacks in SQLite."""

from typing import Any

import orjson
import sqlite_utils

from services.core.model import StackRecord, Target
from stack_svc.store.stacks import Choice, Named, Place, Stack, State


class SqliteStacks:
    """Stacks of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, choice: Choice) -> Stack | None:
        """Read a stack in any state."""
        if isinstance(choice, Named):
            where = "platform = ? AND org = ? AND name = ? AND name <> ''"
            values = [choice.target.platform, choice.target.org, choice.name]
        else:
            where, values = "id = ?", [choice]
        return next((_stack(row) for row in self._db.query(f"{_SELECT} WHERE {where}", values)), None)

    def page(self, target: Target | None, after: Place, most: int) -> list[Stack]:
        """Read a page of active stacks."""
        where, values = "state = 'ACTIVE' AND (name, id) > (?, ?)", [*after]
        if target:
            where, values = f"{where} AND platform = ? AND org = ?", [*values, target.platform, target.org]
        return list(map(_stack, self._db.query(f"{_SELECT} WHERE {where} ORDER BY name, id LIMIT ?", [*values, most])))

    def insert(self, stack: Stack) -> bool:
        """Add a stack with a lease that is over."""
        record = stack.record
        added = self._db.execute(
            """
            INSERT INTO stacks (id, platform, org, name, description, state, create_time, update_time, policy)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                record.id,
                record.target.platform,
                record.target.org,
                record.name,
                stack.description,
                stack.state,
                stack.create_time,
                stack.update_time,
                orjson.dumps(dict(record.policy)).decode(),
            ],
        )
        if not added.rowcount:
            return False
        self._db.execute(
            "INSERT INTO leases (stack, holder, operation, token, ttl, expires) VALUES (?, '', '', 0, 0, 0)",
            [record.id],
        )
        return True

    def update(self, stack: Stack) -> None:
        """Write what changes of a stack."""
        self._db.execute(
            """
            UPDATE stacks
            SET state = ?, generation = ?, sources = ?, create_time = ?, update_time = ?, resource_count = ?,
                revision = ?, package_digest = ?, policy = ?
            WHERE id = ?
            """,
            [
                stack.state,
                stack.record.generation,
                orjson.dumps(list(stack.record.sources)).decode(),
                stack.create_time,
                stack.update_time,
                stack.resource_count,
                stack.record.revision,
                stack.record.package_digest,
                orjson.dumps(dict(stack.record.policy)).decode(),
                stack.record.id,
            ],
        )

    def delete(self, stack: str) -> None:
        """Remove a stack; its lease, its inventory and what it has go with it by foreign key."""
        self._db.execute("DELETE FROM stacks WHERE id = ?", [stack])


_SELECT = """
    SELECT id, platform, org, name, description, state, generation, sources, create_time, update_time, resource_count,
        revision, package_digest, policy
    FROM stacks
"""


def _stack(row: dict[str, Any]) -> Stack:
    return Stack(
        record=StackRecord(
            id=row["id"],
            target=Target(row["platform"], row["org"]),
            name=row["name"],
            generation=row["generation"],
            sources=tuple(orjson.loads(row["sources"])),
            revision=row["revision"],
            package_digest=row["package_digest"],
            policy=orjson.loads(row["policy"]),
        ),
        description=row["description"],
        state=State(row["state"]),
        create_time=row["create_time"],
        update_time=row["update_time"],
        resource_count=row["resource_count"],
    )
