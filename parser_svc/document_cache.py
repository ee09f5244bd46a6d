"""What YAML documents came to when they were parsed before: a cache, on which no rule depends."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from services.core.model import Key

_ENTRY_BYTES = 700
"""Memory that an entry takes beside its texts; a test holds the sum against what the interpreter says."""

_LABEL_BYTES = 200
"""Memory that an association takes beside its name."""


class CachedObject(NamedTuple):
    """
    The object that a document came to, wherever the document stands.

    Attributes:
        key: Its key.
        api_version: As written.
        display_name: The display name.
        spec: Canonical text of its spec.
        associations: Labels, sorted by name.
        nodes: How many values the document has.
        line: Where its root begins, from 1 for the first line of the document.
        column: Likewise.
    """

    key: Key
    api_version: str
    display_name: str
    spec: str
    associations: tuple[Key, ...]
    nodes: int
    line: int
    column: int


class DocumentCache:
    """Objects by the digest of their documents; those that were not asked for longest go first. For any thread."""

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
        """All that is in it, from what was not asked for longest to what was asked for last."""
        with self._lock:
            return list(self._entries.values())

    def find(self, digests: Iterable[bytes]) -> list[CachedObject | None]:
        """The object of each document; None where it is not known."""
        with self._lock:
            found = []
            for digest in digests:
                entry = self._entries.get(digest)
                if entry is not None:
                    self._entries.move_to_end(digest)
                found.append(entry)
            return found

    def keep(self, entries: Sequence[tuple[bytes, CachedObject]]) -> None:
        """Keep the objects of documents by their digests, as far as there is room."""
        with self._lock:
            for digest, entry in entries:
                taken = _taken(entry)
                if taken > self._most_size:
                    continue
                if (known := self._entries.pop(digest, None)) is not None:
                    self._size -= _taken(known)
                self._entries[digest] = entry
                self._size += taken
                while self._size > self._most_size:
                    _, oldest = self._entries.popitem(last=False)
                    self._size -= _taken(oldest)


def _taken(entry: CachedObject) -> int:
    """The bytes of memory that an entry takes."""
    texts = sum(map(sys.getsizeof, (entry.key.name, entry.display_name, entry.spec)))
    labels = sum(_LABEL_BYTES + sys.getsizeof(label.name) for label in entry.associations)
    return _ENTRY_BYTES + texts + labels
