"""Answers to request ids: a call that is sent twice takes effect once (AIP-155)."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from services.core.errors import RequestIdReused
from services.kinds.format.canonical import canonical_text
from stack_svc.rules import sanitize
from stack_svc.rules.leases import SECOND
from stack_svc.store.requests import StoredAnswer
from stack_svc.store.store import ReadTransaction, Transaction

KEPT = 24 * 3600 * SECOND
"""How long an answer is retained, in microseconds."""


@dataclass(frozen=True, slots=True)
class RequestId:
    """The id of a request and its content. A request without an id may be made any number of times."""

    id: str = ""
    content: Sequence[str] = ()

    @property
    def digest(self) -> str:
        """Digest of its content."""
        return sha256(canonical_text(list(self.content)).encode()).hexdigest()


def answered_name(reading: ReadTransaction, request: RequestId) -> str:
    """The stored answer to this request, even an expired one; empty: there is none."""
    stored = reading.requests.find(sanitize.key(request.id)) if request.id else None
    return stored.result if stored else ""


def earlier_answer(reading: ReadTransaction, request: RequestId, now: int) -> str | None:
    """
    The earlier answer to this request; None for a new request, and for one without an id.

    Raises:
        RequestIdReused: The id was used with other content.
    """
    stored = reading.requests.find(sanitize.key(request.id)) if request.id else None
    if stored is None or stored.expires < now:
        return None
    if stored.digest != request.digest:
        raise RequestIdReused(request.id)
    return stored.result


def store_answer(tx: Transaction, request: RequestId, result: str, now: int) -> None:
    """
    Store *result* as the answer to a new request.

    Raises:
        RequestIdReused: Another request with that id was answered in the meantime.
    """
    if request.id and tx.requests.put(sanitize.key(request.id), StoredAnswer(request.digest, result, now + KEPT), now):
        raise RequestIdReused(request.id)
