"""What travels beside plans, as the store keeps it: packages that revisions keep, and baselines (journal.proto)."""

from collections.abc import Mapping
from typing import Protocol


class AttachmentsReading(Protocol):
    """Attachments, read."""

    def parts(self, digest: str) -> Mapping[int, bytes]:
        """Read the parts of an attachment by number, as far as they are there: pieces of its text, compressed."""

    def has(self, digest: str) -> bool:
        """Tell whether there is a complete one of that digest."""


class Attachments(AttachmentsReading, Protocol):
    """Attachments, read and written."""

    def keep(self, digest: str, now: int) -> bool:
        """Let one count as stored *now*; False: there is no complete one of that digest."""

    def put(self, digest: str, number: int, body: bytes, is_complete: bool, now: int) -> None:
        """Add a part; one that is there stays, as the digest says what it is. *is_complete*: it was the last one."""
