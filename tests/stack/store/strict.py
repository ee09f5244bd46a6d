"""
Wrappers of a store that check that their callers keep to the protocol of a store (docs/reference/engine.md, "Store").
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Swept, Transaction

T = TypeVar("T")


class _RolledBackError(Exception):
    """Ends the first of two runs."""


class Twice:
    """Runs each piece of work once, rolls it back, and runs it again, because work may run more than once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, work: Callable[[Transaction], T]) -> T:
        def rehearse(tx: Transaction) -> None:
            work(tx)
            raise _RolledBackError

        with suppress(_RolledBackError):
            await self._store.write(rehearse)
        return await self._store.write(work)

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        await self._store.read(work)
        return await self._store.read(work)

    async def sweep(self, limits: RetentionLimits) -> Swept:
        return await self._store.sweep(limits)

    async def close(self) -> None:
        await self._store.close()


class BrokenRuleError(AssertionError):
    """Work does not keep to the protocol."""


_LATE = {
    "stacks": {"update", "delete"},
    "leases": {"put"},
    "operations": {"update", "block", "unblock", "delete"},
    "journal": {"append"},
    "inventory": {"change"},
    "owners": {"release", "drop"},
    "uses": {"add", "remove", "drop"},
    "plans": {"update"},
    "packages": {"change"},
    "plan_packages": {"add"},
    "revision_contents": {"add"},
    "attachments": {"put", "complete"},
    "revisions": {"add", "prune"},
    "baselines": {"put", "rebind"},
    "drift_checks": {"put"},
    "requests": {"forget"},
    "action_sets": {"begin"},
    "reservations": {"drop"},
    "snapshots": {"release"},
}
"""Writes that return nothing: they may be delayed until the commit."""

_AT_ONCE = {
    "stacks": {"insert", "edit"},
    "attachments": {"keep"},
    "operations": {"insert"},
    "owners": {"take"},
    "plans": {"insert"},
    "requests": {"put"},
    "repositories": {"insert", "change", "delete"},
    "definitions": {"insert", "replace", "delete"},
    "action_sets": {"insert"},
    "reservations": {"insert"},
    "snapshots": {"insert", "use", "delete"},
}
"""Writes that return conflicts, or rows: they are sent at once, after all delayed ones."""

WRITES = {table: _LATE.get(table, set()) | _AT_ONCE.get(table, set()) for table in {*_LATE, *_AT_ONCE}}
"""All writes, by table."""


class Late:
    """Delays writes, so that work cannot read its own writes, and refuses writes to stacks that are not locked."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def write(self, work: Callable[[Transaction], T]) -> T:
        def run(tx: Transaction) -> T:
            late: Any = _LateTransaction(tx)
            result = work(late)
            late.flush()
            return result

        return await self._store.write(run)

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        return await self._store.read(work)

    async def sweep(self, limits: RetentionLimits) -> Swept:
        return await self._store.sweep(limits)

    async def close(self) -> None:
        await self._store.close()


class _LateTransaction:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._waiting: list[Callable[[], object]] = []
        self._locked: set[str] = set()
        for table in {*_LATE, *_AT_ONCE}:
            setattr(self, table, _LateTable(self, table, getattr(tx, table)))

    def now(self) -> int:
        return self._tx.now()

    def lock_stack(self, choice: Any) -> Any:
        if self._waiting:
            raise BrokenRuleError("a stack is locked after something was written")
        stack = self._tx.lock_stack(choice)
        if stack:
            self._locked.add(stack.record.id)
        return stack

    def put_off(self, write: Callable[[], object]) -> None:
        self._waiting.append(write)

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for write in waiting:
            write()

    def check(self, table: str, name: str, subject: Any) -> None:
        """Check that a write is about a locked stack; an inserted stack counts as locked."""
        match table, name:
            case "stacks", "insert":
                self._locked.add(subject.record.id)
                return
            case "stacks", "update" | "edit":
                stack = subject.record.id
            case ("stacks", "delete") | (
                "leases"
                | "inventory"
                | "owners"
                | "uses"
                | "revisions"
                | "revision_contents"
                | "baselines"
                | "packages",
                _,
            ):
                stack = subject
            case "operations", "insert" | "update":
                stack = subject.stack
            case "reservations", "insert" if subject.stack:
                stack = subject.stack
            case _:
                return
        if stack not in self._locked:
            raise BrokenRuleError(f"{table}.{name} writes for stack {stack}, which is not locked")


class _LateTable:
    def __init__(self, transaction: _LateTransaction, name: str, table: Any) -> None:
        self._transaction = transaction
        self._name = name
        self._table = table

    def __getattr__(self, name: str) -> Any:
        method, transaction = getattr(self._table, name), self._transaction

        def late(*arguments: Any) -> None:
            transaction.check(self._name, name, arguments[0])
            transaction.put_off(lambda: method(*arguments))

        def at_once(*arguments: Any) -> Any:
            transaction.check(self._name, name, arguments[0])
            transaction.flush()
            return method(*arguments)

        if name in _LATE.get(self._name, ()):
            return late
        return at_once if name in _AT_ONCE.get(self._name, ()) else method


def strict(store: Store) -> Store:
    """*store*, wrapped in both."""
    return Late(Twice(store))
