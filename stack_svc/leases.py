"""
Who works on a stack: one lease per stack, which ends by itself and whose token fences late writers
(docs/reference/engine.md, "Leases and fencing").
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from services.core.errors import LeaseLost, RequestInvalid, StackLeased
from stack_svc.store.leases import GIVEN_BACK, Lease
from stack_svc.store.stacks import Stack

SECOND = 1_000_000
"""In microseconds, the unit of all times here."""

SHORTEST, LONGEST = 1 * SECOND, 600 * SECOND
"""Bounds of the time a lease lasts without renewal (journal.proto)."""


def is_free(lease: Lease, now: int) -> bool:
    """Whether nobody has the lease. One that ends later than it can last is over, too: a clock was set back (11.4)."""
    return lease.expires < now or lease.expires > now + lease.ttl


def holds(lease: Lease | None, token: int, now: int) -> bool:
    """Whether the holder of *token* may write."""
    return lease is not None and lease.token == token and lease.expires >= now


def acquired(lease: Lease, stack: Stack, holder: str, operation: str, ttl: int, now: int) -> Lease:
    """
    The lease of *stack* for a new holder.

    A token is never given twice, also by a store that was restored from a backup: it counts on from the clock (11.4).

    Args:
        lease: The last lease of the stack.
        stack: The stack, for the error.
        holder: Who asks, for the error that others get.
        operation: What for, likewise.
        ttl: Microseconds that the lease lasts without renewal.
        now: The time.

    Raises:
        StackLeased: Another operation holds the lease.
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    refuse_leased(lease, stack, now)
    return Lease(holder, operation, max(lease.token + 1, now), ttl, now + ttl, lease.token)


def renewed(lease: Lease, ttl: int, now: int) -> Lease:
    """
    *lease*, which lasts, for another *ttl* microseconds from now.

    Raises:
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    return replace(lease, ttl=ttl, expires=now + ttl)


def is_raised(lease: Lease, token: int, raise_to: int) -> bool:
    """
    Whether the holder of *lease* raised its token from *token* to *raise_to* before.

    Whoever took the lease from that holder after a clock was set back may have the same token: then ``last_token`` is
    *token*.
    """
    return lease.token == raise_to == token + 1 and lease.last_token != token


def raised(lease: Lease, raise_to: int) -> Lease:
    """
    *lease*, which lasts, with a higher token. It is the same lease still, so ``last_token`` stays.

    Raises:
        RequestInvalid: *raise_to* does not follow on the token of the lease.
    """
    if raise_to != lease.token + 1:
        raise RequestInvalid("raise_to", f"must be {lease.token + 1}, which follows on the token of the lease")
    return replace(lease, token=raise_to)


def given_back(lease: Lease, seen: int = 0) -> Lease:
    """*lease*, over; the tokens of its stack count on from *seen*, if a platform has seen a higher one."""
    return replace(lease, expires=GIVEN_BACK, token=max(lease.token, seen))


def check(lease: Lease | None, stack: str, token: int, now: int) -> Lease:
    """
    Fence a write: as the stack is locked, what is true here is true when the transaction is committed.

    Returns:
        The lease, held with *token*.

    Raises:
        LeaseLost: It is over, or the stack is gone.
    """
    if lease is None or not holds(lease, token, now):
        raise LeaseLost(stack, token)
    return lease


def refuse_leased(lease: Lease, stack: Stack, now: int) -> None:
    """
    Do nothing, unless somebody holds the lease.

    Raises:
        StackLeased: Names who.
    """
    if not is_free(lease, now):
        raise StackLeased(stack.called, lease.holder, lease.operation, rfc3339(lease.expires))


def rfc3339(microseconds: int) -> str:
    """A time in microseconds since 1970 as people read it."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")


def _check_ttl(ttl: int) -> None:
    if not SHORTEST <= ttl <= LONGEST:
        raise RequestInvalid("ttl", "a lease lasts from 1 s to 10 min")
