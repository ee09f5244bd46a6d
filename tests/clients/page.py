"""Reads docs/clients.md for its tests, and runs its commands as a reader would."""

import asyncio
import os
import re
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

from tests import needs
from tests.conftest import ROOT
from tests.ports import Home

PAGE = ROOT / "docs" / "clients.md"

UNAVAILABLE = re.compile(
    r"no such host|i/o timeout|dial tcp|connection refused|network is unreachable|TLS handshake timeout|GOPROXY=off|"
    r"NewConnectionError|Temporary failure in name resolution|"
    r"ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|ENOTCACHED|requires go >="
)
"""Messages of ``go``, ``npm`` and ``pip`` that cannot reach their registry, or are too old."""


def section(heading: str) -> str:
    """The text under *heading*."""
    return PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]


def blocks(heading: str, language: str = "sh") -> list[str]:
    """The fenced blocks of *language* under *heading*."""
    return re.findall(rf"^```{language}\n(.*?)^```$", section(heading), re.DOTALL | re.MULTILINE)


async def shell(script: str, home: Home, folder: Path | None = None, seconds: float = 30) -> tuple[int, str, str]:
    """
    Run *script* at the ports of *home*, with its token; returns exit status, output and error output.

    Args:
        script: Commands of the page.
        home: The services that the commands call.
        folder: The working directory; the current one by default.
        seconds: Timeout of the script.
    """
    with_token, _ = blocks("Tokens")
    process = await asyncio.create_subprocess_exec(
        "sh", "-eu", "-c", with_token + home.at_ports(script), cwd=folder, stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE, stderr=PIPE, env={**os.environ, **home.environ, "PATH": needs.PATH, "PKGER": str(ROOT)},
    )  # fmt: skip
    output, errors = await asyncio.wait_for(process.communicate(), seconds)
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def build(script: str, home: Home, folder: Path) -> None:
    """Run the commands that build a client; skips the test if a registry cannot be reached, or a tool is too old."""
    status, output, errors = await shell(script, home, folder, 500)
    printed = output + errors
    problem = UNAVAILABLE.search(printed)
    if status != 0 and problem:
        line = printed[: problem.end()].splitlines()[-1]
        needs.outside(f"a registry that answers, and a newer toolchain: {line}")
    assert status == 0, printed


def assert_shown_code_is_run(heading: str, language: str, program: Path) -> None:
    """Each block of *language* under *heading* is a part of *program*."""
    shown, text = blocks(heading, language), program.read_text()
    assert shown
    for block in shown:
        assert block in text, f"docs/clients.md shows what {program.name} does not say:\n{block}"


async def assert_client_runs(
    heading: str, home: Home, folder: Path, made: Callable[[Path], None] = lambda folder: None
) -> None:
    """
    The commands under *heading* make and run a client that applies, watches, shows and deletes examples/.

    Args:
        heading: Section of the page.
        home: The services that the client calls.
        folder: An empty folder.
        made: Called with the folder after the build, before the run.
    """
    make, start = blocks(heading)
    await build(make, home, folder)
    made(folder)

    status, output, errors = await shell(start, home, folder, 60)

    assert (status, errors) == (0, ""), output + errors
    lines = output.lower().replace("_", "").splitlines()
    assert lines[0] == "plan: 6 to create, 0 to update, 0 to delete, 5 to attach, 0 to detach"
    ends = [number for number, line in enumerate(lines) if line == "operation: succeeded"]
    assert len(ends) == 3, output
    assert lines[1] == "event 0: begun"
    applied, watched = lines[2 : ends[0]], lines[ends[0] + 1 : ends[1]]
    assert applied[0] == "event 1: accepted"
    assert applied[-1] == f"event {len(applied)}: finished"
    assert watched == applied
    shown = [line for line in lines if line.startswith("resource: ")]
    assert len(shown) == 6
    assert "resource: bucket fleet-raw" in shown
    assert await home.services.resources() == []
    assert sorted(line for line in lines if line.startswith("change: ")) == ["change: gone", "change: operation ended"]
    assert lines[-1].startswith("change: ")
    assert await home.services.stack_names() == []
