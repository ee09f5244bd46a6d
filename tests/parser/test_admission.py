"""Packages that are read at the same time have a bounded amount of text together; the others wait, in order."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pkger.parser.v1 import parser_pb2

from parser_svc.admission import Admission
from parser_svc.servicer import SERVICE, register
from parser_svc.source_texts import GATHERED_PACKAGES, Gatherer
from services.core.errors import SourceTooLarge
from services.fetching import Fetcher
from services.rpc.client import Peer
from services.rpc.process import Service
from services.settings import Bounds
from tests import web as addresses
from tests.parser.conftest import Parser, package_of
from tests.transport import serving_at_socket

TEXT = "apiVersion: influxdata.com/v2alpha1\nkind: Bucket\nmetadata:\n  name: bucket-1\n"
MOST = 100


class Reading:
    """Work that lasts until it may end."""

    def __init__(self, admission: Admission, size: int, starts: list[int]) -> None:
        self._may_end = threading.Event()
        self._loop, self._starts = asyncio.get_running_loop(), starts
        self.size, self.started = size, asyncio.Event()
        self.task = asyncio.create_task(admission.run(size, self._work))

    def _work(self) -> int:
        self._starts.append(self.size)
        self._loop.call_soon_threadsafe(self.started.set)
        assert self._may_end.wait(60)
        return self.size

    async def end(self) -> None:
        self._may_end.set()
        assert await self.task == self.size


async def waiting(admission: Admission, count: int) -> None:
    """Wait until *count* wait for *admission*."""
    while admission.waiting != count:  # noqa: ASYNC110 - nothing tells of it
        await asyncio.sleep(0)


async def test_work_beyond_the_bound_waits_in_the_order_of_its_arrival() -> None:
    admission, starts = Admission(MOST), list[int]()
    first, second = Reading(admission, 60, starts), Reading(admission, 40, starts)
    await asyncio.gather(first.started.wait(), second.started.wait())
    large, small = Reading(admission, 61, starts), Reading(admission, 10, starts)
    await waiting(admission, 2)
    await first.end()
    # Another 10 bytes have room, but the larger work came first.
    await waiting(admission, 2)
    assert sorted(starts) == [40, 60]
    await second.end()
    await asyncio.gather(large.started.wait(), small.started.wait())
    await asyncio.gather(large.end(), small.end())


async def test_work_larger_than_the_bound_runs_alone() -> None:
    admission, starts = Admission(MOST), list[int]()
    small = Reading(admission, 10, starts)
    await small.started.wait()
    huge, next_one = Reading(admission, 10 * MOST, starts), Reading(admission, 10, starts)
    await waiting(admission, 2)
    await small.end()
    await huge.started.wait()
    assert admission.waiting == 1
    await huge.end()
    await next_one.end()


async def test_a_cancelled_caller_gives_its_place_up() -> None:
    admission, starts = Admission(MOST), list[int]()
    first = Reading(admission, 60, starts)
    await first.started.wait()
    large, small = Reading(admission, 90, starts), Reading(admission, 40, starts)
    await waiting(admission, 2)
    large.task.cancel()
    await small.started.wait()
    await asyncio.gather(first.end(), small.end())
    assert starts == [60, 40]


async def test_a_thread_counts_until_its_end_though_its_caller_is_cancelled() -> None:
    admission, starts = Admission(MOST), list[int]()
    first = Reading(admission, MOST, starts)
    await first.started.wait()
    first.task.cancel()
    second = Reading(admission, MOST, starts)
    await waiting(admission, 1)
    with pytest.raises(asyncio.CancelledError):
        await first.task
    assert admission.waiting == 1
    first._may_end.set()
    await second.end()


async def test_an_error_of_the_work_is_raised_and_ends_it() -> None:
    admission = Admission(MOST)

    def fail() -> None:
        raise ValueError("no package")

    for _ in range(3):
        with pytest.raises(ValueError, match="no package"):
            await admission.run(MOST, fail)
    assert await admission.run(MOST, lambda: 1) == 1


@given(st.lists(st.tuples(st.integers(0, 150), st.booleans()), max_size=30))
def test_all_work_is_admitted_and_never_more_than_the_bound(works: list[tuple[int, bool]]) -> None:
    """Some callers are cancelled, whenever that is."""
    now, most, lock = 0, 0, threading.Lock()

    def work(share: int) -> Callable[[], int]:
        def count() -> int:
            nonlocal now, most
            with lock:
                now += share
                most = max(most, now)
            with lock:
                now -= share
            return share

        return count

    async def run() -> None:
        admission = Admission(MOST)
        tasks = [asyncio.create_task(admission.run(size, work(min(size, MOST)))) for size, _ in works]
        await asyncio.sleep(0)
        for task, (_, is_cancelled) in zip(tasks, works, strict=True):
            if is_cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # Nothing that was cancelled keeps a share.
        assert await admission.run(MOST, lambda: "all") == "all"
        assert admission.waiting == 0

    asyncio.run(run())
    assert most <= MOST


@asynccontextmanager
async def parser_of(gatherer: Gatherer, admission: Admission | None = None) -> AsyncIterator[Parser]:
    register_parser = register(gatherer, admission=admission)
    async with serving_at_socket(Service([register_parser], [SERVICE])) as address, Peer("parser", address) as peer:
        yield Parser(peer)


async def test_a_parser_reads_and_writes_packages_within_its_bound() -> None:
    bounds = Bounds(bytes=2 * len(TEXT))
    admission, starts = Admission(2 * bounds.bytes), list[int]()
    async with parser_of(Gatherer(bounds), admission) as parser:
        package = package_of(await parser.parse(parser_pb2.Source(text=TEXT)))
        reading = Reading(admission, 2 * bounds.bytes, starts)
        await reading.started.wait()
        parsing = asyncio.create_task(parser.parse(parser_pb2.Source(text=TEXT)))
        rendering = asyncio.create_task(parser.render(package))
        await waiting(admission, 2)
        with pytest.raises(SourceTooLarge):
            await parser.parse(parser_pb2.Source(text=3 * TEXT))
        await reading.end()
        assert len((await parsing).objects) == 1
        assert "kind: Bucket" in await rendering


async def test_slow_addresses_do_not_delay_texts() -> None:
    arrived, may_answer = asyncio.Semaphore(0), asyncio.Event()
    requests = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal requests
        requests += 1
        arrived.release()
        await may_answer.wait()
        return web.Response(body=TEXT)

    gatherer = Gatherer(fetcher=Fetcher(may_ask=lambda address: True))
    async with addresses.serving({"/a": answer}) as server, parser_of(gatherer) as parser:
        url = parser_pb2.Source(url=f"{server.address}/a")
        fetching = [asyncio.create_task(parser.parse(url)) for _ in range(GATHERED_PACKAGES + 1)]
        for _ in range(GATHERED_PACKAGES):
            await arrived.acquire()
        assert len((await parser.parse(parser_pb2.Source(text=TEXT))).objects) == 1
        assert requests == GATHERED_PACKAGES
        may_answer.set()
        assert [len(parsed.objects) for parsed in await asyncio.gather(*fetching)] == [1] * len(fetching)


async def test_a_package_of_an_address_keeps_its_place_until_it_is_read() -> None:
    """Otherwise short requests could fetch any amount of text, which waits to be read."""
    requests = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal requests
        requests += 1
        return web.Response(body=TEXT)

    gatherer, admission, starts = Gatherer(fetcher=Fetcher(may_ask=lambda address: True)), Admission(MOST), list[int]()
    async with addresses.serving({"/a": answer}) as server, parser_of(gatherer, admission) as parser:
        reading = Reading(admission, MOST, starts)
        await reading.started.wait()
        url = parser_pb2.Source(url=f"{server.address}/a")
        parsing = [asyncio.create_task(parser.parse(url)) for _ in range(GATHERED_PACKAGES + 1)]
        await waiting(admission, GATHERED_PACKAGES)
        assert requests == GATHERED_PACKAGES
        await reading.end()
        assert [len(parsed.objects) for parsed in await asyncio.gather(*parsing)] == [1] * len(parsing)
    assert requests == GATHERED_PACKAGES + 1
