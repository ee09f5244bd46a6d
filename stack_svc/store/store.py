"""The store as a whole: transactions, snapshots and housekeeping."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stack_svc.store.action_sets import ActionSets, ActionSetsReading
from stack_svc.store.attachments import Attachments, AttachmentsReading
from stack_svc.store.baselines import Baselines, BaselinesReading
from stack_svc.store.definitions import Definitions, DefinitionsReading
from stack_svc.store.drift_checks import DriftChecks, DriftChecksReading
from stack_svc.store.inventory import Inventory, InventoryReading
from stack_svc.store.journal import Journal, JournalReading
from stack_svc.store.leases import Leases, LeasesReading
from stack_svc.store.operations import Operations, OperationsReading
from stack_svc.store.owners import Owners, OwnersReading
from stack_svc.store.packages import Packages, PackagesReading
from stack_svc.store.plan_packages import PlanPackages, PlanPackagesReading
from stack_svc.store.plans import Plans, PlansReading
from stack_svc.store.repositories import Repositories, RepositoriesReading
from stack_svc.store.requests import Requests, RequestsReading
from stack_svc.store.reservations import Reservations, ReservationsReading
from stack_svc.store.revision_contents import RevisionContents
from stack_svc.store.revisions import Revisions, RevisionsReading
from stack_svc.store.snapshots import Snapshots, SnapshotsReading
from stack_svc.store.stacks import Choice, Stack, Stacks, StacksReading
from stack_svc.store.uses import Uses, UsesReading

T = TypeVar("T")


class ReadTransaction(Protocol):
    """The read access of a transaction; it reads one consistent snapshot."""

    @property
    def stacks(self) -> StacksReading:
        """Read access to stacks."""

    @property
    def leases(self) -> LeasesReading:
        """Read access to leases."""

    @property
    def operations(self) -> OperationsReading:
        """Read access to operations."""

    @property
    def journal(self) -> JournalReading:
        """Read access to journals."""

    @property
    def inventory(self) -> InventoryReading:
        """Read access to inventories."""

    @property
    def owners(self) -> OwnersReading:
        """Read access to owners."""

    @property
    def uses(self) -> UsesReading:
        """Read access to uses."""

    @property
    def plans(self) -> PlansReading:
        """Read access to plans."""

    @property
    def plan_packages(self) -> PlanPackagesReading:
        """Read access to the changes of packages that plans make."""

    @property
    def attachments(self) -> AttachmentsReading:
        """Read access to attachments."""

    @property
    def baselines(self) -> BaselinesReading:
        """Read access to baselines."""

    @property
    def drift_checks(self) -> DriftChecksReading:
        """Read access to last drift checks."""

    @property
    def packages(self) -> PackagesReading:
        """Read access to installed packages."""

    @property
    def revisions(self) -> RevisionsReading:
        """Read access to revisions."""

    @property
    def requests(self) -> RequestsReading:
        """Read access to answers to requests."""

    @property
    def repositories(self) -> RepositoriesReading:
        """Read access to repositories."""

    @property
    def definitions(self) -> DefinitionsReading:
        """Read access to definitions."""

    @property
    def action_sets(self) -> ActionSetsReading:
        """Read access to action sets."""

    @property
    def reservations(self) -> ReservationsReading:
        """Read access to reservations."""

    @property
    def snapshots(self) -> SnapshotsReading:
        """Read access to snapshots."""

    def now(self) -> int:
        """Return the time of the store's clock: one value for each transaction, read after its locks."""


class Transaction(ReadTransaction, Protocol):
    """The read and write access of a transaction."""

    @property
    def stacks(self) -> Stacks:
        """Read and write access to stacks."""

    @property
    def leases(self) -> Leases:
        """Read and write access to leases."""

    @property
    def operations(self) -> Operations:
        """Read and write access to operations."""

    @property
    def journal(self) -> Journal:
        """Read and write access to journals."""

    @property
    def inventory(self) -> Inventory:
        """Read and write access to inventories."""

    @property
    def owners(self) -> Owners:
        """Read and write access to owners."""

    @property
    def uses(self) -> Uses:
        """Read and write access to uses."""

    @property
    def plans(self) -> Plans:
        """Read and write access to plans."""

    @property
    def plan_packages(self) -> PlanPackages:
        """Read and write access to the changes of packages that plans make."""

    @property
    def attachments(self) -> Attachments:
        """Read and write access to attachments."""

    @property
    def baselines(self) -> Baselines:
        """Read and write access to baselines."""

    @property
    def drift_checks(self) -> DriftChecks:
        """Read and write access to last drift checks."""

    @property
    def packages(self) -> Packages:
        """Read and write access to installed packages."""

    @property
    def revisions(self) -> Revisions:
        """Read and write access to revisions."""

    @property
    def revision_contents(self) -> RevisionContents:
        """Write access to the contents of revisions."""

    @property
    def requests(self) -> Requests:
        """Read and write access to answers to requests."""

    @property
    def repositories(self) -> Repositories:
        """Read and write access to repositories."""

    @property
    def definitions(self) -> Definitions:
        """Read and write access to definitions."""

    @property
    def action_sets(self) -> ActionSets:
        """Read and write access to action sets."""

    @property
    def reservations(self) -> Reservations:
        """Read and write access to reservations."""

    @property
    def snapshots(self) -> Snapshots:
        """Read and write access to snapshots."""

    def lock_stack(self, choice: Choice) -> Stack | None:
        """
        Lock the stack of *choice* against writes by other transactions until the end of this one.

        Returns:
            The stack, in any state; None when there is none.

        Raises:
            LockedTooLateError: The clock has been read.
        """


class Store(Protocol):
    """Keeps all durable state."""

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """
        Run *work* in one transaction. It is committed durably before this returns, or rolled back when *work* raises.

        Raises:
            ServiceUnavailable: The store fails. Unless the error says so, it is unknown whether the transaction was
                committed.
        """

    async def read(self, work: Callable[[ReadTransaction], T]) -> T:
        """Run *work* on one snapshot of all transactions committed before the call; errors as for ``write``."""

    async def sweep(self, limits: "RetentionLimits") -> "Swept":
        """
        Remove one batch of rows that are no longer needed (docs/reference/engine.md, "Store"); a batch is small, so
        that calls do not wait long.
        """

    async def close(self) -> None:
        """Wait until the running work ends, and close the store."""


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """
    Limits on the finished operations that a store retains, with their plans and events; the oldest are removed first.

    The last operation of each existing stack is always retained, and so are the operations that an unfinished one has
    begun. Action sets have limits of their own: each is removed at the end of its time, and without that time the
    oldest first. One with a snapshot that is not deleted, or that another unfinished one uses, is always retained.

    Attributes:
        operations: Largest number of them.
        age: Microseconds for which they are retained after their end.
        bytes: Largest size of all of them together.
        action_sets: Largest number of finished action sets without a snapshot.
        attachment_age: Microseconds for which an attachment is retained that nothing names.
        batch: Largest number of rows of each table that one sweep removes or ends.
        batch_bytes: Largest size of the finished operations that one sweep removes, unless a single one is larger.
    """

    operations: int = 1000
    age: int = 90 * 24 * 3600 * 1_000_000
    bytes: int = 512 * 1024 * 1024
    action_sets: int = 1000
    attachment_age: int = 24 * 3600 * 1_000_000
    batch: int = 500
    batch_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Swept:
    """
    How many rows a sweep removed or ended.

    Attributes:
        requests: Expired answers to requests.
        plans: Plans that expired unused.
        operations: Finished operations beyond the limits.
        ended: Operations that never started and whose lease is over; they are FAILED now.
        stacks: Stacks that existed only for an operation that has ended.
        attachments: Attachments that nothing names.
        action_sets: Finished action sets beyond their limits.
        has_more: Whether more is left than the row counts show: operations to remove, or space to release.
    """

    requests: int = 0
    plans: int = 0
    operations: int = 0
    ended: int = 0
    stacks: int = 0
    attachments: int = 0
    action_sets: int = 0
    has_more: bool = False

    @property
    def rows(self) -> int:
        """The sum of all counts."""
        return sum(self._counts)

    def is_full(self, limits: RetentionLimits) -> bool:
        """Whether the sweep reached its limit, so that more rows may be left."""
        return self.has_more or limits.batch in self._counts

    @property
    def _counts(self) -> tuple[int, ...]:
        return (
            self.requests,
            self.plans,
            self.operations,
            self.ended,
            self.stacks,
            self.attachments,
            self.action_sets,
        )
