"""Who works on which stack, as the store keeps it."""

from dataclasses import dataclass
from typing import Protocol

GIVEN_BACK = 0
"""``expires`` of a lease that its operation gave back: long past."""


@dataclass(frozen=True, slots=True)
class Lease:
    """
    The right to write for a stack, held or over.

    Attributes:
        holder: Who has it, or had it last; empty when nobody ever had it.
        operation: Name of the operation that it is for.
        token: Fencing token: higher than that of any lease on the stack before. It may be raised while the lease lasts.
        ttl: How long it lasts without renewal, in microseconds.
        expires: When it ends; 0 when it was given back.
        last_token: Token of the lease on the stack before it; 0: there was none.
    """

    holder: str = ""
    operation: str = ""
    token: int = 0
    ttl: int = 0
    expires: int = 0
    last_token: int = 0


class LeasesReading(Protocol):
    """Leases, read."""

    def of(self, stack: str) -> Lease | None:
        """Read the last lease on a stack; None when there is no such stack."""


class Leases(LeasesReading, Protocol):
    """Leases, read and written. Each stack has one from its start, which is over."""

    def put(self, stack: str, lease: Lease) -> None:
        """Replace the lease on a stack that exists."""
