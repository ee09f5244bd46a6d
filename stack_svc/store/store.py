"""The store as a whole: transactions, snapshots and housekeeping."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from stack_svc.store.attachments import Attachments, AttachmentsReading
from stack_svc.store.baselines import Baselines, BaselinesReading
from stack_svc.store.inventory import Inventory, InventoryReading
from stack_svc.store.journal import Journal, JournalReading
from stack_svc.store.leases import Leases, LeasesReading
from stack_svc.store.looks import Looks, LooksReading
from stack_svc.store.operations import Operations, OperationsReading
from stack_svc.store.owners import Owners, OwnersReading
from stack_svc.store.plans import Plans, PlansReading
from stack_svc.store.requests import Requests, RequestsReading
from stack_svc.store.revisions import Revisions, RevisionsReading
from stack_svc.store.stacks import Choice, Stack, Stacks, StacksReading
from stack_svc.store.uses import Uses, UsesReading

T = TypeVar("T")


class Reading(Protocol):
    """What a transaction reads, all from one consistent snapshot."""

    @property
    def stacks(self) -> StacksReading:
        """Stacks, read."""

    @property
    def leases(self) -> LeasesReading:
        """Leases, read."""

    @property
    def operations(self) -> OperationsReading:
        """Operations, read."""

    @property
    def journal(self) -> JournalReading:
        """Journals, read."""

    @property
    def inventory(self) -> InventoryReading:
        """Inventories, read."""

    @property
    def owners(self) -> OwnersReading:
        """Owners, read."""

    @property
    def uses(self) -> UsesReading:
        """Uses, read."""

    @property
    def plans(self) -> PlansReading:
        """Plans, read."""

    @property
    def attachments(self) -> AttachmentsReading:
        """Attachments, read."""

    @property
    def baselines(self) -> BaselinesReading:
        """Baselines, read."""

    @property
    def looks(self) -> LooksReading:
        """Last looks, read."""

    @property
    def revisions(self) -> RevisionsReading:
        """Revisions, read."""

    @property
    def requests(self) -> RequestsReading:
        """Answers to requests, read."""

    def now(self) -> int:
        """Tell the time by the store's clock: one value for each transaction, read after its locks."""


class Transaction(Reading, Protocol):
    """What a transaction reads and writes."""

    @property
    def stacks(self) -> Stacks:
        """Stacks, read and written."""

    @property
    def leases(self) -> Leases:
        """Leases, read and written."""

    @property
    def operations(self) -> Operations:
        """Operations, read and written."""

    @property
    def journal(self) -> Journal:
        """Journals, read and written."""

    @property
    def inventory(self) -> Inventory:
        """Inventories, read and written."""

    @property
    def owners(self) -> Owners:
        """Owners, read and written."""

    @property
    def uses(self) -> Uses:
        """Uses, read and written."""

    @property
    def plans(self) -> Plans:
        """Plans, read and written."""

    @property
    def attachments(self) -> Attachments:
        """Attachments, read and written."""

    @property
    def baselines(self) -> Baselines:
        """Baselines, read and written."""

    @property
    def looks(self) -> Looks:
        """Last looks, read and written."""

    @property
    def revisions(self) -> Revisions:
        """Revisions, read and written."""

    @property
    def requests(self) -> Requests:
        """Answers to requests, read and written."""

    def lock_stack(self, choice: Choice) -> Stack | None:
        """
        Keep all others from writing for the stack of *choice* until the end of the transaction.

        Returns:
            The stack, in any state; None when there is none.

        Raises:
            LockedTooLateError: The clock was read before.
        """


class Store(Protocol):
    """Keeps all durable state."""

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """
        Run *work* in one transaction, which is committed durably before this returns, or undone when *work* raises.

        Raises:
            ServiceUnavailable: The store is out of order. Whether the transaction was committed is known only where the
                store says so.
        """

    async def read(self, work: Callable[[Reading], T]) -> T:
        """Run *work* on one consistent snapshot of all that was committed before the call; errors as for ``write``."""

    async def sweep(self, limits: "Limits") -> "Swept":
        """Remove what is no longer of use: one batch, so that calls do not wait for long (S6)."""

    async def close(self) -> None:
        """Let the work in hand end, and close the store."""


@dataclass(frozen=True, slots=True)
class Limits:
    """
    What a store keeps of finished operations, with their plans and events; those that ended first go first.

    The last one of each stack that is there is always kept.

    Attributes:
        operations: How many there are at most.
        age: Microseconds since they ended, at most.
        bytes: What all of them together take at most.
        attachment_age: Microseconds that an attachment is kept which no plan and no revision names.
        batch: Most rows of each table that one sweep removes or ends.
        batch_bytes: Most bytes of finished operations that one sweep removes, unless a single one has more.
    """

    operations: int = 1000
    age: int = 90 * 24 * 3600 * 1_000_000
    bytes: int = 512 * 1024 * 1024
    attachment_age: int = 24 * 3600 * 1_000_000
    batch: int = 500
    batch_bytes: int = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Swept:
    """
    How many rows a sweep removed or ended.

    Attributes:
        requests: Answers to requests that were kept long enough.
        plans: Plans that expired unused.
        operations: Finished operations beyond the limits.
        ended: Operations that never started and whose lease is over: they are FAILED now.
        stacks: Stacks that only existed for an operation, which is over.
        attachments: Attachments that no plan and no revision names.
        has_more: Whether there is more to do than the rows tell: bytes to remove, or space to give back.
    """

    requests: int = 0
    plans: int = 0
    operations: int = 0
    ended: int = 0
    stacks: int = 0
    attachments: int = 0
    has_more: bool = False

    @property
    def rows(self) -> int:
        """All of them together."""
        return sum(self._counts)

    def is_full(self, limits: Limits) -> bool:
        """Whether the sweep ended because of its size, so that there may be more to do."""
        return self.has_more or limits.batch in self._counts

    @property
    def _counts(self) -> tuple[int, ...]:
        return (self.requests, self.plans, self.operations, self.ended, self.stacks, self.attachments)
