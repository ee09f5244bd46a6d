"""Services that a command runs for itself, in one process."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("service", ["parser", "planner", "applier", "stack"])
def test_no_service_imports_an_http_client_before_an_address_is_asked_for(service: str) -> None:
    """It takes a third of the time in which the parser starts, for each command again."""
    program = (
        "import sys; from services.local.__main__ import servers; from services.settings import load;"
        f"servers([{service!r}], load()); print('aiohttp' in sys.modules)"
    )
    # In a process of its own: this one has imported all there is.
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
