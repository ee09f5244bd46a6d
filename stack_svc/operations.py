"""Operations: one run of a plan each, as rows that outlive their stack; a stack has at most one that is unfinished."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import orjson
import sqlite_utils

from services.core.errors import OperationNotFound, OperationUnfinished
from services.core.model import Target
from services.core.model import OperationKind
from services.engine.operation import FINISHED, OperationState
from stack_svc import requests

KEPT = 1000
"""Finished operations that the store keeps; those that ended first go first."""

MOST_ABANDONED = 100
"""Operations in one answer (journal.proto)."""

Place = tuple[int, str]
"""Create time and name of the last operation of a page."""

START: Place = (2**63 - 1, "")
"""Before every operation, as the newest come first."""


# As the indexes say it: SQLite uses one with a condition only when the query has the very same.
_IS_UNFINISHED = "state IN ('PREPARING', 'APPLYING', 'ROLLING_BACK', 'BLOCKED')"
_IS_FINISHED = "state IN ('SUCCEEDED', 'ROLLED_BACK', 'FAILED')"


@dataclass(frozen=True, slots=True)
class Operation:
    """
    An operation as the store has it.

    Attributes:
        name: As its applier chose it.
        stack: Id of its stack, which may be gone.
        nameless: Whether it works on behalf of no stack; ``stack`` then only carries its lease.
        stack_name: Name of the stack when it began.
        target: Where it works.
        kind: What it is for.
        state: How far it is.
        rolling_back: Whether it turned back; once true, always true, also when it is BLOCKED.
        sealed: Whether it passed the point of no return.
        cancel_requested: Whether somebody asked it to turn back.
        cause: What failed; empty when nothing did.
        holder: Who works on it, or did last.
        token: Fencing token of its last lease.
        step_count: Number of steps of its plan; 0 while it has none.
        done_count: How many of them are in effect.
        last_seq: Seq of its last event; 0 while it has none.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: When its applier last wrote or renewed; never before ``create_time``.
    """

    name: str
    stack: str
    nameless: bool
    stack_name: str
    target: Target
    kind: OperationKind
    state: OperationState
    rolling_back: bool
    sealed: bool
    cancel_requested: bool
    cause: str
    holder: str
    token: int
    step_count: int
    done_count: int
    last_seq: int
    create_time: int
    update_time: int

    @property
    def going(self) -> OperationState:
        """Its state but for what blocks it: where whoever claims a BLOCKED one takes it up again."""
        if self.state is not OperationState.BLOCKED:
            return self.state
        return OperationState.ROLLING_BACK if self.rolling_back else OperationState.APPLYING


def find(db: sqlite_utils.Database, name: str) -> Operation | None:
    """The operation of that name."""
    return next((_operation(row) for row in db.query("SELECT * FROM operations WHERE name = ?", [name])), None)


def existing(db: sqlite_utils.Database, name: str) -> Operation:
    """
    The operation of that name.

    Raises:
        OperationNotFound: There is none.
    """
    operation = find(db, name)
    if operation is None:
        raise OperationNotFound(name)
    return operation


def unfinished(db: sqlite_utils.Database, name: str) -> Operation:
    """
    The operation of that name.

    Raises:
        OperationNotFound: There is none, or it is finished.
    """
    operation = existing(db, name)
    if operation.state in FINISHED:
        raise OperationNotFound(name)
    return operation


def with_token(db: sqlite_utils.Database, stack: str, token: int) -> Operation | None:
    """The operation whose last lease on the stack has that token."""
    rows = db.query("SELECT * FROM operations WHERE stack = ? AND token = ?", [stack, token])
    return next(map(_operation, rows), None)


def page(
    db: sqlite_utils.Database, stack: str, unfinished_only: bool, after: Place, size: int
) -> tuple[list[Operation], Place | None]:
    """
    Read one page of operations, newest first.

    Args:
        db: The store.
        stack: Only operations on this stack, by id; empty for all.
        unfinished_only: Whether finished ones are left out.
        after: The last operation of the page before.
        size: Operations on the page.

    Returns:
        The operations, and the last of them when more follow.
    """
    where, values = ["(create_time, name) < (?, ?)"], [*after]
    if stack:
        where, values = [*where, "stack = ?"], [*values, stack]
    if unfinished_only:
        where = [*where, _IS_UNFINISHED]
    # One more than the page tells whether more follow.
    rows = db.query(
        f"SELECT * FROM operations WHERE {' AND '.join(where)} ORDER BY create_time DESC, name DESC LIMIT ?",  # noqa: S608
        [*values, size + 1],
    )
    found = [_operation(row) for row in rows]
    if len(found) <= size:
        return found, None
    return found[:size], (found[size - 1].create_time, found[size - 1].name)


def abandoned(db: sqlite_utils.Database, now: int) -> list[str]:
    """Names of those that are neither finished nor BLOCKED, and whose lease is over; oldest first."""
    rows = db.execute(
        f"""
        SELECT operations.name FROM operations JOIN stacks ON stacks.id = operations.stack
        WHERE operations.{_IS_UNFINISHED} AND operations.state <> 'BLOCKED' AND lease_expires < ?
        ORDER BY operations.create_time, operations.name LIMIT {MOST_ABANDONED}
        """,  # noqa: S608
        [now],
    )
    return [name for (name,) in rows]


def insert(
    db: sqlite_utils.Database,
    name: str,
    stack: str,
    nameless: bool,
    stack_name: str,
    target: Target,
    kind: OperationKind,
    holder: str,
    token: int,
    now: int,
) -> None:
    """Add an operation that is PREPARING, and drop the oldest finished ones that are too many."""
    # With its plan, steps and events, which refer to it.
    db.execute(
        f"DELETE FROM operations WHERE name IN (SELECT name FROM operations WHERE {_IS_FINISHED}"  # noqa: S608
        f" ORDER BY update_time DESC, name DESC LIMIT -1 OFFSET {KEPT})"
    )
    db.table("operations").insert(
        {
            "name": name,
            "stack": stack,
            "nameless": nameless,
            "stack_name": stack_name,
            "platform": target.platform,
            "org": target.org,
            "kind": kind,
            "state": OperationState.PREPARING,
            "holder": holder,
            "token": token,
            "create_time": now,
            "update_time": now,
        }
    )


def update(db: sqlite_utils.Database, name: str, changes: dict[str, Any], now: int) -> None:
    """Set columns of an operation that exists, of which the journal heard now."""
    sets = "".join(f"{column} = :{column}, " for column in changes)
    # Clocks are set back at times; nothing is heard of an operation before it began.
    db.execute(
        f"UPDATE operations SET {sets}update_time = MAX(update_time, :now) WHERE name = :name",  # noqa: S608
        {**changes, "now": now, "name": name},
    )


def block(db: sqlite_utils.Database, name: str, body: bytes) -> None:
    """Keep what an operation that is BLOCKED now is blocked by, in its wire format."""
    db.execute("INSERT INTO blocks (operation, body) VALUES (?, ?)", [name, body])


def unblock(db: sqlite_utils.Database, name: str) -> None:
    """Forget what an operation was blocked by, as it goes on."""
    db.execute("DELETE FROM blocks WHERE operation = ?", [name])


def blocked_by(db: sqlite_utils.Database, names: Collection[str]) -> dict[str, bytes]:
    """What those of the operations *names* are blocked by that are BLOCKED, in its wire format."""
    rows = db.execute(
        "SELECT operation, body FROM blocks WHERE operation IN (SELECT value FROM json_each(?))",
        [orjson.dumps(list(names)).decode()],
    )
    return {name: bytes(body) for name, body in rows}


def end_dead(db: sqlite_utils.Database, now: int) -> None:
    """End those whose lease ran out while they were PREPARING: they sent nothing, and nobody goes on with them."""
    ended = db.execute(
        f"""
        UPDATE operations SET state = 'FAILED', update_time = MAX(update_time, :now),
            cause = 'its applier was gone before it sent anything'
        WHERE {_IS_UNFINISHED} AND state = 'PREPARING'
            AND stack IN (SELECT id FROM stacks WHERE lease_expires < :now)
        RETURNING name
        """,  # noqa: S608
        {"now": now},
    ).fetchall()
    for (name,) in ended:
        requests.forget(db, name)


def refuse_unfinished(db: sqlite_utils.Database, stack: str, called: str) -> None:
    """
    Do nothing, unless the stack has an unfinished operation.

    Raises:
        OperationUnfinished: Names it.
    """
    found = _unfinished_on(db, stack)
    if found:
        raise OperationUnfinished(called, *found)


def is_unfinished_on(db: sqlite_utils.Database, stack: str) -> bool:
    """Whether the stack has an unfinished operation."""
    return _unfinished_on(db, stack) is not None


def _unfinished_on(db: sqlite_utils.Database, stack: str) -> tuple[str, str] | None:
    found: tuple[str, str] | None = db.execute(
        f"SELECT name, state FROM operations WHERE stack = ? AND {_IS_UNFINISHED}",  # noqa: S608
        [stack],
    ).fetchone()
    return found


def _operation(row: dict[str, Any]) -> Operation:
    return Operation(
        name=row["name"],
        stack=row["stack"],
        nameless=bool(row["nameless"]),
        stack_name=row["stack_name"],
        target=Target(row["platform"], row["org"]),
        kind=OperationKind(row["kind"]),
        state=OperationState(row["state"]),
        rolling_back=bool(row["rolling_back"]),
        sealed=bool(row["sealed"]),
        cancel_requested=bool(row["cancel_requested"]),
        cause=row["cause"],
        holder=row["holder"],
        token=row["token"],
        step_count=row["step_count"],
        done_count=row["done_count"],
        last_seq=row["last_seq"],
        create_time=row["create_time"],
        update_time=row["update_time"],
    )
