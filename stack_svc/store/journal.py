"""The journal of each operation, as stored: one row for each write, appended and never changed."""

from typing import NamedTuple, Protocol


class Row(NamedTuple):
    """
    One write of an operation.

    Attributes:
        position: From 1, without gaps.
        token: Fencing token of the lease under which it was written.
        last_seq: Seq of the last event up to this write.
        records: A ``pkger.journal.v1.StoredRecords`` in its wire format.
        events: A ``pkger.journal.v1.StoredEvents`` in its wire format.
        time: In microseconds since 1970.
    """

    position: int
    token: int
    last_seq: int
    records: bytes
    events: bytes
    time: int


class JournalReading(Protocol):
    """Read access to journals."""

    def row(self, operation: str, position: int) -> Row | None:
        """Read one write."""

    def rows(self, operation: str) -> list[Row]:
        """Read all writes of an operation, in order."""

    def rows_after(self, operation: str, seq: int, most_bytes: int) -> tuple[list[Row], bool]:
        """
        Read the writes with events after *seq*, in order, until their events take *most_bytes* or more.

        Returns:
            The writes, and whether more follow.
        """


class Journal(JournalReading, Protocol):
    """Read and write access to journals."""

    def append(self, operation: str, row: Row) -> None:
        """Add a write after the last one."""
