"""Services that a command runs for itself, in one process."""

import subprocess
import sys

import pytest


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
