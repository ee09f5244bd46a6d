"""Answers to request ids, as the store keeps them."""

from typing import NamedTuple, Protocol


class Answer(NamedTuple):
    """
    What was answered to a request.

    Attributes:
        digest: Digest of the content of the request.
        result: Name or id of what the request made.
        expires: Until when it counts, in microseconds since 1970.
    """

    digest: str
    result: str
    expires: int


class RequestsReading(Protocol):
    """Requests, read."""

    def find(self, request: str) -> Answer | None:
        """Read the answer to a request, also when it expired."""


class Requests(RequestsReading, Protocol):
    """Requests, read and written."""

    def remember(self, request: str, answer: Answer, now: int) -> Answer | None:
        """Keep an answer, unless there is one that has not expired: that one is returned."""

    def forget(self, result: str) -> None:
        """Let the requests that were answered with *result* be made anew."""
