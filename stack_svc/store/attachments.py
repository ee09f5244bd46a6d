"""Attachments of plans, as stored: the packages of revisions, files of packages, and baselines (journal.proto)."""

from collections.abc import Collection, Mapping, Set
from typing import Protocol


class AttachmentsReading(Protocol):
    """Read access to attachments."""

    def numbers(self, digest: str) -> Set[int]:
        """Return the numbers of the stored parts, without reading their bodies."""

    def parts(self, digest: str) -> Mapping[int, bytes]:
        """Read the stored parts of an attachment, by number; each is a compressed part of its text."""

    def has(self, digest: str) -> bool:
        """Return whether a complete attachment with that digest is stored."""

    def lacking(self, digests: Collection[str]) -> list[str]:
        """Return those of *digests* with which no complete attachment is stored, sorted."""


class Attachments(AttachmentsReading, Protocol):
    """Read and write access to attachments."""

    def keep(self, digest: str, now: int) -> bool:
        """Set the time of an attachment to *now*; False: no complete attachment with that digest is stored."""

    def put(self, digest: str, number: int, body: bytes, now: int) -> None:
        """Add a part of an incomplete attachment; it replaces a part with the same number."""

    def complete(self, digest: str, count: int) -> None:
        """Mark an attachment as complete; its parts have numbers below *count*, and all others are removed."""
