"""A store in one SQLite file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import sqlite_utils

from services.machine import Clock
from services.sqlite.database import Database
from stack_svc.sqlite import sweeping
from stack_svc.sqlite.attachments import SqliteAttachments
from stack_svc.sqlite.baselines import SqliteBaselines
from stack_svc.sqlite.inventory import SqliteInventory
from stack_svc.sqlite.journal import SqliteJournal
from stack_svc.sqlite.leases import SqliteLeases
from stack_svc.sqlite.looks import SqliteLooks
from stack_svc.sqlite.operations import SqliteOperations
from stack_svc.sqlite.owners import SqliteOwners
from stack_svc.sqlite.plans import SqlitePlans
from stack_svc.sqlite.requests import SqliteRequests
from stack_svc.sqlite.revisions import SqliteRevisions
from stack_svc.sqlite.schema import MIGRATIONS
from stack_svc.sqlite.stacks import SqliteStacks
from stack_svc.sqlite.uses import SqliteUses
from stack_svc.store.locks import LockedClock
from stack_svc.store.stacks import Choice, Stack
from stack_svc.store.store import Limits, Reading, Swept, Transaction

T = TypeVar("T")


class SqliteTransaction:
    """One transaction; SQLite has a single writer, so its start has locked all stacks already."""

    def __init__(self, db: sqlite_utils.Database, clock: Clock) -> None:
        self.stacks = SqliteStacks(db)
        self.leases = SqliteLeases(db)
        self.operations = SqliteOperations(db)
        self.journal = SqliteJournal(db)
        self.inventory = SqliteInventory(db)
        self.owners = SqliteOwners(db)
        self.uses = SqliteUses(db)
        self.plans = SqlitePlans(db)
        self.attachments = SqliteAttachments(db)
        self.baselines = SqliteBaselines(db)
        self.looks = SqliteLooks(db)
        self.revisions = SqliteRevisions(db)
        self.requests = SqliteRequests(db)
        self._clock = LockedClock(clock)

    def now(self) -> int:
        """Tell the time: SQLite has no clock of its own, so this is the clock of the process."""
        return self._clock.now()

    def lock_stack(self, choice: Choice) -> Stack | None:
        """Read the stack."""
        self._clock.before_lock()
        return self.stacks.find(choice)


class SqliteStore:
    """All durable state, in one file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """
        Open *path*, made when missing, and bring its schema up to date.

        All processes on one file are on one machine, so *clock* measures the leases of all of them alike.

        Raises:
            OSError: The file cannot be opened, or is no such database.
        """
        self._database = Database(path, MIGRATIONS)
        self._clock = clock

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run *work* while nobody else writes."""
        return await self._database.write(lambda db: work(SqliteTransaction(db, self._clock)))

    async def read(self, work: Callable[[Reading], T]) -> T:
        """Run *work* on a snapshot."""
        return await self._database.read(lambda db: work(SqliteTransaction(db, self._clock)))

    async def sweep(self, limits: Limits) -> Swept:
        """Remove one batch of what is no longer of use, and give some of the space back that is free in the file."""
        swept = await self._database.write(lambda db: sweeping.sweep(db, limits, self._clock()))
        has_space = await self._database.write(sweeping.give_back)
        return replace(swept, has_more=swept.has_more or has_space)

    async def close(self) -> None:
        """Let the work in hand end, and close the file."""
        self._database.close()
