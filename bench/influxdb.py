"""Measures a stack on the InfluxDB stand-in of the tests: its requests, and how many of them are in flight."""

import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from bench.cluster import Unexpected, cluster
from bench.figures import Figure, Seconds, counts, seconds
from bench.package import Mix, package_text
from tests.influx import faults
from tests.influx.orgs import add_org
from tests.influx.records import Request
from tests.influx.server import Influx, influx
from tests.influx.state import LABELLED

ORG = "default"
_TOKEN = "BENCH_INFLUX_TOKEN"
_ANSWER_SECONDS = 0.003
"""The duration of a response: about that of most responses of a real server, which writes to a disk."""

_SLICES = 10


async def on_influxdb(count: int) -> list[Figure]:
    """
    Apply a package of *count* objects to an empty server, plan and apply it again, and uninstall it.

    The server runs in this process, and its responses take as long as those of a real one.

    Raises:
        Unexpected: A call had another result than the one to measure.
    """
    text, size = package_text(count, Mix.MIXED), f"{count:,} {Mix.MIXED.value}"
    async with influx() as server:
        server.faults.add(faults.slow(_ANSWER_SECONDS), times=None)
        add_org(server.state, ORG)
        with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
            rows = _platforms_file(Path(folder), server.url)
            async with cluster({"PKGER_PLATFORMS": str(rows), _TOKEN: server.token}) as services:

                async def measured(what: str, work: Callable[[], Awaitable[object]]) -> list[Figure]:
                    return await _measured(server, f"InfluxDB: {what}", size, count, work)

                figures = await measured("apply, everything created", lambda: services.apply(text))
                figures += await measured("plan, nothing to do", lambda: services.plan(text))
                figures += await measured("apply, nothing to do", lambda: services.apply(text))
                figures += await measured("uninstall", services.uninstall)
        org = server.state.org_by_name(ORG) or {}
        resource_counts = {kind: sum(1 for each in server.state.of_org(kind, str(org["id"]))) for kind in LABELLED}
        # Two buckets are the server's own.
        if sum(resource_counts.values()) > 2:
            raise Unexpected(f"the uninstall left something: {resource_counts}")
    return figures


def most_in_flight(requests: Sequence[Request]) -> int:
    """The most of these requests that were in flight at once."""
    steps = sorted([(each.started, 1) for each in requests] + [(each.ended, -1) for each in requests])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def in_flight(requests: Sequence[Request], slices: int = _SLICES) -> list[float]:
    """The average number of requests in flight, in each of *slices* equal parts of the time from first to last."""
    if not requests:
        return [0.0] * slices
    first, last = min(each.started for each in requests), max(each.ended for each in requests)
    width = (last - first) / slices or 1.0
    averages = []
    for number in range(slices):
        begin, end = first + number * width, first + (number + 1) * width
        taken = sum(max(min(each.ended, end) - max(each.started, begin), 0.0) for each in requests)
        averages.append(taken / width)
    return averages


def _platforms_file(folder: Path, url: str) -> Path:
    options = f"{{url: '{url}', token_variable: {_TOKEN}}}"
    rows = folder / "platforms.yml"
    rows.write_text(f"embedded: {{driver: influxdb, options: {options}}}\n")
    return rows


async def _measured(
    server: Influx, what: str, size: str, count: int, work: Callable[[], Awaitable[object]]
) -> list[Figure]:
    server.records.clear()
    started = time.perf_counter()
    await work()
    taken: Seconds = time.perf_counter() - started
    requests = list(server.records.requests)
    methods = Counter(each.method for each in requests)
    over_time = " ".join(f"{mean:.1f}" for mean in in_flight(requests))
    return [
        Figure(what, size, f"{seconds(taken)}, {count / taken:,.0f} objects/s"),
        Figure("  requests", "", f"{counts(methods)}, {len(requests) / count:.2f} for each object"),
        Figure("  in flight, in tenths of the time", "", f"{over_time}, at most {most_in_flight(requests)}", "<= 8"),
    ]
