"""Containers as processes of this machine: started in order, checked, stopped, and killed at the end."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.compose.compose_file import Container

START_SECONDS = 60.0
"""Seconds in which a container has to be healthy."""

HASTE = 50
"""The factor by which health checks are more frequent than those of Compose."""


def base_environment(folder: Path) -> dict[str, str]:
    """The environment of an image: with the commands of this Python installed, and *folder* as home."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath])
    return {"PATH": path, "HOME": str(folder)}


async def run(command: Sequence[str], environ: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
    """Exit status, output and error output of a command that ends by itself."""
    process = await asyncio.create_subprocess_exec(
        *command, env=environ, cwd=folder, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        output, errors = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.communicate()
        raise
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


@asynccontextmanager
async def up(containers: Mapping[str, Container], folder: Path) -> AsyncIterator[dict[str, Process]]:
    """
    Start *containers*, each when the containers that it needs are healthy; yields when all are healthy.

    Args:
        containers: By name; a need that is not among them counts as healthy.
        folder: Their working directory, with their logs.

    Raises:
        ExceptionGroup: One of them ended, or was not healthy in time.
    """
    started: dict[str, Process] = {}
    healthy = {name: asyncio.Event() for name in containers}

    async def start(container: Container) -> None:
        for name in container.needs:
            if name in healthy:
                await healthy[name].wait()
        environ = base_environment(folder) | dict(container.environment)
        log = folder / f"{container.name}.log"
        with log.open("ab") as errors:
            process = started[container.name] = await asyncio.create_subprocess_exec(
                *container.command, env=environ, cwd=folder, stdin=DEVNULL, stderr=errors, start_new_session=True
            )
        async with asyncio.timeout(START_SECONDS):
            while (await run(container.check, environ, folder))[0] != 0:
                await _pause(process, container.check_interval / HASTE, log)
        healthy[container.name].set()

    try:
        async with asyncio.TaskGroup() as tasks:
            for container in containers.values():
                tasks.create_task(start(container))
        yield started
    finally:
        for process in started.values():
            # The whole group, as a container may have left child processes behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _pause(process: Process, pause: float, log: Path) -> None:
    with contextlib.suppress(TimeoutError):
        status = await asyncio.wait_for(process.wait(), pause)
        raise AssertionError(f"ended with {status}: {log.read_text()}")


async def stop(processes: Mapping[str, Process], containers: Mapping[str, Container]) -> dict[str, int]:
    """Stop all as Compose does, each before the containers that it needs; returns the exit statuses by name."""
    statuses = {}
    for name in reversed(list(containers)):
        processes[name].send_signal(signal.SIGTERM)
        statuses[name] = await asyncio.wait_for(processes[name].wait(), containers[name].grace)
    return statuses
