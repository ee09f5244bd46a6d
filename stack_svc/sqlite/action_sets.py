"""Action sets in SQLite."""

from collections.abc import Collection
from dataclasses import astuple
from typing import Any

import orjson
import sqlite_utils

from services.actions.definitions import ActionObject
from stack_svc.sqlite.operation_states import IS_UNFINISHED
from stack_svc.sqlite.operations import SELECT, operation_of
from stack_svc.store.action_sets import ActionSetFilter, Progress, StoredActionSet
from stack_svc.store.operations import Operation, OperationPlace

_COLUMNS = (
    "action_sets.name, action_sets.operation, predecessor, blueprints, objects, labels, ttl, phase_count, has_begun"
)


class SqliteActionSets:
    """Action sets of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def find(self, name: str) -> StoredActionSet | None:
        """Read one action set."""
        rows = self._db.query(f"SELECT {_COLUMNS} FROM action_sets WHERE name = ?", [name])  # noqa: S608
        return next(map(_action_set, rows), None)

    def body(self, name: str) -> bytes:
        """Read what an action set is to run."""
        row = self._db.execute("SELECT body FROM action_sets WHERE name = ?", [name]).fetchone()
        return bytes(row[0]) if row else b""

    def unfinished_count(self) -> int:
        """Count the action sets whose operation is unfinished."""
        row = self._db.execute(
            f"SELECT COUNT(*) FROM operations WHERE action_set <> '' AND {IS_UNFINISHED}"  # noqa: S608
        ).fetchone()
        return int(row[0])

    def page(
        self, criteria: ActionSetFilter, after: OperationPlace, most: int
    ) -> list[tuple[StoredActionSet, Operation]]:
        """Read a page of action sets."""
        where, values = ["(operations.create_time, operations.id) < (?, ?)"], [*after]
        for condition, *more in _conditions(criteria):
            where, values = [*where, condition], [*values, *more]
        rows = list(
            self._db.query(
                f"""
                SELECT {_COLUMNS} FROM action_sets JOIN operations ON operations.id = action_sets.operation
                WHERE {" AND ".join(where)} ORDER BY operations.create_time DESC, operations.id DESC LIMIT ?
                """,  # noqa: S608
                [*values, most],
            )
        )
        ids = orjson.dumps([row["operation"] for row in rows]).decode()
        read = self._db.query(f"{SELECT} WHERE operations.id IN (SELECT value FROM json_each(?))", [ids])  # noqa: S608
        operations = {operation.id: operation for operation in map(operation_of, read)}
        return [(_action_set(row), operations[row["operation"]]) for row in rows]

    def insert(self, action_set: StoredActionSet, body: bytes) -> bool:
        """Add an action set."""
        added = self._db.execute(
            """
            INSERT INTO action_sets (name, operation, predecessor, blueprints, objects, labels, ttl, phase_count,
                has_begun, body)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
            """,
            [
                action_set.name,
                action_set.operation,
                action_set.predecessor,
                orjson.dumps(list(action_set.blueprints)).decode(),
                orjson.dumps([astuple(each) for each in action_set.objects]).decode(),
                orjson.dumps(dict(action_set.labels), option=orjson.OPT_SORT_KEYS).decode(),
                action_set.ttl,
                action_set.phase_count,
                action_set.has_begun,
                body,
            ],
        )
        return bool(added.rowcount)

    def begin(self, name: str) -> None:
        """Record that a phase has begun."""
        self._db.execute("UPDATE action_sets SET has_begun = 1 WHERE name = ?", [name])


def _conditions(criteria: ActionSetFilter) -> list[tuple[Any, ...]]:
    """The conditions of a filter, each with its values."""
    conditions: list[tuple[Any, ...]] = []
    if stack := criteria.stack:
        objects = orjson.dumps(["Stack", stack.name, "", stack.target.platform, stack.target.org]).decode()
        conditions.append(("EXISTS (SELECT 1 FROM json_each(objects) WHERE value = json(?))", objects))
    if criteria.blueprint:
        conditions.append(("EXISTS (SELECT 1 FROM json_each(blueprints) WHERE value = ?)", criteria.blueprint))
    if criteria.progress:
        conditions.append(_is_at(criteria.progress))
    if criteria.predecessor:
        conditions.append(("predecessor = ?", criteria.predecessor))
    for name, text in criteria.labels.items():
        conditions.append(("EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)", name, text))
    return conditions


def _is_at(progress: Collection[Progress]) -> tuple[Any, ...]:
    """The condition that an action set is as far as one of *progress*, with its values."""
    pairs = orjson.dumps([[str(each.state), each.has_begun] for each in progress]).decode()
    return (
        """
        EXISTS (SELECT 1 FROM json_each(?) WHERE json_extract(value, '$[0]') = operations.state
            AND COALESCE(json_extract(value, '$[1]'), has_begun) = has_begun)
        """,
        pairs,
    )


def _action_set(row: dict[str, Any]) -> StoredActionSet:
    return StoredActionSet(
        row["name"],
        row["operation"],
        row["phase_count"],
        row["predecessor"],
        tuple(orjson.loads(row["blueprints"])),
        tuple(ActionObject(*each) for each in orjson.loads(row["objects"])),
        orjson.loads(row["labels"]),
        row["ttl"],
        bool(row["has_begun"]),
    )
