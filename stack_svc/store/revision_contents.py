"""The contents of the packages of revisions, as stored: each is the attachment with its digest."""

from collections.abc import Collection
from typing import Protocol


class RevisionContents(Protocol):
    """Write access to the contents of revisions; only sweeps read them."""

    def add(self, stack: str, number: int, digests: Collection[str]) -> None:
        """Add the different *digests* of a new revision; they are removed with it."""
