"""What users reported of other tools, by the steps of the recorded folders (golden/reports)."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import needs
from tests.cli.command import Ended, environment, pkger
from tests.cluster import Cluster
from tests.corpora import RECORDED

REPORTS = RECORDED / "reports"

ELSEWHERE = {"nameless-merge", "shard-group", "task-calendar"}
"""Folders with tests of their own: tests/gateway/test_reports.py, tests/drivers/influxdb/test_reports.py."""

pytestmark = needs.shared(REPORTS)


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


def file(name: str) -> str:
    return str(REPORTS / name)


async def done(env: Mapping[str, str], *arguments: str) -> Ended:
    """A call that succeeds."""
    ended = await pkger(*arguments, env=env)
    assert ended.code == 0, ended
    return ended


def test_each_folder_has_a_test() -> None:
    here = Path(__file__).read_text("utf-8")
    folders = {each.name for each in REPORTS.iterdir() if each.is_dir()}
    assert {name for name in folders if f'"{name}/' not in here} == ELSEWHERE


async def test_the_same_package_under_another_stack_asks(env: Mapping[str, str]) -> None:
    package = file("second-stack/p.yml")
    await done(env, "apply", "-f", package, "--stack", "fleet", "--yes")
    plan = await done(env, "plan", "-f", package, "--stack", "fleeet")
    assert "Task 'downsample' is created beside another one named 'Downsample', of stack 'fleet'" in plan.out
    assert "NotificationRule 'page' is created beside another one named 'Page', of stack 'fleet'" in plan.out
    refused = await pkger("apply", "-f", package, "--stack", "fleeet", env=env)
    assert (refused.code, "nothing was written" in refused.err) == (1, True)


async def test_a_shorter_retention_asks_and_protect_keeps_the_longer_one(env: Mapping[str, str]) -> None:
    await done(env, "apply", "-f", file("retention-cut/before.yml"), "--stack", "s")
    refused = await pkger("apply", "-f", file("retention-cut/after.yml"), "--stack", "s", env=env)
    assert (refused.code, "loses data older than 1h" in refused.out) == (1, True)
    await done(env, "stacks", "policy", "s", "--set", "protect=true")
    kept = await done(env, "apply", "-f", file("retention-cut/after.yml"), "--stack", "s")
    assert "Bucket 'history' keeps its retentionRules" in kept.out


async def test_a_template_that_is_exported_again_is_the_same(env: Mapping[str, str]) -> None:
    await done(env, "apply", "-f", file("re-export-names/v1.yml"), "--stack", "s", "--yes")
    plan = await done(env, "plan", "-f", file("re-export-names/v2.yml"), "--stack", "s")
    assert "Plan: nothing to do on the platform" in plan.out


async def test_json_of_another_sort_is_named(env: Mapping[str, str]) -> None:
    for name, words in (("dashboard", "the user interface of InfluxDB exports it"), ("grafana", "of Grafana")):
        refused = await pkger("validate", "-f", file(f"ui-export-json/{name}.json"), env=env)
        assert (refused.code, words in refused.err + refused.out) == (1, True)
    await done(env, "validate", "-f", file("ui-export-json/bom.json"))
    assert "kind: Dashboard" in (await done(env, "convert", file("ui-export-json/dashboard.json"))).out


async def test_fields_that_influxdb_writes_itself_are_no_warnings(env: Mapping[str, str]) -> None:
    valid = await done(env, "validate", "-f", file("warning-noise/as-influx-exports.yml"))
    assert "warning" not in valid.out + valid.err


async def test_a_library_of_jsonnet_is_found(env: Mapping[str, str]) -> None:
    program, library = file("jsonnet-library/programs/labels.jsonnet"), file("jsonnet-library/library")
    assert "--jpath" in (await pkger("validate", "-f", program, env=env)).out
    assert "is valid" in (await done(env, "validate", "-f", program, "--jpath", library)).out
