"""The CPU time of all processes over the least that it could be, measured in the same run."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.cluster import Cluster, cluster
from bench.figures import Figure, Seconds
from bench.floors import Floors, floors
from bench.package import Mix, package_text

RUNS = 5

_HAS_CPU_TIMES = Path("/proc/self/schedstat").exists()

COMMAND_RUNS = 3

OBJECTS = 20
"""Objects in the package of the command that finds nothing to do."""


async def ratios(count: int, mix: Mix) -> list[Figure]:
    """
    Plan and apply a package of *count* objects; empty where the kernel does not tell the CPU time of threads.

    Raises:
        Unexpected: A service did something else than what was to be measured.
    """
    if not _HAS_CPU_TIMES:
        return []
    text = package_text(count, mix)
    # The parser keeps documents that it knows: as comments differ, each of these texts is new, with the same objects.
    new_texts = (text.replace("---\n", f"---\n# {number}\n") for number in range(RUNS))
    async with cluster() as services:
        # Imports, connections and caches of the first call are no part of what a plan costs.
        await services.plan(package_text(1, mix))
        creating = await _least(services, 1, lambda: services.apply(text))
        new = await _least(services, RUNS, lambda: services.plan(next(new_texts)))
        cached = await _least(services, RUNS, lambda: services.plan(text))
        idle = await _least(services, RUNS, lambda: services.apply(text))
        least = floors(text, services.logs)
    return _figures(count, mix, least, creating, new, cached, idle)


def _figures(
    count: int, mix: Mix, least: Floors, creating: Seconds, new: Seconds, cached: Seconds, idle: Seconds
) -> list[Figure]:
    def over(taken: Seconds, floor: Seconds) -> str:
        return f"{taken * 1e6 / count:.0f} ms for 1,000, {taken / floor:.1f} times {floor * 1e6 / count:.1f} ms"

    return [
        Figure(
            "CPU time: plan, nothing to do, a new text", f"{count:,} {mix.value}", over(new, least.plan), "10 times"
        ),
        Figure("  a known text", "", over(cached, least.plan), "6 times"),
        Figure("  apply, everything created", "", over(creating, least.apply), "8 times"),
        Figure("  apply / plan, nothing to do, a known text", "", f"{idle / cached:.2f}", "1.1"),
    ]


async def _least(services: Cluster, runs: int, work: Callable[[], Awaitable[object]]) -> Seconds:
    taken = []
    for _ in range(runs):
        before = services.cpu()
        await work()
        taken.append(services.cpu() - before)
    return min(taken)


def command_ratio() -> Figure:
    """``pkger apply`` of a package that changes nothing, with services of its own, over ``import grpc``."""
    with tempfile.TemporaryDirectory(prefix="pkger-bench-") as folder:
        package = Path(folder, "package.yml")
        package.write_text(package_text(OBJECTS))
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PKGER_")}
        environ = inherited | {"PKGER_HOME": folder}
        apply = [str(Path(sys.executable).with_name("pkger")), "apply", "-f", str(package), "--stack", "s", "--yes"]
        _command_cpu(apply, environ)
        taken = min(_command_cpu(apply, environ) for _ in range(COMMAND_RUNS))
        floor = min(_command_cpu([sys.executable, "-c", "import grpc"], environ) for _ in range(COMMAND_RUNS))
    value = f"{taken:.2f} s, {taken / floor:.1f} times the {floor:.2f} s of import grpc"
    return Figure("pkger apply, nothing to do: CPU time", f"{OBJECTS} mixed", value, "12 times")


def _command_cpu(command: list[str], environ: dict[str, str]) -> Seconds:
    """
    The CPU time of a command and its children.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime
