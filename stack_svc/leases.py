"""Who works on a stack: one lease per stack, which ends by itself and whose token fences late writers (engine.md 6)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlite_utils

from services.core.errors import LeaseLost, RequestInvalid, StackLeased

SECOND = 1_000_000
"""In microseconds, the unit of all times here."""

SHORTEST, LONGEST = 1 * SECOND, 600 * SECOND
"""Bounds of the time a lease lasts without renewal (journal.proto)."""

FREE = 0
"""``lease_expires`` of a stack whose last operation gave the lease back, or that had none: long past."""

Clock = Callable[[], int]
"""Microseconds since 1970."""


def machine_clock() -> int:
    """
    The clock of leases and records.

    SQLite has no clock of its own: it reads that of the process, so this is the database's clock. It is read after the
    transaction has its lock, and all processes on one file are on one machine, so all leases are measured by one clock.
    """
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a stack until ``expires``; ``token`` is higher than that of any lease before."""

    token: int
    expires: int


def acquire(
    db: sqlite_utils.Database, stack: str, called: str, holder: str, operation: str, ttl: int, now: int
) -> Lease:
    """
    Take the lease of a stack that exists, unless somebody holds it.

    Args:
        db: In a write transaction.
        stack: Id of the stack.
        called: What people call the stack, for the error.
        holder: Who asks, for the error that others get.
        operation: What for, likewise.
        ttl: Microseconds that the lease lasts without renewal.
        now: The time.

    Raises:
        StackLeased: Another operation holds the lease.
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    taken = db.execute(
        """
        UPDATE stacks SET lease_holder = :holder, lease_operation = :operation, lease_token = lease_token + 1,
            lease_expires = :now + :ttl
        WHERE id = :stack AND lease_expires < :now
        RETURNING lease_token, lease_expires
        """,
        {"stack": stack, "holder": holder, "operation": operation, "ttl": ttl, "now": now},
    ).fetchall()
    if not taken:
        refuse_leased(db, stack, called, now)
    return Lease(*taken[0])


def renew(db: sqlite_utils.Database, stack: str, token: int, ttl: int, now: int) -> int:
    """
    Let the lease last *ttl* microseconds from now.

    Returns:
        When it ends.

    Raises:
        LeaseLost: It is over, or the stack is gone.
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    _end_at(db, stack, token, now + ttl, now)
    return now + ttl


def check(db: sqlite_utils.Database, stack: str, token: int, now: int) -> None:
    """
    Fence a write: the write lock of the transaction sees to it that what is true here is true when it commits.

    Raises:
        LeaseLost: It is over, or the stack is gone.
    """
    if not holds(db, stack, token, now):
        raise LeaseLost(stack, token)


def release(db: sqlite_utils.Database, stack: str, token: int, now: int) -> None:
    """
    Give the lease back.

    Raises:
        LeaseLost: It is over, or the stack is gone.
    """
    _end_at(db, stack, token, FREE, now)


def refuse_leased(db: sqlite_utils.Database, stack: str, called: str, now: int) -> None:
    """
    Do nothing, unless somebody holds the lease.

    Raises:
        StackLeased: Names who.
    """
    held = _held(db, stack, now)
    if held:
        holder, operation, expires = held
        raise StackLeased(called, holder, operation, rfc3339(expires))


def is_held(db: sqlite_utils.Database, stack: str, now: int) -> bool:
    """Whether somebody holds the lease."""
    return _held(db, stack, now) is not None


def holds(db: sqlite_utils.Database, stack: str, token: int, now: int) -> bool:
    """Whether the lease with *token* lasts."""
    return bool(
        db.execute(
            "SELECT 1 FROM stacks WHERE id = ? AND lease_token = ? AND lease_expires >= ?", [stack, token, now]
        ).fetchone()
    )


def was_given_back(db: sqlite_utils.Database, stack: str, token: int) -> bool:
    """Whether the lease with *token* was the last one on the stack and its operation ended it, rather than time."""
    return bool(
        db.execute(
            "SELECT 1 FROM stacks WHERE id = ? AND lease_token = ? AND lease_expires = ?", [stack, token, FREE]
        ).fetchone()
    )


def rfc3339(microseconds: int) -> str:
    """A time in microseconds since 1970 as people read it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")


def _held(db: sqlite_utils.Database, stack: str, now: int) -> tuple[str, str, int] | None:
    held: tuple[str, str, int] | None = db.execute(
        "SELECT lease_holder, lease_operation, lease_expires FROM stacks WHERE id = ? AND lease_expires >= ?",
        [stack, now],
    ).fetchone()
    return held


def _end_at(db: sqlite_utils.Database, stack: str, token: int, expires: int, now: int) -> None:
    written = db.execute(
        "UPDATE stacks SET lease_expires = ? WHERE id = ? AND lease_token = ? AND lease_expires >= ?",
        [expires, stack, token, now],
    )
    if not written.rowcount:
        raise LeaseLost(stack, token)


def _check_ttl(ttl: int) -> None:
    if not SHORTEST <= ttl <= LONGEST:
        raise RequestInvalid("ttl", "a lease lasts from 1 s to 10 min")
