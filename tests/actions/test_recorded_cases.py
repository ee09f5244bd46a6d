"""The recorded cases of action documents, compared by the program beside them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

RECORDED = needs.SHARED / "golden" / "actions"
ADAPTER = Path(__file__).with_name("golden_adapter.py")

OF_LATER_KINDS = {
    *("good-profiles", "profile-type", "profile-secret-inline", "profile-prefix-outside"),
    *("good-job", "job-after", "job-changes-stack", "job-foreach-changes-stack"),
}
"""Cases with a Profile or a Job, kinds that there are not."""


@needs.shared(RECORDED)
@pytest.mark.parametrize(("suite", "differing"), [("validate", OF_LATER_KINDS), ("render", set())])
def test_answers_as_recorded(suite: str, differing: set[str], tmp_path: Path) -> None:
    cases = (RECORDED / f"{suite}.jsonl").read_text(encoding="utf-8").splitlines()
    alike = [line for line in cases if json.loads(line)["id"] not in differing]
    assert len(alike) == len(cases) - len(differing)
    (tmp_path / f"{suite}.jsonl").write_text("\n".join(alike), encoding="utf-8")
    (tmp_path / "parameters.json").write_bytes((RECORDED / "parameters.json").read_bytes())
    program = [sys.executable, str(RECORDED / "compare.py"), "--corpus", str(tmp_path), "--only", suite]
    compared = subprocess.run(
        [*program, "--", sys.executable, str(ADAPTER)], check=False, capture_output=True, text=True
    )
    assert compared.returncode == 0, compared.stdout + compared.stderr
