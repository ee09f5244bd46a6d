"""Records of stacks, by id and by name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from services.core.errors import (
    RequestInvalid,
    StackExists,
    StackMoved,
    StackNotEmpty,
    StackNotFound,
)
from services.core.model import InventoryEntry, Key, StackRecord, Target
from stack_svc.rules import leases, requests, reservations, sanitize, unstarted
from stack_svc.rules.requests import RequestId
from stack_svc.store.stacks import Choice, Stack, StackName, State
from stack_svc.store.store import ReadTransaction, Transaction

ID_BYTES = 8
"""Bytes of the id of a stack, which is written in hexadecimal digits (stack.proto)."""

LONGEST_NAME = 200
"""In characters (stack.proto)."""


@dataclass(frozen=True, slots=True)
class NewStack:
    """
    What a new stack gets beside its name.

    Attributes:
        id: Its id.
        description: Free text.
        urls: Addresses of packages, checked.
        policy: Its policy, checked.
    """

    id: str
    description: str = ""
    urls: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)

    def written_to(self, stack: Stack) -> Stack:
        """*stack* with this description, these URLs and this policy."""
        record = replace(stack.record, urls=self.urls, policy=self.policy)
        return replace(stack, record=record, description=sanitize.clean(self.description))


ResourcePlace = tuple[str, int, str, str]
"""Id and generation of a stack, with kind and name of the last entry of a page of its inventory."""

FIRST_RESOURCE: ResourcePlace = ("", 0, "", "")
"""Before every entry of every stack."""


def check_name(name: str, field: str = "name") -> None:
    """
    Accept a name for a stack.

    Raises:
        RequestInvalid: It is not 1 to 200 printable characters, or begins or ends with a blank.
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
    """The etag, which each change of a stack changes; it includes the time, as a restored store repeats its counts."""
    counted = f"{stack.record.id} {stack.version} {stack.record.generation} {stack.update_time}"
    return blake2b(counted.encode(), digest_size=8).hexdigest()


def id_for_plan(plan: str) -> str:
    """
    The id of the stack that a stored plan creates.

    A store that was restored from a backup creates the stack again with the same id, so the platform knows the tokens
    of the stack (docs/architecture.md, "Crashes and recovery").
    """
    return blake2b(plan.encode(), digest_size=ID_BYTES).hexdigest()


def visible(stack: Stack | None, choice: Choice) -> Stack:
    """
    The stack that *choice* found; a stack that is not active is found by its id only.

    Raises:
        StackNotFound: There is none.
    """
    if isinstance(choice, StackName):
        if stack is None or stack.is_pending:
            raise StackNotFound(choice.name)
    elif stack is None:
        raise StackNotFound(choice)
    return stack


def existing(reading: ReadTransaction, choice: Choice) -> Stack:
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
    visible_stack = visible(stack, choice)
    if visible_stack.state is not State.ACTIVE:
        raise StackNotFound(visible_stack.called)
    return visible_stack


@dataclass(frozen=True, slots=True)
class Page:
    """
    A page of the inventory of a stack.

    Attributes:
        stack: The stack.
        entries: The entries; one more than the page size when more follow.
        without_baseline: Keys of the entries without a baseline.
    """

    stack: Stack
    entries: Sequence[InventoryEntry]
    without_baseline: Collection[Key]


def resources(reading: ReadTransaction, choice: Choice, after: ResourcePlace, size: int) -> Page:
    """
    Read one page of the inventory of a stack, sorted by kind and name.

    Args:
        reading: The store.
        choice: The stack; as for ``visible``.
        after: The last entry of the page before.
        size: Entries on the page.

    Raises:
        StackNotFound: There is no such stack.
        StackMoved: The page before belongs to another generation.
        RequestInvalid: The page before belongs to another stack, such as an earlier one of the same name.
    """
    stack = existing(reading, choice)
    record = stack.record
    if after != FIRST_RESOURCE and after[0] != record.id:
        raise RequestInvalid("page_token", f"belongs to another stack than {record.id}; start with the first page")
    if after != FIRST_RESOURCE and after[1] != record.generation:
        raise StackMoved(stack.called, after[1], record.generation)
    entries = reading.inventory.page(record.id, Key(*after[2:]), size + 1)
    return Page(stack, entries, _without_baseline(reading, record.id, entries))


def nameless(reading: ReadTransaction, target: Target, keys: Collection[Key]) -> list[tuple[Page, int]]:
    """
    Read the active stacks of *target* without a name that have entries of *keys*, the newest first.

    Returns:
        For each stack these entries, sorted by key, and the number of all its entries; without pending deletions.
    """
    return [
        (
            Page(existing(reading, each.id), each.entries, _without_baseline(reading, each.id, each.entries)),
            each.entry_count,
        )
        for each in reading.inventory.of_nameless(target, keys)
    ]


def _without_baseline(reading: ReadTransaction, stack: str, entries: Iterable[InventoryEntry]) -> set[Key]:
    return {*reading.baselines.lacking(stack, [entry.key for entry in entries])}


def create(tx: Transaction, named: StackName, new: NewStack, request: RequestId) -> Stack:
    """
    Create an empty stack, once for each request; an empty name is none.

    Raises:
        RequestInvalid: The name is no name for a stack.
        RequestIdReused: The request id was used with other content.
        StackExists: Another stack has the name, or a running first apply.
        StackLeased: An action set has the name reserved.
        OperationUnfinished: A first apply that has to be recovered has the name.
        StackNotFound: This request created a stack before, which was deleted.
    """
    check_new_name(named.name)
    taken = tx.lock_stack(named) if named.name else None
    now = tx.now()
    if earlier_id := requests.earlier_answer(tx, request, now):
        return existing(tx, earlier_id)
    free_name(tx, taken, named, now)
    stack = new_stack(named, new, State.ACTIVE, now)
    if not tx.stacks.insert(stack):
        raise StackExists(named.name, named.target.org)
    requests.store_answer(tx, request, new.id, now)
    return stack


def new_stack(named: StackName, new: NewStack, state: State, now: int) -> Stack:
    """An empty stack, created at *now*."""
    return new.written_to(Stack(StackRecord(new.id, named.target, named.name, 0), "", state, now, now))


def delete(tx: Transaction, choice: Choice) -> None:
    """
    Remove the record of a stack that owns nothing and has no unfinished operation.

    Raises:
        StackNotFound: There is none.
        StackLeased: An operation runs on it, or an action set has it reserved.
        OperationUnfinished: An operation on it has to be recovered.
        StackNotEmpty: It owns resources.
    """
    stack = visible(tx.lock_stack(choice), choice)
    refuse_in_use(tx, stack, tx.now())
    if stack.resource_count:
        raise StackNotEmpty(stack.called, stack.resource_count)
    tx.stacks.delete(stack.record.id)


def free_name(tx: Transaction, stack: Stack | None, named: StackName, now: int) -> None:
    """
    Free a name for a stack that gets it.

    Args:
        tx: The transaction.
        stack: The stack with that name, locked. It is removed if it is that of a first apply that died before it sent
            anything. None: there is none.
        named: The name.
        now: The time.

    Raises:
        StackExists: The name is taken.
        StackLeased: An action set has the name reserved.
        OperationUnfinished: The first apply may have sent something and has to be recovered.
    """
    if stack is None:
        reservations.refuse_reserved_name(tx, named)
        return
    lease = tx.leases.of(stack.record.id)
    if not stack.is_pending or (lease and not leases.is_free(lease, now)):
        raise StackExists(named.name, named.target.org)
    refuse_in_use(tx, stack, now)
    tx.stacks.delete(stack.record.id)


def refuse_in_use(tx: Transaction, stack: Stack, now: int) -> None:
    """
    Do nothing for a stack that no action set has reserved, and without an unfinished operation; an operation that died
    before it started is ended.

    Raises:
        StackLeased: An operation runs on it, or an action set has it reserved.
        OperationUnfinished: An operation on it has to be recovered.
    """
    reservations.refuse_reserved(tx, stack)
    if lease := tx.leases.of(stack.record.id):
        leases.refuse_leased(lease, stack, now)
        unstarted.end_dead(tx, stack, now)
