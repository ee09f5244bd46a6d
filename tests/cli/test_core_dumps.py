"""No process that may hold a secret leaves a core dump (docs/reference/engine.md, "Secrets")."""

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests import needs
from tests.cli.command import PKGER, environment, sockets
from tests.cli.test_up import children

pytestmark = needs.path("/proc/self/task")

DUMPING = ["sh", "-c", 'ulimit -S -c unlimited && exec "$@"', "sh"]
"""Runs the rest of the command with core dumps enabled."""


def wait_status(process: subprocess.Popen[str]) -> int:
    """The wait status of *process*, which has the flag of a core dump."""
    _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return status


@pytest.mark.slow
def test_no_process_leaves_a_core_dump(short_path: Path) -> None:
    """The command line, and all services that it runs."""
    folder = short_path / "here"
    folder.mkdir()
    env = environment(short_path, sockets(short_path))
    command = [*DUMPING, str(PKGER), "up", "--data", str(short_path / "data")]
    with subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert any(line.startswith("ready") for line in process.stdout)
            services = children(process.pid).values()
            assert len(services) == 5
            for pid in (process.pid, *services):
                limit, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
                assert limit == (1 if hard else 0)
            for pid in (*services, process.pid):
                os.kill(pid, signal.SIGABRT)
            status = wait_status(process)
        finally:
            process.kill()
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)
    assert list(folder.iterdir()) == []


def test_other_processes_leave_a_core_dump_on_this_machine(tmp_path: Path) -> None:
    """Otherwise, the test above would prove nothing."""
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
        needs.outside("a hard limit that allows core dumps")
    with subprocess.Popen([*DUMPING, "sh", "-c", "kill -ABRT $$"], cwd=tmp_path, text=True) as process:
        assert os.WCOREDUMP(wait_status(process))
