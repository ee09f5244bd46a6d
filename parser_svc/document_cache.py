"""A cache of the objects of YAML documents that were parsed before; no result depends on it."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.core.model import Key

_ENTRY_BYTES = 700
"""Memory that an entry takes beside its texts; a test compares the sum with the measured memory."""

_LABEL_BYTES = 200
"""Memory that an association takes beside its name."""


class CachedObject(NamedTuple):
    """
    The object of a document, independent of the position of the document.

    Attributes:
        key: Its key.
        api_version: As written.
        display_name: The display name.
        spec: Canonical text of its spec.
        associations: Labels, sorted by name.
        nodes: The number of values in the document.
        line: The line of its root; the first line of the document is 1.
        column: The column of its root, from 1.
        lifecycle: The policy in its ``metadata.lifecycle``, as canonical JSON; empty: it has none.
    """

    key: Key
    api_version: str
    display_name: str
    spec: str
    associations: tuple[Key, ...]
    nodes: int
    line: int
    column: int
    lifecycle: str = ""


class DocumentCache:
    """Objects by the digest of their documents; the least recently used are dropped first. Thread-safe."""

    def __init__(self, most_size: int) -> None:
        """*most_size* is the memory, in bytes, that all entries together may take; 0 keeps none."""
        self._most_size = most_size
        self._entries: OrderedDict[bytes, CachedObject] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The bytes of memory that the entries take."""
        return self._size

    def entries(self) -> list[CachedObject]:
        """All entries, the least recently used first."""
        with self._lock:
            return list(self._entries.values())

    def find(self, digests: Iterable[bytes]) -> list[CachedObject | None]:
        """The object of each document; None for a document that is not in the cache."""
        with self._lock:
            entries = []
            for digest in digests:
                entry = self._entries.get(digest)
                if entry is not None:
                    self._entries.move_to_end(digest)
                entries.append(entry)
            return entries

    def keep(self, entries: Sequence[tuple[bytes, CachedObject]]) -> None:
        """Add the objects of documents by their digests; an object larger than the cache is not added."""
        with self._lock:
            for digest, entry in entries:
                taken = _taken(entry)
                if taken > self._most_size:
                    continue
                if (previous := self._entries.pop(digest, None)) is not None:
                    self._size -= _taken(previous)
                self._entries[digest] = entry
                self._size += taken
                while self._size > self._most_size:
                    _, oldest = self._entries.popitem(last=False)
                    self._size -= _taken(oldest)


def _taken(entry: CachedObject) -> int:
    """The bytes of memory that an entry takes."""
    texts = sum(map(sys.getsizeof, (entry.key.name, entry.display_name, entry.spec)))
    texts += sys.getsizeof(entry.lifecycle) if entry.lifecycle else 0
    labels = sum(_LABEL_BYTES + sys.getsizeof(label.name) for label in entry.associations)
    return _ENTRY_BYTES + texts + labels
