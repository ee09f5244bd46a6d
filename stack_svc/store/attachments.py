"""What travels beside plans, as the store keeps it: packages that revisions keep, and baselines (journal.proto)."""

from collections.abc import Mapping, Set
from typing import Protocol


class AttachmentsReading(Protocol):
    """Attachments, read."""

    def numbers(self, digest: str) -> Set[int]:
        """Tell the numbers of the parts that are there, without reading them."""

    def parts(self, digest: str) -> Mapping[int, bytes]:
        """Read the parts of an attachment by number, as far as they are there: pieces of its text, compressed."""

    def has(self, digest: str) -> bool:
        """Tell whether there is a complete one of that digest."""


class Attachments(AttachmentsReading, Protocol):
    """Attachments, read and written."""

    def keep(self, digest: str, now: int) -> bool:
        """Let one count as stored *now*; False: there is no complete one of that digest."""

    def put(self, digest: str, number: int, body: bytes, now: int) -> None:
        """Add a part of one that is not complete; it takes the place of a part with that number."""

    def complete(self, digest: str, count: int) -> None:
        """Say that one has all its parts, whose numbers are below *count*; others are removed."""
