"""No service keeps the low soft limit of open files that its process was started with."""

import resource
import subprocess
from pathlib import Path

import pytest

from tests import needs
from tests.cli.command import PKGER, environment, sockets
from tests.cli.test_up import children

pytestmark = needs.path("/proc/self/task")


@pytest.mark.slow
def test_services_and_gateway_may_open_as_many_files_as_the_system_allows(short_path: Path) -> None:
    env = environment(short_path, sockets(short_path)) | {
        "PKGER_LISTEN": "",
        "PKGER_HTTP_ADDRESS": f"unix:{short_path}/h",
    }
    command = ["sh", "-c", 'ulimit -S -n 256 && exec "$@"', "sh"]
    command += [str(PKGER), "up", "--http", "--data", str(short_path / "data")]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            assert any(line.startswith("ready") for line in process.stdout)
            services = children(process.pid)
            assert len(services) == 6
            for name, pid in services.items():
                soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                assert soft == hard, name
                assert soft > 256
        finally:
            process.terminate()
