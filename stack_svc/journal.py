"""
The life of an operation on a stack: it begins with a lease and ends with one fenced write (engine.md 6).

An applier that got no answer to its last write sends it again, so each of the three endings, when it has taken effect
and nobody worked on the stack since, answers as it did before.
"""

from collections.abc import Collection
from typing import Any

import orjson
import sqlite_utils

from services.core.errors import RequestInvalid, StackMoved
from services.core.model import InventoryEntry
from stack_svc import inventory, leases, stacks
from stack_svc.leases import Lease
from stack_svc.stacks import Choice, Named, Stack, State


def begin(
    db: sqlite_utils.Database, choice: Choice, create_missing: bool, operation: str, holder: str, ttl: int, now: int
) -> tuple[Stack, Lease]:
    """
    Take the lease of a stack for one operation.

    Args:
        db: In a write transaction.
        choice: The stack.
        create_missing: A stack named by a name that does not exist is made, pending until the operation succeeds; one
            that an earlier operation left pending is taken over when its lease ran out.
        operation: Name of the operation.
        holder: Who works on it.
        ttl: Microseconds that the lease lasts without renewal.
        now: The time.

    Raises:
        StackNotFound: There is no such stack and none is to be made.
        StackLeased: Another operation holds the lease.
        RequestInvalid: *operation* or *holder* is empty, *ttl* is out of bounds, or the name is none for a stack.
    """
    for field, value in (("operation", operation), ("holder", holder)):
        if not value:
            raise RequestInvalid(field, "must not be empty")
    stack = _stack_to_work_on(db, choice, create_missing, now)
    lease = leases.acquire(db, stack.record.id, stack.called, holder, operation, ttl, now)
    return stacks.whole(db, stack.record.id), lease


def record(
    db: sqlite_utils.Database,
    stack_id: str,
    token: int,
    base_generation: int,
    resources: Collection[InventoryEntry],
    sources: Collection[str],
    platform_changed: bool,
    now: int,
) -> Stack:
    """
    End an operation with what the stack owns now.

    When it owns the same as before and the platform did not change either, generation, sources and update time stay as
    they are; a pending stack becomes an active one in any case, made now.

    Raises:
        LeaseLost: The lease is over.
        StackMoved: The plan was made from another generation.
        RequestInvalid: *resources* contradict each other.
        ResourceOwned: Another stack owns one of the *resources*.
    """
    if leases.was_given_back(db, stack_id, token):
        stack = stacks.whole(db, stack_id)
        if inventory.content(stack.record.resources) == inventory.content(resources):
            return stack
    leases.release(db, stack_id, token, now)
    stack = _at_generation(db, stack_id, base_generation)
    changes: dict[str, Any] = {}
    if inventory.write(db, stack_id, stack.record.target, resources) or platform_changed:
        changes |= {
            "generation": base_generation + 1,
            "sources": orjson.dumps(list(sources)).decode(),
            # Clocks are set back at times; a record is never updated before it was made.
            "update_time": max(now, stack.update_time),
        }
    if stack.state is State.PENDING:
        changes |= {"state": State.ACTIVE, "create_time": now, "update_time": now}
    if changes:
        stacks.update(db, stack_id, changes)
    return stacks.whole(db, stack_id)


def abandon(db: sqlite_utils.Database, stack_id: str, token: int, now: int) -> Stack | None:
    """
    End an operation that left nothing behind: at whatever generation, the record stays, and a pending stack goes away.

    Returns:
        The stack; None when it went away, now or before.

    Raises:
        LeaseLost: The lease is over.
    """
    if stacks.find(db, stack_id) is None:
        return None
    if not leases.was_given_back(db, stack_id, token):
        leases.release(db, stack_id, token, now)
    stack = stacks.whole(db, stack_id)
    if stack.state is State.ACTIVE:
        return stack
    stacks.drop(db, stack_id)
    return None


def remove(db: sqlite_utils.Database, stack_id: str, token: int, base_generation: int, now: int) -> None:
    """
    End an operation after which the stack owns nothing and goes away.

    Raises:
        LeaseLost: The lease is over; not when the stack is gone already.
        StackMoved: The plan was made from another generation.
    """
    if stacks.find(db, stack_id) is None:
        return
    leases.release(db, stack_id, token, now)
    _at_generation(db, stack_id, base_generation)
    stacks.drop(db, stack_id)


def _stack_to_work_on(db: sqlite_utils.Database, choice: Choice, create_missing: bool, now: int) -> Stack:
    if not (create_missing and isinstance(choice, Named)):
        return stacks.header(db, choice)
    return stacks.find(db, choice) or stacks.insert(db, choice, "", State.PENDING, now)


def _at_generation(db: sqlite_utils.Database, stack_id: str, base_generation: int) -> Stack:
    stack = stacks.header(db, stack_id)
    if stack.record.generation != base_generation:
        raise StackMoved(stack.called, base_generation, stack.record.generation)
    return stack
