"""Packages for the tests with clients of InfluxDB."""

import yaml

from tests.conftest import ROOT
from tests.gateway.cases import read_cases

EXAMPLES = [
    document
    for name in ("labels.json", "fleet.yml")
    for loaded in yaml.safe_load_all((ROOT / "examples" / name).read_text())
    for document in (loaded if isinstance(loaded, list) else [loaded])
]
"""The objects of two files of examples/."""

(EVERY_KIND,) = [
    case["request"]["body"]["templates"][0]["contents"] for case in read_cases() if case["id"] == "summary-all-kinds"
]
"""Objects of all kinds."""
