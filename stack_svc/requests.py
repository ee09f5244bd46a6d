"""Answers to request ids, so that a call sent twice takes effect once (AIP-155)."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from services.core.errors import RequestIdReused
from services.kinds.format.canonical import canonical_text
from stack_svc import texts
from stack_svc.leases import SECOND
from stack_svc.store.requests import Answer
from stack_svc.store.store import Reading, Transaction

KEPT = 24 * 3600 * SECOND
"""How long an answer is kept, in microseconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request by its id, and what it asks for. Without an id it may be made any number of times."""

    id: str = ""
    content: Sequence[str] = ()

    @property
    def digest(self) -> str:
        """Digest of what it asks for."""
        return sha256(canonical_text(list(self.content)).encode()).hexdigest()


def answered_name(reading: Reading, request: Request) -> str:
    """What may have been answered to this request before; empty: nothing was. It may have expired."""
    known = reading.requests.find(texts.key(request.id)) if request.id else None
    return known.result if known else ""


def earlier_answer(reading: Reading, request: Request, now: int) -> str | None:
    """
    What was answered to this request before; None for a new one, and for one without an id.

    Raises:
        RequestIdReused: The id was used with other content.
    """
    known = reading.requests.find(texts.key(request.id)) if request.id else None
    if known is None or known.expires < now:
        return None
    if known.digest != request.digest:
        raise RequestIdReused(request.id)
    return known.result


def remember(tx: Transaction, request: Request, result: str, now: int) -> None:
    """
    Keep *result* as the answer to a new request.

    Raises:
        RequestIdReused: Another request with that id was answered meanwhile.
    """
    if request.id and tx.requests.put(texts.key(request.id), Answer(request.digest, result, now + KEPT), now):
        raise RequestIdReused(request.id)
