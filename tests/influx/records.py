"""The requests that arrived at the server, and how many were in flight at once."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def matches(method: str, path: str, methods: str, paths: str) -> bool:
    """
    Whether a request matches.

    Args:
        methods: A method, ``*`` for any, ``write`` for any but GET.
        paths: A pattern for the path without its query; ``*`` stands for any text, slashes too.
    """
    is_meant = methods in {"*", method} or (methods == "write" and method in WRITES)
    return is_meant and fnmatchcase(path, paths)


@dataclass(slots=True)
class Request:
    """
    One request that arrived.

    Attributes:
        path: As sent, without its query.
        status: Of the answer; 0 while there is none, and after a dropped connection.
        started: Time of arrival, by the clock of the loop; ``ended`` likewise.
    """

    method: str
    path: str
    query: str
    body: bytes
    started: float
    ended: float = 0.0
    status: int = 0


@dataclass(slots=True)
class Records:
    """The requests so far."""

    requests: list[Request] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    _under_way: int = 0
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    async def settled(self) -> None:
        """Return when every request was performed or dropped, late effects included."""
        while self._under_way:
            self._idle.clear()
            await self._idle.wait()

    def begin(self) -> None:
        """A request arrived that may have an effect."""
        self._under_way += 1

    def end(self) -> None:
        """A request has no further effect."""
        self._under_way -= 1
        self._idle.set()

    def matching(self, method: str = "*", path: str = "*") -> list[Request]:
        """
        The requests so far, oldest first.

        Args:
            method: A method, ``*`` for any, ``write`` for any but GET.
            path: A pattern for the path without its query; ``*`` stands for any text, slashes too.
        """
        return list(self._matching(method, path))

    def count(self, method: str = "*", path: str = "*") -> int:
        """The number of matching requests."""
        return sum(1 for _ in self._matching(method, path))

    def clear(self) -> None:
        """Forget the requests so far."""
        self.requests.clear()
        self.most_in_flight = self.in_flight

    def _matching(self, method: str, path: str) -> Iterator[Request]:
        for request in self.requests:
            if matches(request.method, request.path, method, path):
                yield request
