"""A store in one SQLite file."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import sqlite_utils

from services.sqlite.database import Database
from services.system import Clock
from stack_svc.sqlite import sweeping
from stack_svc.sqlite.action_sets import SqliteActionSets
from stack_svc.sqlite.attachments import SqliteAttachments
from stack_svc.sqlite.baselines import SqliteBaselines
from stack_svc.sqlite.definitions import SqliteDefinitions
from stack_svc.sqlite.drift_checks import SqliteDriftChecks
from stack_svc.sqlite.inventory import SqliteInventory
from stack_svc.sqlite.journal import SqliteJournal
from stack_svc.sqlite.leases import SqliteLeases
from stack_svc.sqlite.operations import SqliteOperations
from stack_svc.sqlite.owners import SqliteOwners
from stack_svc.sqlite.packages import SqlitePackages
from stack_svc.sqlite.plan_packages import SqlitePlanPackages
from stack_svc.sqlite.plans import SqlitePlans
from stack_svc.sqlite.repositories import SqliteRepositories
from stack_svc.sqlite.requests import SqliteRequests
from stack_svc.sqlite.reservations import SqliteReservations
from stack_svc.sqlite.revision_contents import SqliteRevisionContents
from stack_svc.sqlite.revisions import SqliteRevisions
from stack_svc.sqlite.schema import MIGRATIONS
from stack_svc.sqlite.snapshots import SqliteSnapshots
from stack_svc.sqlite.stacks import SqliteStacks
from stack_svc.sqlite.uses import SqliteUses
from stack_svc.store.locks import LockedClock
from stack_svc.store.stacks import Choice, Stack
from stack_svc.store.store import ReadTransaction, RetentionLimits, Swept, Transaction

T = TypeVar("T")


class SqliteTransaction:
    """One transaction. SQLite has a single writer, so a write transaction locks all stacks when it starts."""

    def __init__(self, db: sqlite_utils.Database, clock: Clock) -> None:
        self.stacks = SqliteStacks(db)
        self.leases = SqliteLeases(db)
        self.operations = SqliteOperations(db)
        self.journal = SqliteJournal(db)
        self.inventory = SqliteInventory(db)
        self.owners = SqliteOwners(db)
        self.uses = SqliteUses(db)
        self.plans = SqlitePlans(db)
        self.plan_packages = SqlitePlanPackages(db)
        self.attachments = SqliteAttachments(db)
        self.baselines = SqliteBaselines(db)
        self.drift_checks = SqliteDriftChecks(db)
        self.packages = SqlitePackages(db)
        self.revisions = SqliteRevisions(db)
        self.revision_contents = SqliteRevisionContents(db)
        self.requests = SqliteRequests(db)
        self.repositories = SqliteRepositories(db)
        self.definitions = SqliteDefinitions(db)
        self.action_sets = SqliteActionSets(db)
        self.reservations = SqliteReservations(db)
        self.snapshots = SqliteSnapshots(db)
        self._clock = LockedClock(clock)

    def now(self) -> int:
        """Return the time of the process's clock, as SQLite has none of its own."""
        return self._clock.now()

    def lock_stack(self, choice: Choice) -> Stack | None:
        """Return the stack, which the transaction has locked already."""
        self._clock.before_lock()
        return self.stacks.find(choice)


class SqliteStore:
    """All durable state, in one file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """
        Open *path*, which is created when missing.

        All processes that share a file run on one machine, so the same *clock* measures the leases of all of them.

        Raises:
            OSError: The file cannot be opened, or is no database with this schema.
        """
        self._database = Database(path, MIGRATIONS)
        self._clock = clock

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """Run *work* in a write transaction; no other one runs at the same time."""
        return await self._database.write(lambda db: work(SqliteTransaction(db, self._clock)))

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run *work* on a snapshot."""
        return await self._database.read(lambda db: work(SqliteTransaction(db, self._clock)))

    async def sweep(self, limits: RetentionLimits) -> Swept:
        """Remove one batch of rows that are no longer needed, and release some of the free space of the file."""
        swept = await self._database.write(lambda db: sweeping.sweep(db, limits, self._clock()))
        has_space = await self._database.write(sweeping.release_space)
        return replace(swept, has_more=swept.has_more or has_space)

    async def close(self) -> None:
        """Wait until the running work ends, and close the file."""
        self._database.close()
