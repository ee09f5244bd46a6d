"""
The words of drift (docs/reference/engine.md, "Drift"): how a resource is, what differs at a field, and what a look
found.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class DriftStatus(StrEnum):
    """How a resource of a stack is, worst first; drift.proto says what each means."""

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
        """Its place among all: 0 is the worst."""
        return _RANKS[self]


_RANKS = {status: rank for rank, status in enumerate(DriftStatus)}


class DriftClass(StrEnum):
    """Which of the three sides of a field differ; drift.proto says what each means."""

    PENDING = "pending"
    DRIFTED = "drifted"
    CONVERGED = "converged"
    CONFLICT = "conflict"
    IGNORED = "ignored"


class DriftField(NamedTuple):
    """A field whose three sides are not all equal: an RFC 6901 pointer, and JSON texts, empty where nothing is."""

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
