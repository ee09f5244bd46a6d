"""The index files that a planner keeps in its memory."""

import asyncio
import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from planner_svc.repositories.memory import memory_of
from planner_svc.repositories.transport import Transport, Unavailable
from services.packages.index_files import PackageVersions, RepositoryIndex
from services.repositories.file_problem import FileProblem
from services.rpc.call import loop_time

FRESH_SECONDS = 60
"""How long an index file is used without a question to its repository."""

FAILED_SECONDS = 5
"""How long a repository that did not answer for a file is not asked for it again."""

CACHE_BYTES = 64 * 1024 * 1024

T = TypeVar("T", RepositoryIndex, PackageVersions)

_Key = tuple[str, str]
"""Address of the repository, and path of the file."""


@dataclass(slots=True)
class _Cached:
    value: Any
    hash: bytes
    etag: str
    size: int
    read_at: float


class IndexCache:
    """
    Index files by repository and path, as values; those that were not used for longest are dropped first.

    It may lose anything at any time, and no result depends on it for longer than ``FRESH_SECONDS``.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES, clock: Callable[[], float] = loop_time) -> None:
        """
        Args:
            max_bytes: What all values together take at most.
            clock: Returns seconds since any point of time.
        """
        self._max_bytes = max_bytes
        self._clock = clock
        self._files: OrderedDict[_Key, _Cached] = OrderedDict()
        self._size = 0
        self._failures: dict[_Key, tuple[float, str]] = {}
        # Several calls that need one file send one request.
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    @property
    def size(self) -> int:
        """What the values take, in bytes."""
        return self._size

    async def read(
        self,
        address: str,
        path: str,
        transport: Transport,
        max_bytes: int,
        parse: Callable[[bytes], T],
        refresh: bool = False,
    ) -> T:
        """
        The value of an index file.

        Args:
            address: The address of the repository.
            path: The path of the file; the same one always has the same *parse*.
            transport: Fetches it.
            max_bytes: Its greatest size.
            parse: Makes the value of its bytes.
            refresh: Whether to ask the repository, however fresh the value is.

        Raises:
            FileProblem: The file breaks a rule; nothing of it is kept.
            Unavailable: The repository does not answer; an older value does not take its place.
        """
        key = (address, path)
        lock = self._locks.get(key)
        if lock is None:
            self._locks[key] = lock = asyncio.Lock()
        asked_at = self._clock()
        async with lock:
            cached = self._files.get(key)
            # What was asked for while this call waited is as fresh as the answer to a request of its own.
            if cached and (cached.read_at > asked_at or (not refresh and cached.read_at >= asked_at - FRESH_SECONDS)):
                self._files.move_to_end(key)
                return cast(T, cached.value)
            failed_at, problem = self._failures.get(key, (-math.inf, ""))
            if failed_at > asked_at or (not refresh and failed_at >= asked_at - FAILED_SECONDS):
                raise Unavailable(problem)
            try:
                return await self._fetch(key, transport, max_bytes, parse)
            except Unavailable as error:
                self._fail(key, str(error))
                raise

    async def _fetch(self, key: _Key, transport: Transport, max_bytes: int, parse: Callable[[bytes], T]) -> T:
        cached = self._files.get(key)
        now = self._clock()
        try:
            content = await transport.fetch(key[1], max_bytes, cached.etag if cached else "")
            data = content.data
            digest = hashlib.sha256(data).digest() if data is not None else b""
            if cached and digest in (b"", cached.hash):
                cached.etag, cached.read_at = content.etag, now
                self._keep(key, cached)
                return cast(T, cached.value)
            # A large file takes seconds, in which other calls go on.
            value = await asyncio.to_thread(parse, data or b"")
        except FileProblem:
            self._drop(key)
            raise
        self._keep(key, _Cached(value, digest, content.etag, memory_of(value), now))
        return value

    def _fail(self, key: _Key, problem: str) -> None:
        """Keep a failure for a moment: calls that wait for the same file need not wait for a timeout each."""
        now = self._clock()
        recent = {each: failure for each, failure in self._failures.items() if failure[0] >= now - FAILED_SECONDS}
        self._failures = recent | {key: (now, problem)}

    def _keep(self, key: _Key, cached: _Cached) -> None:
        self._drop(key)
        self._files[key] = cached
        self._size += cached.size
        while self._size > self._max_bytes:
            self._drop(next(iter(self._files)))

    def _drop(self, key: _Key) -> None:
        dropped = self._files.pop(key, None)
        if dropped:
            self._size -= dropped.size
