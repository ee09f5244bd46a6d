"""The recorded cases of versioned packages, compared by the program beside them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

RECORDED = needs.SHARED / "golden" / "dependencies"
ADAPTER = Path(__file__).with_name("golden_adapter.py")


@needs.shared(RECORDED)
@pytest.mark.parametrize("suite", ["ranges", "repository", "resolve", "random"])
def test_answers_as_recorded(suite: str) -> None:
    command = [sys.executable, str(RECORDED / "compare.py"), "--only", suite, "--", sys.executable, str(ADAPTER)]
    compared = subprocess.run(command, check=False, capture_output=True, text=True)
    assert compared.returncode == 0, compared.stdout + compared.stderr
