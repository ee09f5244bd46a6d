"""Answers to request ids, so that a call sent twice takes effect once (AIP-155)."""

from hashlib import sha256

import sqlite_utils

from services.core.errors import RequestIdReused
from services.kinds.canonical import canonical_text
from stack_svc.leases import SECOND

KEPT = 24 * 3600 * SECOND
"""How long an answer is kept, in microseconds."""


def earlier_answer(db: sqlite_utils.Database, request_id: str, content: list[str], now: int) -> str | None:
    """
    What was answered to this request before; None for a new one.

    Raises:
        RequestIdReused: The id was used with other content.
    """
    known = db.execute(
        "SELECT digest, result FROM requests WHERE request_id = ? AND expires >= ?", [request_id, now]
    ).fetchone()
    if known is None:
        return None
    digest, result = known
    if digest != _digest(content):
        raise RequestIdReused(request_id)
    return str(result)


def remember(db: sqlite_utils.Database, request_id: str, content: list[str], result: str, now: int) -> None:
    """Keep *result* as the answer to a new request, and drop the answers that were kept long enough."""
    db.execute("DELETE FROM requests WHERE expires < ?", [now])
    db.table("requests").insert(
        {"request_id": request_id, "digest": _digest(content), "result": result, "expires": now + KEPT}
    )


def forget(db: sqlite_utils.Database, result: str) -> None:
    """Let the request that *result* is the answer to be made anew, as it came to nothing."""
    db.execute("DELETE FROM requests WHERE result = ?", [result])


def _digest(content: list[str]) -> str:
    return sha256(canonical_text(content).encode()).hexdigest()
