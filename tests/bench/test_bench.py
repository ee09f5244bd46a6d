"""The benchmark runs and prints all its figures; their values are not checked."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.influxdb import in_flight, most_in_flight
from bench.package import Mix, package_text
from parser_svc.package import parse
from parser_svc.sources import Source
from tests.influx.records import Request

ROOT = Path(__file__).resolve().parents[2]

MEMORY = ["peak memory"] if Path("/proc/self/status").exists() else []

RATIOS = (
    (
        "CPU time: plan, nothing to do, a new text",
        "a known text",
        "apply, everything created",
        "apply / plan, nothing to do, a known text",
    )
    if Path("/proc/self/schedstat").exists()
    else ()
)

WAITING = (
    ("action sets that wait: CPU time of the applier", "of the stack service", *MEMORY)
    if Path("/proc/self/schedstat").exists()
    else ()
)

REVISION = {"apply, everything created": ("its revision, as it is stored",)}

ROWS = [
    "WHAT",
    "pkger --help",
    "parse: YAML text to validated package",
    "PyYAML's CSafeLoader, trees only",
    "PyYAML's C events, no trees",
    "time of ours / time of CSafeLoader",
    "time of ours / time of C events",
    "with all warnings and their places",
    "parse: one package",
    "peak memory",
    *("parse: CPU time, a new text", "new, and kept in the cache", "all documents known") * 2,
    "Jsonnet: program to JSON, with jsonnet",
    "Jsonnet: program to JSON, with rjsonnet",
    "validate a blueprint",
    "render templates",
    *(
        row
        for _ in Mix
        for rows in (
            *(
                (action, "of it parsing", "calls to the driver", *MEMORY, *REVISION.get(action, ()))
                for action in (
                    "apply, everything created and undone",
                    "plan, everything to create",
                    "apply, everything created",
                    "plan, nothing to do",
                    "apply, nothing to do",
                )
            ),
            ("export of the stack", "calls to the driver", *MEMORY),
            ("drift, none", "calls to the driver", *MEMORY),
            RATIOS,
        )
        for row in rows
    ),
    "journal of an apply",
    "without fsync",
    "plain inserts of the same rows, one transaction",
    "ratio to plain inserts, with and without fsync",
    "in batches of 1",
    "in batches of 64",
    "in batches of 1,000",
    "list of stacks, the slowest page",
    "of one target",
    "with names like *7*9*",
    "with names like none",
    "action set: from its request to its first phase",
    "phases without work, in order",
    "the same, in actions at the same time",
    "action set: backup of a stack",
    "restore, nothing to do",
    "restore, everything created",
    "time of it / apply, everything created",
    *WAITING,
    *(
        row
        for action in ("apply, everything created", "plan, nothing to do", "apply, nothing to do", "uninstall")
        for row in (f"InfluxDB: {action}", "requests", "in flight, in tenths of the time")
    ),
    "gateway: start",
    *(["gateway: its own time for a dry run"] * 2),
    "its peak memory",
    "gateway: /health",
    "gateway: list of stacks",
    "gateway: a ping while 32 clients plan",
    "gateway: from an event to its SSE message",
    "by gRPC",
    "a call through the door of a socket",
    "a call through the door of a port",
    "resolve: no conflict",
    "most memory, of this and of the conflict",
    "resolve: one of the installed to update",
    "resolve: a conflict along a chain",
    "install, plan and apply: packages that are new",
    "time of it / plan and apply of one package with these objects",
    "install, plan: one more package",
    "time of it / plan of all as one package, nothing to do",
    "calls to the driver",
    "pkger apply, nothing to do: CPU time",
]


@pytest.mark.slow
def test_all_figures_are_printed() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bench", "--objects", "20"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    machine, *lines = ran.stdout.splitlines()
    assert "cores" in machine
    assert [line.strip().partition("  ")[0] for line in lines] == ROWS


@pytest.mark.parametrize("mix", Mix)
@pytest.mark.parametrize("count", [1, 2, 20, 333])
def test_a_generated_package_is_valid_and_has_the_size_asked_for(count: int, mix: Mix) -> None:
    parsed = parse([Source("bench.yml", package_text(count, mix))], {})
    assert parsed.violations == ()
    assert parsed.package is not None
    assert len(parsed.package.objects) == count
    assert (parsed.warnings, parsed.missing_env_refs, parsed.missing_secrets) == ((), (), ())


def test_the_same_seed_makes_the_same_package_and_another_seed_another_one() -> None:
    assert package_text(50, seed=1) == package_text(50, seed=1) != package_text(50, seed=2)


def test_requests_in_flight_are_counted_over_time() -> None:
    spans = [(0.0, 10.0), (0.0, 2.0), (1.0, 2.0), (2.0, 4.0), (9.5, 10.0)]
    requests = [Request("GET", "/", "", b"", started, ended) for started, ended in spans]
    assert in_flight(requests, 5) == [2.5, 2.0, 1.0, 1.0, 1.25]
    # A request that ends when another one begins does not overlap it.
    assert most_in_flight(requests) == 3
    assert (in_flight([], 2), most_in_flight([])) == ([0.0, 0.0], 0)
