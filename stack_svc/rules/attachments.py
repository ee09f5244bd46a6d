"""Attachments of plans: texts that are named by their digest and sent in parts (journal.proto)."""

from collections.abc import Mapping

from services.core.errors import RequestInvalid
from services.kinds.attachment import decompressed, text_digest
from stack_svc.rules import sanitize
from stack_svc.rules.leases import SECOND
from stack_svc.store.store import ReadTransaction, Transaction

KEPT = 24 * 3600 * SECOND
"""How long an attachment is retained that no plan, no revision and no package names, in microseconds."""

_MOST_PARTS = 10_000


def keep(tx: Transaction, digest: str) -> bool:
    """Retain an attachment for ``KEPT`` from now on; False: the store does not have it."""
    return tx.attachments.keep(sanitize.key(digest), tx.now())


def store(tx: Transaction, digest: str, number: int, count: int, body: bytes) -> None:
    """
    Store a part of an attachment; a complete attachment stays as it is.

    Raises:
        RequestInvalid: Its number is out of range, or it is the last part and the whole text has another digest.
    """
    if not (0 <= number < count <= _MOST_PARTS):
        raise RequestInvalid("number", f"there is no part {number} of {count}; at most {_MOST_PARTS:,} are accepted")
    key, now = sanitize.key(digest), tx.now()
    if tx.attachments.keep(key, now):
        return
    others = {each for each in tx.attachments.numbers(key) if each < count} - {number}
    is_complete = len(others) == count - 1
    # The bodies are read only with the last part.
    if is_complete and text_digest(_joined({**tx.attachments.parts(key), number: body}, count)) != digest:
        raise RequestInvalid("digest", f"the text does not have the digest {digest}")
    tx.attachments.put(key, number, body, now)
    if is_complete:
        tx.attachments.complete(key, count)


def text_of(reading: ReadTransaction, digest: str) -> str:
    """The text of an attachment; empty for an empty digest, and for one that is not stored."""
    if not digest or not reading.attachments.has(digest):
        return ""
    parts = reading.attachments.parts(digest)
    return _joined(parts, len(parts))


def _joined(parts: Mapping[int, bytes], count: int) -> str:
    try:
        return "".join(decompressed(parts[number]) for number in range(count))
    except ValueError as error:
        raise RequestInvalid("body", str(error)) from None
