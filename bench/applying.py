"""Measures plan, apply, export and drift through all five services: wall time, memory, calls to the driver."""

import statistics
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from pkger.model.v1 import operation_pb2

from bench.cluster import Cluster, Unexpected, cluster
from bench.figures import Figure, counts, median_of_async, megabytes, seconds
from bench.package import Mix, package_text, refused_object

RUNS = 3
"""How often a call that changes nothing is repeated; the median counts."""

_PLAN_SECONDS = {1_000: "< 150 ms", 10_000: "< 1.5 s"}
_APPLY_SECONDS = {10_000: "< 5 s"}
_REVISION_SIZES = {1_000: "< 100 KiB"}
_DRIFT_SECONDS = {10_000: "< 1.5 s"}
_EXPORT_SECONDS = {10_000: "< 3 s"}


async def applying(count: int, mix: Mix) -> list[Figure]:
    """
    Plan and apply a package of *count* objects to an empty platform, and both again with nothing to do.

    Then export the stack, and detect its drift.

    Before all that, measure an apply with one more object that the platform rejects when it is written, so that all
    other steps are undone.

    Raises:
        Unexpected: A call had another result than the one to measure.
    """
    text, size = package_text(count, mix), f"{count:,} {mix.value}"
    async with cluster(modules={"platform": "bench.unchecked_platform"}) as services:
        fail = partial(services.apply, f"{text}---\n{refused_object()}", operation_pb2.OPERATION_STATE_ROLLED_BACK)
        figures = await _measured(services, "apply, everything created and undone", size, 1, fail)
    async with cluster() as services:
        plan, apply = partial(services.plan, text), partial(services.apply, text)
        figures += await _measured(services, "plan, everything to create", size, RUNS, plan)
        figures += await _measured(services, "apply, everything created", size, 1, apply, _APPLY_SECONDS.get(count, ""))
        size_of_revision = f"{services.revision_bytes() / 1024:,.0f} KiB"
        figures.append(Figure("  its revision, as it is stored", "", size_of_revision, _REVISION_SIZES.get(count, "")))
        figures += await _measured(services, "plan, nothing to do", size, RUNS, plan, _PLAN_SECONDS.get(count, ""))
        figures += await _measured(services, "apply, nothing to do", size, RUNS, apply)
        export = partial(services.export, count)
        figures += await _measured(services, "export of the stack", size, RUNS, export, _EXPORT_SECONDS.get(count, ""))
        drift = services.drift
        figures += await _measured(services, "drift, none", size, RUNS, drift, _DRIFT_SECONDS.get(count, ""))
        last = await services.apply(text)
        if not last.no_change:
            raise Unexpected("an apply of the same package changed something")
    return figures


async def _measured(
    services: Cluster, what: str, size: str, times: int, work: Callable[[], Awaitable[object]], goal: str = ""
) -> list[Figure]:
    """The median time of *work*, the parsing time and the driver calls of one run, and the peak memory of all runs."""
    services.forget_peaks()
    parsed, called = len(services.served("parser")), len(services.served("platform"))
    taken = await median_of_async(times, work)
    parsing = [duration for _, duration in services.served("parser")[parsed:]]
    calls = Counter(method for method, _ in services.served("platform")[called:])
    figures = [
        Figure(what, size, seconds(taken), goal),
        *([Figure("  of it parsing", "", seconds(statistics.median(parsing)))] if parsing else []),
        Figure("  calls to the driver", "", counts({method: total // times for method, total in calls.items()})),
    ]
    if peaks := services.peak_memory():
        figures.append(Figure("  peak memory", "", megabytes(peaks), "< 300 MB each"))
    return figures
