"""A run fails if it skips a test for a reason that is not outside the repository."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("skip", "status", "line"),
    [
        ("needs.outside('a server')", 0, "1 skipped: needs a server"),
        ("pytest.skip('later')", 1, "1 skipped: later, which is no reason of tests/needs.py"),
    ],
)
def test_a_run_allows_only_skips_with_a_cause_outside(tmp_path: Path, skip: str, status: int, line: str) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(f"import pytest\nfrom tests import needs\ndef test_it():\n    {skip}\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.skips", "-p", "no:xdist", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == status, done.stdout
    assert line in done.stdout.splitlines()
