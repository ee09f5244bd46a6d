"""``pkger plans``, and plans by their names."""

import json
from pathlib import Path

import pytest
from pkger.driver.v1 import driver_pb2

from tests.apply.packages import STEPS, an_object, text
from tests.cli.command import environment, parts, pkger
from tests.cluster import Cluster


async def test_plans_are_printed_as_data(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    saved = parts((await pkger("plan", "-f", str(file), "--stack", "s", "--save", "-o", "json", env=env)).out)

    (listed,) = json.loads((await pkger("plans", "list", "-o", "json", env=env)).out)
    shown = parts((await pkger("plans", "show", listed["id"], "-o", "json", env=env)).out)

    assert listed == saved["header"]
    assert (listed["state"], listed["stack_name"]) == ("PLAN_STATE_PENDING", "s")
    assert shown == saved
    assert json.loads((await pkger("plans", "list", "--stack", "other", "-o", "json", env=env)).out) == []


async def test_a_plan_that_ran_is_printed_with_the_ids_of_what_it_created(services: Cluster, tmp_path: Path) -> None:
    env, package = environment(tmp_path, services.addresses), text(an_object("Label", "red", "red"))
    plan = await services.plan(package, stack="s", store=True)
    async for _ in services.apply_plan(plan.name):
        pass

    shown = parts((await pkger("plans", "show", plan.name, "-o", "json", env=env)).out)

    [resource] = await services.resources()
    assert [diff["resource_id"] for diff in shown["diffs"]["resources"]] == [resource.id]
    assert [label["id"] for label in json.loads(shown["summary_json"])["labels"]] == [int(resource.id, 16)]


async def test_a_stale_plan_reports_the_change(services: Cluster, tmp_path: Path) -> None:
    env, file = environment(tmp_path, services.addresses), tmp_path / "package.json"
    file.write_text(STEPS[1])
    saved = parts((await pkger("plan", "-f", str(file), "--save", "-o", "json", env=env)).out)["header"]
    create = driver_pb2.CreateResource(kind="Label", spec_json='{"name":"label_1"}')
    await services.mutate(driver_pb2.Mutation(create=create))

    refused = await pkger("apply", "--plan", saved["id"], env=env)

    assert refused.code == 3
    assert "Label 'lucid_einstein' is to be named 'label_1'" in refused.err
    assert len(await services.resources()) == 1
    assert "stale" in (await pkger("plans", "show", saved["id"], env=env)).out


@pytest.mark.parametrize("command", [["plans", "show", "nobody"], ["apply", "--plan", "nobody"]])
async def test_a_missing_plan_is_named(module_services: Cluster, tmp_path: Path, command: list[str]) -> None:
    refused = await pkger(*command, env=environment(tmp_path, module_services.addresses))
    assert refused.code == 1
    assert "there is no plan 'nobody'" in refused.err


async def test_a_cut_list_of_plans_says_so(services: Cluster, tmp_path: Path) -> None:
    for number in range(51):
        await services.plan(text(an_object("Label", "l", f"l{number}")), stack="s", store=True)
    env = environment(tmp_path, services.addresses)
    listed = await pkger("plans", "list", env=env)
    assert (len(listed.out.splitlines()), listed.err) == (51, "there are more; --limit N lists up to N\n")


async def test_a_stack_with_an_empty_name_is_refused(module_services: Cluster, tmp_path: Path) -> None:
    """It comes from an unset variable; an apply without a stack would record nothing."""
    for verb in ("plan", "apply"):
        ended = await pkger(verb, "-f", "x.yml", "--stack", "", env=environment(tmp_path, module_services.addresses))
        assert ended.code == 2
        assert "the name is empty" in ended.err
