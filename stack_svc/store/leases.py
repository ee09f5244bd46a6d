"""The leases of stacks, as stored."""

from dataclasses import dataclass
from typing import Protocol

RELEASED = 0
"""``expires`` of a lease that its operation released: long past."""


@dataclass(frozen=True, slots=True)
class Lease:
    """
    The right of an operation to change a stack, held or over.

    Attributes:
        holder: The applier that holds it, or that held it last; empty for a new stack.
        operation: Name of its operation.
        token: Fencing token, higher than the token of any earlier lease on the stack; it may be raised while the lease
            is held.
        ttl: Its duration without renewal, in microseconds.
        expires: When it ends; 0 when it was released.
        last_token: Token of the lease before it on the stack; 0: there was none.
        shown_token: The highest token with which an operation of the stack has ended after it was shown to the
            platform; 0: there was none.
    """

    holder: str = ""
    operation: str = ""
    token: int = 0
    ttl: int = 0
    expires: int = 0
    last_token: int = 0
    shown_token: int = 0


class LeasesReading(Protocol):
    """Read access to leases."""

    def of(self, stack: str) -> Lease | None:
        """Read the last lease on a stack; None when there is no such stack."""


class Leases(LeasesReading, Protocol):
    """Read and write access to leases. A new stack has one that is over."""

    def put(self, stack: str, lease: Lease) -> None:
        """Replace the lease on an existing stack."""
