"""
Leases: one for each stack, which expires by itself and whose token fences late writers (docs/reference/engine.md,
"Leases and fencing").
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from services.core.errors import LeaseLost, RequestInvalid, StackLeased
from stack_svc.store.leases import RELEASED, Lease
from stack_svc.store.stacks import Stack

SECOND = 1_000_000
"""One second in microseconds, the unit of all times here."""

SHORTEST, LONGEST = 1 * SECOND, 600 * SECOND
"""Bounds of the duration of a lease without renewal (journal.proto)."""


def is_free(lease: Lease, now: int) -> bool:
    """
    Whether the lease is over.

    It is also over when it ends later than its duration allows: then a clock was set back (docs/reference/engine.md,
    "Leases and fencing").
    """
    return lease.expires < now or lease.expires > now + lease.ttl


def holds(lease: Lease | None, token: int, now: int) -> bool:
    """Whether the holder of *token* may write."""
    return lease is not None and lease.token == token and lease.expires >= now


def acquired(lease: Lease, stack: Stack, holder: str, operation: str, ttl: int, now: int) -> Lease:
    """
    The lease of *stack* for a new holder.

    Each token is used once, even by a store that was restored from a backup, because a token is at least the time of
    the clock in microseconds (docs/architecture.md, "The store").

    Args:
        lease: The last lease of the stack.
        stack: The stack, for the error.
        holder: The new holder, for the errors that other callers get.
        operation: Name of its operation, for the same errors.
        ttl: Microseconds that the lease lasts without renewal.
        now: The time.

    Raises:
        StackLeased: Another operation holds the lease.
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    refuse_leased(lease, stack, now)
    return Lease(holder, operation, max(lease.token + 1, now), ttl, now + ttl, lease.token, lease.shown_token)


def renewed(lease: Lease, ttl: int, now: int) -> Lease:
    """
    *lease*, which is held, for another *ttl* microseconds from now.

    Raises:
        RequestInvalid: *ttl* is out of bounds.
    """
    _check_ttl(ttl)
    return replace(lease, ttl=ttl, expires=now + ttl)


def is_raised(lease: Lease, token: int, raise_to: int) -> bool:
    """
    Whether the holder of *lease* raised its token from *token* to *raise_to* before.

    After a clock was set back, the next holder of the lease may have the token *raise_to*, too; then ``last_token`` is
    *token*.
    """
    return lease.token == raise_to == token + 1 and lease.last_token != token


def raised(lease: Lease, raise_to: int) -> Lease:
    """
    *lease*, which is held, with a higher token. It is still the same lease, so ``last_token`` stays.

    Raises:
        RequestInvalid: *raise_to* is not the next token.
    """
    if raise_to != lease.token + 1:
        raise RequestInvalid("raise_to", f"must be {lease.token + 1}, the token of the lease plus one")
    return replace(lease, token=raise_to)


def released(lease: Lease, seen: int = 0, is_shown: bool = False) -> Lease:
    """
    *lease*, released.

    Args:
        lease: The lease.
        seen: The highest token that the platform has seen, which the next one is above; 0: unknown.
        is_shown: Whether the platform has answered a request with its token.
    """
    shown_token = lease.token if is_shown else lease.shown_token
    return replace(lease, expires=RELEASED, token=max(lease.token, seen), shown_token=shown_token)


def check(lease: Lease | None, stack: str, token: int, now: int) -> Lease:
    """
    Fence a write; as the stack is locked, the result holds until the transaction is committed.

    Returns:
        The lease, held with *token*.

    Raises:
        LeaseLost: It is over, or the stack has been removed.
    """
    if lease is None or not holds(lease, token, now):
        raise LeaseLost(stack, token)
    return lease


def refuse_leased(lease: Lease, stack: Stack, now: int) -> None:
    """
    Do nothing for a lease that is over.

    Raises:
        StackLeased: The lease is held; the error names holder and operation.
    """
    if not is_free(lease, now):
        raise StackLeased(stack.called, lease.holder, lease.operation, rfc3339(lease.expires))


def rfc3339(microseconds: int) -> str:
    """A time in microseconds since 1970, in the format of RFC 3339."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return moment.isoformat().replace("+00:00", "Z")


def _check_ttl(ttl: int) -> None:
    if not SHORTEST <= ttl <= LONGEST:
        raise RequestInvalid("ttl", "a lease lasts from 1 s to 10 min")
