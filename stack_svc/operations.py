"""Operations: one run of a plan each, as rows that outlive their stack; a stack has at most one that is unfinished."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import sqlite_utils

from services.core.errors import OperationNotFound, OperationUnfinished
from services.core.model import OperationKind, Target
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


class Blocks(NamedTuple):
    """
    What an operation is blocked by.

    Attributes:
        reason: Number of a ``pkger.model.v1.BlockedReason``.
        step_count: Number of blocked steps.
        body: The blocked steps, in a ``pkger.model.v1.Operation`` in its wire format.
    """

    reason: int
    step_count: int
    body: bytes = b""


NOT_BLOCKED = Blocks(0, 0)
"""Of an operation that is not BLOCKED."""


class Filter(NamedTuple):
    """
    Which operations are listed.

    Attributes:
        stack: Only those on this stack, by id; empty for all.
        states: Only those in one of these states; empty for all.
        kinds: Only those of one of these kinds; empty for all.
        since: Only those that began then or later, in microseconds since 1970.
        until: Only those that began before, likewise.
    """

    stack: str = ""
    states: Collection[OperationState] = ()
    kinds: Collection[OperationKind] = ()
    since: int = 0
    until: int = 2**63 - 1


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
        plan: Name of its plan; empty while it has none.
        last_event: Its last event in the wire format; empty unless it is finished.
        blocks: What it is blocked by, without the steps.
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
    plan: str
    last_event: bytes
    blocks: Blocks

    @property
    def going(self) -> OperationState:
        """Its state but for what blocks it: where whoever claims a BLOCKED one takes it up again."""
        if self.state is not OperationState.BLOCKED:
            return self.state
        return OperationState.ROLLING_BACK if self.rolling_back else OperationState.APPLYING


def find(db: sqlite_utils.Database, name: str) -> Operation | None:
    """The operation of that name."""
    return next((_operation(row) for row in db.query(f"{_SELECT} WHERE operations.name = ?", [name])), None)


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
    rows = db.query(f"{_SELECT} WHERE operations.stack = ? AND token = ?", [stack, token])
    return next(map(_operation, rows), None)


def page(db: sqlite_utils.Database, wanted: Filter, after: Place, size: int) -> list[Operation]:
    """
    Read one page of operations, newest first.

    Args:
        db: The store.
        wanted: Which ones.
        after: The last operation of the page before.
        size: Operations on the page.

    Returns:
        The operations; one more than the page has when more follow.
    """
    where = "(operations.create_time, operations.name) < (?, ?) AND operations.create_time >= ?"
    values: list[Any] = [*min(after, (wanted.until, "")), wanted.since]
    if wanted.stack:
        where, values = f"{where} AND operations.stack = ?", [*values, wanted.stack]
    for column, members in (("state", wanted.states), ("kind", wanted.kinds)):
        if members:
            where = f"{where} AND operations.{column} IN (SELECT value FROM json_each(?))"  # noqa: S608
            values = [*values, orjson.dumps([str(member) for member in members]).decode()]
    rows = db.query(
        f"{_SELECT} WHERE {where} ORDER BY operations.create_time DESC, operations.name DESC LIMIT ?",
        [*values, size + 1],
    )
    return [_operation(row) for row in rows]


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


def block(db: sqlite_utils.Database, name: str, blocks: Blocks) -> None:
    """Keep what an operation that is BLOCKED now is blocked by."""
    db.execute("INSERT INTO blocks (operation, reason, step_count, body) VALUES (?, ?, ?, ?)", [name, *blocks])


def unblock(db: sqlite_utils.Database, name: str) -> None:
    """Forget what an operation was blocked by, as it goes on."""
    db.execute("DELETE FROM blocks WHERE operation = ?", [name])


def blocked_steps(db: sqlite_utils.Database, name: str) -> bytes:
    """The blocked steps of an operation, as in ``Blocks.body``; empty when there are none."""
    row = db.execute("SELECT body FROM blocks WHERE operation = ?", [name]).fetchone()
    return bytes(row[0]) if row else b""


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


_SELECT = f"""
    SELECT operations.*, plans.name AS plan, events.body AS last_event, blocks.reason, blocks.step_count AS blocked
    FROM operations
    LEFT JOIN plans ON plans.operation = operations.name
    LEFT JOIN events ON events.operation = operations.name AND seq = last_seq AND operations.{_IS_FINISHED}
    LEFT JOIN blocks ON blocks.operation = operations.name
"""  # noqa: S608
"""An operation with its plan, its last event and what it is blocked by, without the blocked steps: they may be many."""


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
        plan=row["plan"] or "",
        last_event=row["last_event"] or b"",
        blocks=Blocks(row["reason"] or 0, row["blocked"] or 0),
    )
