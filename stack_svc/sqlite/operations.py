"""Operations in SQLite."""

from typing import Any

import orjson
import sqlite_utils

from services.core.model import OperationKind, Target
from services.engine.operation import OperationState
from stack_svc.sqlite.leases import IS_FREE
from stack_svc.sqlite.operation_states import IS_UNFINISHED
from stack_svc.sqlite.snapshots import remove_unused
from stack_svc.store.operations import Blocks, Operation, OperationFilter, OperationPlace


class SqliteOperations:
    """Operations of one transaction."""

    def __init__(self, db: sqlite_utils.Database) -> None:
        self._db = db

    def stack_of(self, operation_id: str) -> str | None:
        """Return the id of the stack of an operation."""
        row = self._db.execute("SELECT stack FROM operations WHERE id = ?", [operation_id]).fetchone()
        return str(row[0]) if row else None

    def find(self, operation_id: str) -> Operation | None:
        """Read one operation."""
        return self._first("operations.id = ?", operation_id)

    def unfinished_on(self, stack: str) -> Operation | None:
        """Read the unfinished operation on a stack."""
        return self._first(f"operations.stack = ? AND operations.{IS_UNFINISHED}", stack)

    def last_on(self, stack: str) -> Operation | None:
        """Read the last operation on a stack."""
        return self._first("operations.stack = ? ORDER BY operations.token DESC LIMIT 1", stack)

    def since(self, stack: str, token: int) -> list[Operation]:
        """Read the last operations on a stack."""
        where = "operations.stack = ? AND operations.token >= ? ORDER BY operations.token"
        return list(map(operation_of, self._db.query(f"{SELECT} WHERE {where}", [stack, token])))

    def page(self, criteria: OperationFilter, after: OperationPlace, most: int) -> list[Operation]:
        """Read a page of operations."""
        where = "(operations.create_time, operations.id) < (?, ?) AND operations.create_time >= ?"
        values: list[Any] = [*min(after, (criteria.until, "")), criteria.since]
        if criteria.stack:
            where, values = f"{where} AND operations.stack = ?", [*values, criteria.stack]
        if target := criteria.target:
            where = f"{where} AND operations.platform = ? AND operations.org = ?"
            values = [*values, target.platform, target.org]
        for column, members in (("state", criteria.states), ("kind", criteria.kinds)):
            if members:
                where = f"{where} AND operations.{column} IN (SELECT value FROM json_each(?))"  # noqa: S608
                values = [*values, orjson.dumps([str(member) for member in members]).decode()]
        rows = self._db.query(
            f"{SELECT} WHERE {where} ORDER BY operations.create_time DESC, operations.id DESC LIMIT ?",
            [*values, most],
        )
        return list(map(operation_of, rows))

    def abandoned(self, now: int, most: int) -> list[str]:
        """Return the ids of operations that any applier may claim."""
        rows = self._db.execute(
            f"""
            SELECT operations.id FROM operations JOIN leases ON leases.stack = operations.stack
            WHERE operations.{IS_UNFINISHED} AND operations.state <> 'BLOCKED' AND {IS_FREE}
            ORDER BY operations.create_time, operations.id LIMIT :most
            """,  # noqa: S608
            {"now": now, "most": most},
        )
        return [operation_id for (operation_id,) in rows]

    def blocked_steps(self, operation_id: str) -> bytes:
        """Read the blocked steps of an operation."""
        row = self._db.execute("SELECT body FROM blocks WHERE operation = ?", [operation_id]).fetchone()
        return bytes(row[0]) if row else b""

    def insert(self, operation: Operation) -> bool:
        """Add an operation."""
        values = _fixed(operation) | _changing(operation)
        added = self._db.execute(
            f"INSERT INTO operations ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)})"  # noqa: S608
            " ON CONFLICT DO NOTHING",
            values,
        )
        return bool(added.rowcount)

    def update(self, operation: Operation) -> None:
        """Write the fields of an operation that change."""
        values = _changing(operation)
        self._db.execute(
            f"UPDATE operations SET {', '.join(f'{name} = :{name}' for name in values)} WHERE id = :key",  # noqa: S608
            {**values, "key": operation.id},
        )

    def block(self, operation_id: str, blocks: Blocks) -> None:
        """Store the blocks of an operation."""
        self._db.execute(
            "INSERT INTO blocks (operation, reason, step_count, body) VALUES (?, ?, ?, ?)", [operation_id, *blocks]
        )

    def unblock(self, operation_id: str) -> None:
        """Remove the blocks of an operation."""
        self._db.execute("DELETE FROM blocks WHERE operation = ?", [operation_id])

    def delete(self, operation_id: str) -> None:
        """Remove an operation; foreign keys remove its other rows with it."""
        self._db.execute("DELETE FROM operations WHERE id = ?", [operation_id])
        remove_unused(self._db, "made_by IS NULL", {"except": ""})

    def _first(self, where: str, *values: str) -> Operation | None:
        return next(map(operation_of, self._db.query(f"{SELECT} WHERE {where}", values)), None)


SELECT = """
    SELECT operations.*, plans.id AS plan, blocks.reason, blocks.step_count AS blocked
    FROM operations
    LEFT JOIN plans ON plans.operation = operations.id
    LEFT JOIN blocks ON blocks.operation = operations.id
"""
"""An operation with the id of its plan and its blocks, without the blocked steps: they may be many."""


def _fixed(operation: Operation) -> dict[str, Any]:
    return {
        "id": operation.id,
        "stack": operation.stack,
        "stackless": operation.stackless,
        "stack_name": operation.stack_name,
        "platform": operation.target.platform,
        "org": operation.target.org,
        "kind": operation.kind,
        "create_time": operation.create_time,
        "author": operation.author,
        "parent": operation.parent,
    }


def _changing(operation: Operation) -> dict[str, Any]:
    return {
        "state": operation.state,
        "holder": operation.holder,
        "token": operation.token,
        "update_time": operation.update_time,
        "rolling_back": operation.rolling_back,
        "sealed": operation.sealed,
        "cancel_requested": operation.cancel_requested,
        "cause": operation.cause,
        "step_count": operation.step_count,
        "done_count": operation.done_count,
        "position": operation.position,
        "last_seq": operation.last_seq,
        "last_event": operation.last_event,
        "defects": operation.defects,
        "handed_over": operation.handed_over,
        "action_set": operation.action_set,
    }


def operation_of(row: dict[str, Any]) -> Operation:
    """The operation of a row of ``SELECT``."""
    return Operation(
        id=row["id"],
        stack=row["stack"],
        stackless=bool(row["stackless"]),
        stack_name=row["stack_name"],
        target=Target(row["platform"], row["org"]),
        kind=OperationKind(row["kind"]),
        state=OperationState(row["state"]),
        holder=row["holder"],
        token=row["token"],
        create_time=row["create_time"],
        update_time=row["update_time"],
        rolling_back=bool(row["rolling_back"]),
        sealed=bool(row["sealed"]),
        cancel_requested=bool(row["cancel_requested"]),
        cause=row["cause"],
        step_count=row["step_count"],
        done_count=row["done_count"],
        position=row["position"],
        last_seq=row["last_seq"],
        last_event=row["last_event"],
        plan=row["plan"] or "",
        blocks=Blocks(row["reason"] or 0, row["blocked"] or 0),
        defects=row["defects"],
        handed_over=row["handed_over"],
        author=row["author"],
        parent=row["parent"],
        action_set=row["action_set"],
    )
