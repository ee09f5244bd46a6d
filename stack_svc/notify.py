"""Wakes the watchers of a stack when a transaction of this process may have changed what they receive."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from services.core.errors import ServiceUnavailable
from services.engine.operation import FINISHED, OperationState
from services.times import Times
from stack_svc.store.operations import Operation
from stack_svc.store.reservations import Reservation
from stack_svc.store.stacks import Stack
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store, Swept, Transaction

T = TypeVar("T")


class Watchers:
    """The watchers that wait, by stack."""

    def __init__(self, longest: float = Times().watch) -> None:
        """*longest* is the longest time between two reads of a watcher, in seconds."""
        self._longest = longest
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._is_closed = False

    @contextmanager
    def waiting(self, stack: str) -> Iterator[asyncio.Event]:
        """An event that is set when *stack* may have changed."""
        event = asyncio.Event()
        self._waiting[stack].add(event)
        try:
            yield event
        finally:
            self._waiting[stack].discard(event)
            if not self._waiting[stack]:
                del self._waiting[stack]

    async def next_change(self, event: asyncio.Event) -> None:
        """
        Wait until *event* is set, at most until its next read is due, and clear it.

        Raises:
            ServiceUnavailable: The service is shutting down.
        """
        if not self._is_closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), self._longest)
        if self._is_closed:
            raise ServiceUnavailable("stack", "this one", "it is shutting down", answered=True)
        event.clear()

    def wake(self, stack: str) -> None:
        """Wake the watchers of *stack*."""
        for event in self._waiting.get(stack, ()):
            event.set()

    async def close(self) -> None:
        """Wake all watchers, whose waits then raise an error: the service is shutting down."""
        self._is_closed = True
        for stack in list(self._waiting):
            self.wake(stack)


class NotifyingStore:
    """A store that wakes the watchers of the stacks that a transaction has changed, after its commit."""

    def __init__(self, store: Store, watchers: Watchers) -> None:
        self._store = store
        self._watchers = watchers

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run *work*, and wake the watchers of the stacks that it changed."""
        changed: set[str] = set()

        def tracked(tx: Transaction) -> T:
            # The store may run it more than once.
            changed.clear()
            return work(cast(Transaction, _TrackedTransaction(tx, changed)))

        result = await self._store.write(tracked)
        for stack in changed:
            self._watchers.wake(stack)
        return result

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run *work* on a snapshot."""
        return await self._store.read(work)

    async def sweep(self, limits: RetentionLimits) -> Swept:
        """Remove one batch of rows that are no longer needed, without waking watchers."""
        return await self._store.sweep(limits)

    async def close(self) -> None:
        """Close the store."""
        await self._store.close()


class _TrackedTransaction:
    """A transaction that collects the ids of the stacks whose record or operations it changes."""

    def __init__(self, tx: Transaction, changed: set[str]) -> None:
        self._tx = tx
        self.stacks = _TrackedTable(tx.stacks, changed)
        self.operations = _TrackedTable(tx.operations, changed)
        self.drift_checks = _TrackedTable(tx.drift_checks, changed)
        self.reservations = _TrackedReservations(tx, changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _TrackedReservations:
    """Reservations, which collect the ids of the stacks that are reserved, or no longer."""

    def __init__(self, tx: Transaction, changed: set[str]) -> None:
        self._tx = tx
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx.reservations, name)

    def insert(self, reservation: Reservation) -> bool:
        """Add a reservation."""
        self._changed.add(reservation.stack)
        return self._tx.reservations.insert(reservation)

    def drop(self, operation: str) -> None:
        """Remove the reservations of an operation."""
        for reservation in self._tx.reservations.of_operation(operation):
            # A stack that did not exist when it was reserved may have been created since.
            stack = self._tx.stacks.find(reservation.stack or reservation.named)
            if stack:
                self._changed.add(stack.record.id)
        self._tx.reservations.drop(operation)


class _TrackedTable:
    """A table that collects the ids of the stacks that its writes change."""

    def __init__(self, table: Any, changed: set[str]) -> None:
        self._table = table
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._table, name)
        if name not in ("insert", "update", "edit", "delete", "put"):
            return method

        def tracked_write(subject: Any, *more: Any) -> Any:
            if stack := _stack_of(name, subject):
                self._changed.add(stack)
            return method(subject, *more)

        return tracked_write


def _stack_of(written: str, subject: Any) -> str:
    """
    Id of the stack whose watchers receive something when *subject* is written; empty: no watcher receives anything.
    """
    match subject:
        case Stack():
            return subject.record.id
        case Operation():
            # A running operation writes often, and watchers receive only its begin, its blocks and its end.
            is_reported = subject.state in FINISHED or subject.state is OperationState.BLOCKED
            return subject.stack if written == "insert" or is_reported else ""
        case str():
            return subject
    return ""
