"""Stacks: their records, by id and by name."""

import secrets
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson
import sqlite_utils

from services.core.errors import RequestInvalid, StackExists, StackMoved, StackNotEmpty, StackNotFound
from services.core.model import InventoryEntry, Key, StackRecord, Target
from stack_svc import inventory, leases, operations, requests

LONGEST_NAME = 200
"""In characters (stack.proto)."""

Place = tuple[str, str]
"""Name and id of the last stack of a page."""

START: Place = ("", "")
"""Before every stack: ids are never empty."""

ResourcePlace = tuple[str, int, str, str]
"""Id and generation of a stack, with kind and name of the last entry of a page of what it owns."""

FIRST_RESOURCE: ResourcePlace = ("", 0, "", "")
"""Before every entry of every stack."""


class State(StrEnum):
    """
    Whether a stack exists for everybody.

    PENDING is the stack of a first apply that is not over: only who knows its id sees it, and when its operation died
    before it sent anything, it belongs to the next who wants the name. NAMELESS is one that carries the lease of an
    operation on behalf of no stack and owns nothing; it goes away with the operation.
    """

    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    NAMELESS = "NAMELESS"


@dataclass(frozen=True, slots=True)
class Named:
    """A stack by target and name."""

    target: Target
    name: str


Choice = str | Named
"""How a caller names a stack: by id or by target and name."""


@dataclass(frozen=True, slots=True)
class Stack:
    """
    A stack as the store has it.

    Attributes:
        record: What plans are made from; without resources where a function says so.
        description: Free text.
        state: Whether it exists for everybody.
        create_time: In microseconds since 1970, as is ``update_time``.
        update_time: When the record last changed; never before ``create_time``.
        resource_count: Number of resources that it owns.
    """

    record: StackRecord
    description: str
    state: State
    create_time: int
    update_time: int
    resource_count: int

    @property
    def called(self) -> str:
        """What people call it: its name, or its id when it has none."""
        return self.record.name or self.record.id

    @property
    def is_pending(self) -> bool:
        """Whether it goes away unless its operation succeeds."""
        return self.state is State.PENDING


def check_name(name: str, field: str = "name") -> None:
    """
    Accept a name for a stack.

    Raises:
        RequestInvalid: It is not 1 to 200 printable characters, or has a blank at an end.
    """
    if not (1 <= len(name) <= LONGEST_NAME and name.isprintable() and name == name.strip()):
        raise RequestInvalid(
            field, f"a stack's name is 1 to {LONGEST_NAME} printable characters without blanks at the ends"
        )


def find(db: sqlite_utils.Database, choice: Choice) -> Stack | None:
    """The stack in any state, without its resources."""
    if isinstance(choice, Named):
        where, values = (
            "platform = ? AND org = ? AND name = ?",
            [choice.target.platform, choice.target.org, choice.name],
        )
    else:
        where, values = "id = ?", [choice]
    return next((_stack(row) for row in db.query(f"{_SELECT} WHERE {where}", values)), None)


def header(db: sqlite_utils.Database, choice: Choice) -> Stack:
    """
    The stack without its resources. One that is not active is found by id only.

    Raises:
        StackNotFound: There is none.
    """
    stack = find(db, choice)
    if isinstance(choice, Named):
        if stack is None or stack.state is State.PENDING:
            raise StackNotFound(choice.name)
    elif stack is None:
        raise StackNotFound(choice)
    return stack


def whole(db: sqlite_utils.Database, choice: Choice) -> Stack:
    """
    The stack with its resources; otherwise as ``header``.

    Raises:
        StackNotFound: There is none.
    """
    stack = header(db, choice)
    return replace(stack, record=replace(stack.record, resources=inventory.read(db, stack.record.id)))


def page(db: sqlite_utils.Database, target: Target | None, after: Place, size: int) -> list[Stack]:
    """
    Read one page of stacks, sorted by name and id, without resources; active ones only.

    Args:
        db: The store.
        target: Only stacks of this target; None for all.
        after: The last stack of the page before.
        size: Stacks on the page.

    Returns:
        The stacks; one more than the page has when more follow.
    """
    where, values = "state = 'ACTIVE' AND (name, id) > (?, ?)", [*after]
    if target:
        where, values = f"{where} AND platform = ? AND org = ?", [*values, target.platform, target.org]
    rows = db.query(f"{_SELECT} WHERE {where} ORDER BY name, id LIMIT ?", [*values, size + 1])
    return [_stack(row) for row in rows]


def resources(
    db: sqlite_utils.Database, choice: Choice, after: ResourcePlace, size: int
) -> tuple[Stack, list[InventoryEntry]]:
    """
    Read one page of what a stack owns, sorted by kind and name.

    Args:
        db: The store.
        choice: The stack; as for ``header``.
        after: The last entry of the page before.
        size: Entries on the page.

    Returns:
        The stack, without its resources, and the entries; one more than the page has when more follow.

    Raises:
        StackNotFound: There is no such stack.
        StackMoved: The page before was of another generation.
        RequestInvalid: The page before was of another stack, such as one that had the name before.
    """
    stack = header(db, choice)
    record = stack.record
    if after != FIRST_RESOURCE and after[0] != record.id:
        raise RequestInvalid("page_token", f"is of another stack than {record.id}; begin again")
    if after != FIRST_RESOURCE and after[1] != record.generation:
        raise StackMoved(stack.called, after[1], record.generation)
    return stack, inventory.page(db, record.id, Key(*after[2:]), size + 1)


def create(db: sqlite_utils.Database, named: Named, description: str, request_id: str, now: int) -> Stack:
    """
    Make an empty stack, once for each request id (an empty one gives no such protection).

    Raises:
        RequestInvalid: The name is no name for a stack.
        RequestIdReused: The request id was used with other content.
        StackExists: The name is taken, if only by an apply that is still at work.
        OperationUnfinished: The name is taken by an apply that waits to be recovered.
        StackNotFound: This request made a stack, which was deleted since.
    """
    check_name(named.name)
    content = [named.target.platform, named.target.org, named.name, description]
    if request_id and (made := requests.earlier_answer(db, request_id, content, now)):
        return header(db, made)
    _free_name(db, named, now)
    stack = insert(db, named, description, State.ACTIVE, now)
    if request_id:
        requests.remember(db, request_id, content, stack.record.id, now)
    return stack


def insert(db: sqlite_utils.Database, named: Named, description: str, state: State, now: int) -> Stack:
    """Add an empty stack, whose name is free, under a new random id."""
    stack_id = f"{secrets.randbelow(2**64 - 1) + 1:016x}"
    db.table("stacks").insert(
        {
            "id": stack_id,
            "platform": named.target.platform,
            "org": named.target.org,
            "name": named.name,
            "description": description,
            "state": state,
            "create_time": now,
            "update_time": now,
        }
    )
    return header(db, stack_id)


def update(db: sqlite_utils.Database, stack: str, changes: dict[str, Any]) -> None:
    """Set columns of a stack that exists."""
    db.table("stacks").update(stack, changes)


def delete(db: sqlite_utils.Database, choice: Choice, now: int) -> None:
    """
    Remove the record of a stack that owns nothing and that nobody works on.

    Raises:
        StackNotFound: There is none.
        StackLeased: An operation is at work on it.
        OperationUnfinished: An operation on it waits to be recovered.
        StackNotEmpty: It owns resources.
    """
    stack = header(db, choice)
    stack_id = stack.record.id
    leases.refuse_leased(db, stack_id, stack.called, now)
    _refuse_unfinished(db, stack, now)
    if stack.resource_count:
        raise StackNotEmpty(stack.called, stack.resource_count)
    drop(db, stack_id)


def drop(db: sqlite_utils.Database, stack: str) -> None:
    """Remove a stack with its lease and its inventory, which goes with it by foreign key."""
    db.table("stacks").delete(stack)


def drop_nameless(db: sqlite_utils.Database) -> None:
    """Remove the nameless stacks whose operation ended without doing so, as its applier died."""
    for (stack,) in db.execute("SELECT id FROM stacks WHERE state = 'NAMELESS'").fetchall():
        if not operations.is_unfinished_on(db, stack):
            drop(db, stack)


def _free_name(db: sqlite_utils.Database, named: Named, now: int) -> None:
    """
    Make sure that the name is free; what a first apply left behind when it died before it sent anything gives way.

    Raises:
        StackExists: The name is taken.
        OperationUnfinished: What the first apply sent has to be recovered.
    """
    stack = find(db, named)
    if stack is None:
        return
    if stack.state is State.ACTIVE or leases.is_held(db, stack.record.id, now):
        raise StackExists(named.name, named.target.org)
    _refuse_unfinished(db, stack, now)
    drop(db, stack.record.id)


def _refuse_unfinished(db: sqlite_utils.Database, stack: Stack, now: int) -> None:
    """Refuse to remove a stack, whose lease nobody holds, from under an operation that sent something."""
    operations.end_dead(db, now)
    operations.refuse_unfinished(db, stack.record.id, stack.called)


_SELECT = """
    SELECT id, platform, org, name, description, state, generation, sources, create_time, update_time,
        (SELECT COUNT(*) FROM inventory WHERE inventory.stack = stacks.id) AS resource_count
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
        ),
        description=row["description"],
        state=State(row["state"]),
        create_time=row["create_time"],
        update_time=row["update_time"],
        resource_count=row["resource_count"],
    )
