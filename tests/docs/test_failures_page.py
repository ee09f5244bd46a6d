"""The outputs of docs/apply-fails.md for refused and stale plans are those of real commands."""

import json
import re
from pathlib import Path

from tests.cli.command import environment, pkger
from tests.cluster import Cluster
from tests.conftest import ROOT
from tests.drivers.client import update

PAGE = (ROOT / "docs" / "apply-fails.md").read_text()

PACKAGE = """\
apiVersion: influxdata.com/v2alpha1
kind: Label
metadata: {name: fleet}
---
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata: {name: hourly}
spec: {name: hourly, description: means}
---
apiVersion: influxdata.com/v2alpha1
kind: Bucket
metadata: {name: raw}
spec: {name: raw, description: readings}
"""

REFUSED = {
    "a rule": ("{name: raw, ", "{name: raw, retentionRules: [{type: expire, everySeconds: 60}], "),
    "content": ("{name: raw, ", "{name: _raw, "),
    "values": ("spec: {name: raw, ", "spec: {name: {envRef: {key: RAW}}, "),
    "approval": (PACKAGE.partition("---")[2], ""),
}
"""Changes of the package, each of which refuses an apply."""


def shown(output: str) -> bool:
    """Whether the page has the error of a command, but for ids."""
    error = output[output.index("Error: ") :]
    assert error.strip()
    return _without_ids(f"```text\n{error}```") in _without_ids(PAGE)


def _without_ids(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{16}\b", "ID", text)


async def test_the_page_shows_refused_and_stale_plans(services: Cluster, tmp_path: Path) -> None:
    env = environment(tmp_path, services.addresses)
    good, bad, plan = tmp_path / "fleet.yml", tmp_path / "bad.yml", tmp_path / "fleet.plan"
    good.write_text(PACKAGE)
    assert (await pkger("apply", "-f", str(good), "--stack", "fleet", env=env)).code == 0
    for name, (old, new) in REFUSED.items():
        assert old in PACKAGE
        bad.write_text(PACKAGE.replace(old, new))
        options = () if name == "approval" else ("--yes",)
        refused = await pkger("apply", "-f", str(bad), "--stack", "fleet", *options, env=env)
        assert (refused.code, shown(refused.err.replace(f"{tmp_path}/", ""))) == (1, True), (name, refused.err)

    good.write_text(PACKAGE.replace("readings", "all readings"))
    assert (await pkger("plan", "-f", str(good), "--stack", "fleet", "--out", str(plan), env=env)).code == 0
    [raw] = [each for each in await services.resources() if each.display_name == "raw"]
    edited = {**json.loads(raw.spec_json), "description": "edited by a user"}
    await services.mutate(update("Bucket", raw.id, edited))
    stale = await pkger("apply", "--plan", str(plan), "--yes", env=env)
    assert (stale.code, shown(stale.err)) == (3, True), stale.err
