"""Stacks in SQLite."""

from collections.abc import Sequence
from typing import Any

import orjson
import sqlite_utils

from services.core.model import StackRecord, Target
from stack_svc.store.stacks import Choice, Stack, StackFilter, StackName, StackPlace, State


class SqliteStacks:
    """Stacks of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, choice: Choice) -> Stack | None:
        """Read a stack in any state."""
        if isinstance(choice, StackName):
            where = "platform = ? AND org = ? AND name = ? AND name <> ''"
            values = [choice.target.platform, choice.target.org, choice.name]
        else:
            where, values = "id = ?", [choice]
        return next((_stack(row) for row in self._db.query(f"{_SELECT} WHERE {where}", values)), None)

    def page(self, criteria: StackFilter, after: StackPlace, most: int) -> list[Stack]:
        """Read a page of active stacks."""
        where, values = "state = 'ACTIVE' AND (name, id) > (?, ?)", [*after]
        if criteria.target:
            where, values = (
                f"{where} AND platform = ? AND org = ?",
                [
                    *values,
                    criteria.target.platform,
                    criteria.target.org,
                ],
            )
        choosing = [
            ("id IN (SELECT value FROM json_each(?))", orjson.dumps(sorted(criteria.ids)).decode(), criteria.ids),
            ("name IN (SELECT value FROM json_each(?))", orjson.dumps(sorted(criteria.names)).decode(), criteria.names),
            # SQLite's patterns also have sets of characters, such as [ab]; ours do not, so the bracket is escaped.
            ("name GLOB ?", criteria.glob.replace("[", "[[]"), criteria.glob),
        ]
        if chosen := [(condition, value) for condition, value, is_asked in choosing if is_asked]:
            where = f"{where} AND ({' OR '.join(condition for condition, _ in chosen)})"
            values = [*values, *(value for _, value in chosen)]
        rows = self._db.query(f"{_SELECT} WHERE {where} ORDER BY name, id LIMIT ?", [*values, most])
        return list(map(_stack, rows))

    def insert(self, stack: Stack) -> bool:
        """Add a stack with an expired lease."""
        record = stack.record
        added = self._db.execute(
            """
            INSERT INTO stacks (id, platform, org, name, description, urls, state, create_time, update_time,
                policy)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                record.id,
                record.target.platform,
                record.target.org,
                record.name,
                stack.description,
                _listed(record.urls),
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

    def edit(self, stack: Stack) -> bool:
        """Write the fields of a stack that users set, except its policy."""
        record = stack.record
        edited = self._db.execute(
            """
            UPDATE OR IGNORE stacks SET name = ?, description = ?, urls = ?, version = ?, update_time = ?
            WHERE id = ?
            """,
            [record.name, stack.description, _listed(record.urls), stack.version, stack.update_time, record.id],
        )
        return bool(edited.rowcount)

    def update(self, stack: Stack) -> None:
        """Write the other changing fields of a stack."""
        self._db.execute(
            """
            UPDATE stacks
            SET state = ?, generation = ?, sources = ?, create_time = ?, update_time = ?, resource_count = ?,
                package_count = ?, revision = ?, package_digest = ?, policy = ?
            WHERE id = ?
            """,
            [
                stack.state,
                stack.record.generation,
                _listed(stack.record.sources),
                stack.create_time,
                stack.update_time,
                stack.resource_count,
                stack.package_count,
                stack.record.revision,
                stack.record.package_digest,
                orjson.dumps(dict(stack.record.policy)).decode(),
                stack.record.id,
            ],
        )

    def delete(self, stack: str) -> None:
        """Remove a stack; foreign keys remove its lease, inventory, ownerships and other rows with it."""
        self._db.execute("DELETE FROM stacks WHERE id = ?", [stack])


_SELECT = """
    SELECT id, platform, org, name, description, urls, state, version, generation, sources, create_time, update_time,
        resource_count, package_count, revision, package_digest, policy
    FROM stacks
"""


def _listed(texts: Sequence[str]) -> str:
    return orjson.dumps(list(texts)).decode()


def _stack(row: dict[str, Any]) -> Stack:
    return Stack(
        record=StackRecord(
            id=row["id"],
            target=Target(row["platform"], row["org"]),
            name=row["name"],
            generation=row["generation"],
            sources=tuple(orjson.loads(row["sources"])),
            urls=tuple(orjson.loads(row["urls"])),
            revision=row["revision"],
            package_digest=row["package_digest"],
            policy=orjson.loads(row["policy"]),
        ),
        description=row["description"],
        state=State(row["state"]),
        create_time=row["create_time"],
        update_time=row["update_time"],
        resource_count=row["resource_count"],
        package_count=row["package_count"],
        version=row["version"],
    )
