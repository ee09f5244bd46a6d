"""Wakes up who waits for a stack when a transaction of this process may have changed what watchers are told of it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

from services.core.errors import ServiceUnavailable
from services.engine.operation import FINISHED, OperationState
from stack_svc.store.operations import Operation
from stack_svc.store.stacks import Stack
from stack_svc.store.store import Limits, Reading, Store, Swept, Transaction

T = TypeVar("T")

LONGEST_SECONDS = 1.0
"""How long a watcher waits until it looks by itself: another process may have written, or a sweep."""


class Watchers:
    """Who waits for which stack."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._is_closed = False

    @contextmanager
    def waiting(self, stack: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever *stack* may have changed."""
        event = asyncio.Event()
        self._waiting[stack].add(event)
        try:
            yield event
        finally:
            self._waiting[stack].discard(event)
            if not self._waiting[stack]:
                del self._waiting[stack]

    async def news(self, event: asyncio.Event) -> None:
        """
        Wait until *event* is set, for a moment at most, and clear it.

        Raises:
            ServiceUnavailable: The service is about to end.
        """
        if not self._is_closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), LONGEST_SECONDS)
        if self._is_closed:
            raise ServiceUnavailable("stack", "this one", "it is shutting down")
        event.clear()

    def wake(self, stack: str) -> None:
        """Let those look who wait for *stack*."""
        for event in self._waiting.get(stack, ()):
            event.set()

    async def close(self) -> None:
        """Let nobody wait any more: the service is about to end."""
        self._is_closed = True
        for stack in list(self._waiting):
            self.wake(stack)


class Announcing:
    """A store that wakes up watchers of the stacks that a transaction has changed, once it is committed."""

    def __init__(self, store: Store, watchers: Watchers) -> None:
        self._store = store
        self._watchers = watchers

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run *work*, and wake up who waits for what it changed."""
        changed: set[str] = set()

        def noting(tx: Transaction) -> T:
            # It may run more than once.
            changed.clear()
            return work(cast(Transaction, _Noting(tx, changed)))

        result = await self._store.write(noting)
        for stack in changed:
            self._watchers.wake(stack)
        return result

    async def read(self, work: Callable[[Reading], T]) -> T:
        """Run *work* on a snapshot."""
        return await self._store.read(work)

    async def sweep(self, limits: Limits) -> Swept:
        """Remove one batch of what is no longer of use; watchers learn of it when they look by themselves."""
        return await self._store.sweep(limits)

    async def close(self) -> None:
        """Let go of the store."""
        await self._store.close()


class _Noting:
    """A transaction that notes the stacks whose record, or whose operations, it changes."""

    def __init__(self, tx: Transaction, changed: set[str]) -> None:
        self._tx = tx
        self.stacks = _Table(tx.stacks, changed)
        self.operations = _Table(tx.operations, changed)
        self.looks = _Table(tx.looks, changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _Table:
    """A table whose writes are noted."""

    def __init__(self, table: Any, changed: set[str]) -> None:
        self._table = table
        self._changed = changed

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._table, name)
        if name not in ("insert", "update", "edit", "delete", "put"):
            return method

        def noted(subject: Any, *more: Any) -> Any:
            if stack := _stack_of(name, subject):
                self._changed.add(stack)
            return method(subject, *more)

        return noted


def _stack_of(written: str, subject: Any) -> str:
    """The stack that is another one for watchers once *subject* is written; empty: none is."""
    match subject:
        case Stack():
            return subject.record.id
        case Operation():
            # The writes of an operation at work are many, and are not told.
            is_told = subject.state in FINISHED or subject.state is OperationState.BLOCKED
            return subject.stack if written == "insert" or is_told else ""
        case str():
            return subject
    return ""
