"""Services that a command runs for itself, in one process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import PKGER, environment


@pytest.mark.slow
def test_no_service_imports_an_http_client_before_it_is_needed() -> None:
    """The import takes a third of the start time of the parser, for each command."""
    program = (
        "import sys; from services.local.__main__ import servers; from services.settings import load;"
        "servers(['stack', 'parser', 'planner', 'applier'], load()); print('aiohttp' in sys.modules)"
    )
    # In a new process, as this one has already imported everything.
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize("command", [("stacks", "list"), ("serve", "stack", "--listen", "127.0.0.1:0")])
async def test_modules_in_the_working_directory_are_not_run(tmp_path: Path, command: tuple[str, ...]) -> None:
    """It may be that of a package that somebody else wrote."""
    mark, folder = tmp_path / "mark", tmp_path / "package"
    for name in ("services/__init__.py", "stack_svc/__init__.py", "orjson.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"open({str(mark)!r}, 'w')")
    process = await asyncio.create_subprocess_exec(
        PKGER, *command, env=environment(tmp_path), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr
    try:
        if command[0] == "serve":
            while b'"serving"' not in (line := await process.stderr.readline()):
                assert line
            process.terminate()
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, mark.exists()) == (0, False), errors
