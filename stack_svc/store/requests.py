"""Answers to request ids, as stored."""

from typing import NamedTuple, Protocol


class StoredAnswer(NamedTuple):
    """
    The answer to a request.

    Attributes:
        digest: Digest of the content of the request.
        result: Name or id of the record that the request made.
        expires: Time at which it expires, in microseconds since 1970.
    """

    digest: str
    result: str
    expires: int


class RequestsReading(Protocol):
    """Read access to requests."""

    def find(self, request: str) -> StoredAnswer | None:
        """Read the answer to a request, even an expired one."""


class Requests(RequestsReading, Protocol):
    """Read and write access to requests."""

    def put(self, request: str, answer: StoredAnswer, now: int) -> StoredAnswer | None:
        """Store an answer, unless there is one that has not expired; return that one, or None."""

    def forget(self, result: str) -> None:
        """Remove the answers with *result*, so that their request ids can be used again."""
