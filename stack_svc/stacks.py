"""Stacks: their records, by id and by name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from services.core.errors import (
    RequestInvalid,
    StackExists,
    StackMoved,
    StackNotEmpty,
    StackNotFound,
)
from services.core.model import InventoryEntry, Key, StackRecord
from services.kinds.policy import NO_POLICY
from stack_svc import leases, preparing, requests, texts
from stack_svc.requests import Request
from stack_svc.store.stacks import Choice, Named, Stack, State
from stack_svc.store.store import Reading, Transaction

ID_BYTES = 8
"""Of the id of a stack, which is in hexadecimal digits (stack.proto)."""

LONGEST_NAME = 200
"""In characters (stack.proto)."""

ResourcePlace = tuple[str, int, str, str]
"""Id and generation of a stack, with kind and name of the last entry of a page of what it owns."""

FIRST_RESOURCE: ResourcePlace = ("", 0, "", "")
"""Before every entry of every stack."""


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


def check_new_name(name: str) -> None:
    """
    Accept a name for a stack that may have none.

    Raises:
        RequestInvalid: It is neither empty nor a name.
    """
    if name:
        check_name(name)


def etag_of(stack: Stack) -> str:
    """What changes with each change of a stack; its time is in it, as a restored store counts anew."""
    counted = f"{stack.record.id} {stack.version} {stack.record.generation} {stack.update_time}"
    return blake2b(counted.encode(), digest_size=8).hexdigest()


def id_for_plan(plan: str) -> str:
    """
    The id of the stack that a stored plan makes.

    A store that was restored from a backup makes it again with the same id, so the platform knows its tokens (11.4).
    """
    return blake2b(plan.encode(), digest_size=ID_BYTES).hexdigest()


def visible(stack: Stack | None, choice: Choice) -> Stack:
    """
    The stack that *choice* found. One that is not active is found by id only.

    Raises:
        StackNotFound: There is none.
    """
    if isinstance(choice, Named):
        if stack is None or stack.is_pending:
            raise StackNotFound(choice.name)
    elif stack is None:
        raise StackNotFound(choice)
    return stack


def existing(reading: Reading, choice: Choice) -> Stack:
    """
    Read a stack; errors as for ``visible``.

    Raises:
        StackNotFound: There is none.
    """
    return visible(reading.stacks.find(choice), choice)


def active(stack: Stack | None, choice: Choice) -> Stack:
    """
    The stack that *choice* found, if its first apply is over; errors as for ``visible``.

    Raises:
        StackNotFound: There is none, or its first apply is not over.
    """
    found = visible(stack, choice)
    if found.state is not State.ACTIVE:
        raise StackNotFound(found.called)
    return found


@dataclass(frozen=True, slots=True)
class Page:
    """
    A page of what a stack owns.

    Attributes:
        stack: The stack.
        entries: The entries; one more than the page has when more follow.
        without_baseline: Keys of those of them that have no baseline.
    """

    stack: Stack
    entries: Sequence[InventoryEntry]
    without_baseline: Collection[Key]


def resources(reading: Reading, choice: Choice, after: ResourcePlace, size: int) -> Page:
    """
    Read one page of what a stack owns, sorted by kind and name.

    Args:
        reading: The store.
        choice: The stack; as for ``visible``.
        after: The last entry of the page before.
        size: Entries on the page.

    Raises:
        StackNotFound: There is no such stack.
        StackMoved: The page before was of another generation.
        RequestInvalid: The page before was of another stack, such as one that had the name before.
    """
    stack = existing(reading, choice)
    record = stack.record
    if after != FIRST_RESOURCE and after[0] != record.id:
        raise RequestInvalid("page_token", f"is of another stack than {record.id}; begin again")
    if after != FIRST_RESOURCE and after[1] != record.generation:
        raise StackMoved(stack.called, after[1], record.generation)
    entries = reading.inventory.page(record.id, Key(*after[2:]), size + 1)
    return Page(stack, entries, reading.baselines.lacking(record.id, [entry.key for entry in entries]))


def create(
    tx: Transaction,
    named: Named,
    description: str,
    urls: tuple[str, ...],
    request: Request,
    stack_id: str,
    policy: Mapping[str, Any] = NO_POLICY,
) -> Stack:
    """
    Make an empty stack under a new id, once for each request; with an empty name it has none.

    Raises:
        RequestInvalid: The name is no name for a stack.
        RequestIdReused: The request id was used with other content.
        StackExists: The name is taken, if only by an apply that is still at work.
        OperationUnfinished: The name is taken by an apply that waits to be recovered.
        StackNotFound: This request made a stack, which was deleted since.
    """
    check_new_name(named.name)
    taken = tx.lock_stack(named) if named.name else None
    now = tx.now()
    if made := requests.earlier_answer(tx, request, now):
        return existing(tx, made)
    if taken:
        give_way(tx, taken, named, now)
    stack = new_stack(named, stack_id, texts.clean(description), State.ACTIVE, now)
    stack = replace(stack, record=replace(stack.record, urls=urls, policy=policy))
    if not tx.stacks.insert(stack):
        raise StackExists(named.name, named.target.org)
    requests.remember(tx, request, stack_id, now)
    return stack


def new_stack(named: Named, stack_id: str, description: str, state: State, now: int) -> Stack:
    """An empty stack that is made now."""
    return Stack(StackRecord(stack_id, named.target, named.name, 0), description, state, now, now)


def delete(tx: Transaction, choice: Choice) -> None:
    """
    Remove the record of a stack that owns nothing and that nobody works on.

    Raises:
        StackNotFound: There is none.
        StackLeased: An operation is at work on it.
        OperationUnfinished: An operation on it waits to be recovered.
        StackNotEmpty: It owns resources.
    """
    stack = visible(tx.lock_stack(choice), choice)
    refuse_worked_on(tx, stack, tx.now())
    if stack.resource_count:
        raise StackNotEmpty(stack.called, stack.resource_count)
    tx.stacks.delete(stack.record.id)


def give_way(tx: Transaction, stack: Stack, named: Named, now: int) -> None:
    """
    Free the name of *stack*, if a first apply left it behind that died before it sent anything.

    Raises:
        StackExists: The name is taken.
        OperationUnfinished: What the first apply sent has to be recovered.
    """
    lease = tx.leases.of(stack.record.id)
    if not stack.is_pending or (lease and not leases.is_free(lease, now)):
        raise StackExists(named.name, named.target.org)
    refuse_worked_on(tx, stack, now)
    tx.stacks.delete(stack.record.id)


def refuse_worked_on(tx: Transaction, stack: Stack, now: int) -> None:
    """
    Do nothing for a stack that nobody works on.

    Raises:
        StackLeased: An operation is at work on it.
        OperationUnfinished: An operation on it waits to be recovered.
    """
    if lease := tx.leases.of(stack.record.id):
        leases.refuse_leased(lease, stack, now)
        preparing.end_dead(tx, stack, now)
