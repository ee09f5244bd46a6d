"""
The values of a drift detection (docs/reference/engine.md, "Drift"): status of a resource, class of a field, counts.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class DriftStatus(StrEnum):
    """Drift status of a resource, worst first; drift.proto defines each value."""

    UNREADABLE = "unreadable"
    LEFTOVER = "leftover"
    GONE = "gone"
    MISSING = "missing"
    CONFLICT = "conflict"
    DRIFTED = "drifted"
    PENDING = "pending"
    IN_SYNC = "in_sync"

    @property
    def rank(self) -> int:
        """Its rank among all statuses; 0 is the worst."""
        return _RANKS[self]


_RANKS = {status: rank for rank, status in enumerate(DriftStatus)}


class DriftClass(StrEnum):
    """Which of the three sides of a field differ; drift.proto defines each value."""

    PENDING = "pending"
    DRIFTED = "drifted"
    CONVERGED = "converged"
    CONFLICT = "conflict"
    IGNORED = "ignored"


class DriftField(NamedTuple):
    """A field whose three sides are not all equal: an RFC 6901 pointer and JSON texts; empty: there is no value."""

    path: str
    field_class: DriftClass
    package: str
    applied: str
    live: str


class DriftCounts(NamedTuple):
    """Numbers of resources by their status."""

    unreadable: int = 0
    leftover: int = 0
    gone: int = 0
    missing: int = 0
    conflict: int = 0
    drifted: int = 0
    pending: int = 0
    in_sync: int = 0


def drift_counts(statuses: Iterable[DriftStatus]) -> DriftCounts:
    """Count *statuses*."""
    counts = dict.fromkeys(DriftCounts._fields, 0)
    for status in statuses:
        counts[status.value] += 1
    return DriftCounts(**counts)
