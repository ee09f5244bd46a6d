"""The recorded results of the parser of InfluxDB, compared by their own rules (skipped without ../shared)."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORPUS = ROOT.parent / "shared" / "golden" / "parse"


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the recorded answers are not beside this checkout")
@pytest.mark.parametrize("corpus", ["packages", "errors", "env"])
def test_every_answer_equals_the_recorded_one(corpus: str) -> None:
    compare = [sys.executable, "-B", str(CORPUS / "compare.py"), "--only", corpus, "--"]
    adapter = [sys.executable, str(ROOT / "tests" / "parser" / "golden_adapter.py")]
    done = subprocess.run([*compare, *adapter], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
