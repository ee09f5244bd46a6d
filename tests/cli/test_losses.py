"""A plan that loses data says so, and needs the same approval as a plan that deletes."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.apply.packages import an_object, text
from tests.cli.command import at_terminal, environment, parts, pkger
from tests.cluster import Cluster

KEPT = an_object("Bucket", "b", "readings")
SHORT = an_object("Bucket", "b", "readings", retentionRules=[{"type": "expire", "everySeconds": 3600}])
SHORT_AND_DESCRIBED = {**SHORT, "spec": {**SHORT["spec"], "description": "of all vehicles"}}
ASKS = "and there is no terminal to ask at; nothing was written. --yes applies it without asking"


@pytest.fixture
def env(services: Cluster, tmp_path: Path) -> Mapping[str, str]:
    return environment(tmp_path, services.addresses)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "package.json"
    path.write_text(text(SHORT))
    return path


async def retention(services: Cluster) -> int:
    """How long the only bucket keeps data, in seconds; 0: for ever."""
    [bucket] = await services.resources(kinds=["Bucket"])
    rules = json.loads(bucket.spec_json)["retentionRules"]
    return int(rules[0]["everySeconds"]) if rules else 0


@pytest.mark.parametrize("is_adopted", [False, True])
async def test_a_plan_that_loses_data_is_refused_without_a_terminal(
    services: Cluster, env: Mapping[str, str], file: Path, is_adopted: bool
) -> None:
    await services.apply(text(KEPT), stack="" if is_adopted else "s")
    apply = ("apply", "-f", str(file), "--stack", "s")
    refused = await pkger(*apply, env=env)
    assert refused.code == 1
    assert refused.err.endswith(f"Error: the plan has 1 update that loses data, {ASKS}\n")
    note = "adopted: it exists, and no stack owns it; " if is_adopted else ""
    assert f'~ Bucket b "readings"  ({note}loses data older than 1h; cannot be undone)' in refused.out
    assert "Plan: 1 to update (1 loses data), steps that cannot be undone run last." in refused.out
    assert await retention(services) == 0
    code, shown = await at_terminal(*apply, answers=[(b"Apply this plan? [y/N] ", b"n\n")], env=env)
    assert (code, await retention(services)) == (1, 0), shown
    applied = await pkger(*apply, "--yes", env=env)
    assert (applied.code, await retention(services)) == (0, 3600)
    assert "Done: 1 updated (1 lost data)." in applied.out


async def test_a_plan_that_deletes_and_loses_data_names_both(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    await services.apply(text(KEPT, an_object("Label", "l", "tag")), stack="s")
    refused = await pkger("apply", "-f", str(file), "--stack", "s", env=env)
    assert f"the plan deletes 1 resource and has 1 update that loses data, {ASKS}" in refused.err
    assert "Plan: 1 to update (1 loses data), 1 to delete, steps that cannot be undone run last." in refused.out


async def test_each_of_two_updates_of_a_bucket_has_its_own_changes(
    services: Cluster, env: Mapping[str, str], file: Path
) -> None:
    await services.apply(text(KEPT), stack="s")
    file.write_text(text(SHORT_AND_DESCRIBED))
    planned = await pkger("plan", "-f", str(file), "--stack", "s", env=env)
    assert planned.out.splitlines() == [
        '  ~ Bucket b "readings"',
        '      description: "" -> "of all vehicles"',
        '  ~ Bucket b "readings"  (loses data older than 1h; cannot be undone)',
        '      + retentionRules[0]: {"everySeconds":3600,"type":"expire"}',
        "Plan: 2 to update (1 loses data), steps that cannot be undone run last.",
    ]
    document = parts((await pkger("plan", "-f", str(file), "--stack", "s", "-o", "json", env=env)).out)
    assert document["header"]["counts"]["losses"] == 1
    assert document["steps"]["steps"][1]["update"]["loss"] == {"path": "/retentionRules", "data": "data older than 1h"}


async def test_a_longer_retention_runs_unasked(services: Cluster, env: Mapping[str, str], file: Path) -> None:
    await services.apply(text(SHORT), stack="s")
    file.write_text(text(KEPT))
    assert (await pkger("apply", "-f", str(file), "--stack", "s", env=env)).code == 0
    assert await retention(services) == 0


@pytest.mark.parametrize("yes", [("--yes",), ()])
async def test_no_more_is_deleted_than_the_option_allows(
    services: Cluster, env: Mapping[str, str], file: Path, yes: tuple[str, ...]
) -> None:
    await services.apply(text(KEPT, an_object("Label", "l", "tag")), stack="s")
    apply = ("apply", "-f", str(file), "--stack", "s", *yes)
    refused = await pkger(*apply, "--max-deletes", "1", env=env)
    assert refused.code == 1
    assert (
        "Error: the plan deletes 1 resource and has 1 update that loses data, and the request allows at most 1 of both"
        " together; nothing was written. Raise max_deletes of the request, or apply a part of the changes first"
        " (--max-deletes)"
    ) in refused.err
    assert len(await services.resources()) == 2
    for command in ("uninstall", "delete"):
        refused = await pkger("stacks", command, "s", *yes, "--max-deletes", "0", env=env)
        assert (refused.code, "allows at most 0" in refused.err) == (1, True)
    rollback = ("stacks", "rollback", "s", "1", *yes, "--max-deletes", "0")
    assert (await pkger(*rollback, env=env)).code == 0
    assert (await pkger(*apply, "--yes", "--max-deletes", "2", env=env)).code == 0


async def test_the_policy_limits_a_saved_plan(services: Cluster, env: Mapping[str, str], file: Path) -> None:
    await services.apply(text(KEPT), stack="s")
    assert (await pkger("stacks", "policy", "s", "--set", "max_deletes=0", env=env)).code == 0
    plan = file.with_name("saved.plan")
    saved = await pkger("plan", "-f", str(file), "--stack", "s", "--out", str(plan), env=env)
    assert (saved.code, "warning: an apply of this plan is refused" in saved.out) == (0, True)
    refused = await pkger("apply", "--plan", str(plan), "--yes", env=env)
    assert (refused.code, await retention(services)) == (1, 0)
    assert "the policy of stack 's' allows at most 0; nothing was written" in refused.err
    assert refused.err.endswith("(`pkger stacks policy`)\n")
