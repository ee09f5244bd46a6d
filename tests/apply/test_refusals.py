"""What an apply refuses unless it is allowed, and what it skips on request."""

from typing import Any

import pytest
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.parser.v1 import parser_pb2
from pkger.planner.v1 import planner_pb2

from services.core.errors import PackageEmpty, RequestInvalid, ValuesMissing
from tests.apply.packages import BUCKET, DASHBOARD, LABEL, RENAMED, STEPS, an_endpoint, an_object, text
from tests.cluster import Cluster

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED


def a_label(name: str, **reference: Any) -> dict[str, Any]:
    """A label whose display name is an environment value."""
    return an_object("Label", name, "") | {"spec": {"name": {"envRef": reference}}}


REFERRING = text(
    a_label("a", key="region"),
    a_label("b", key="stage", default="beta"),
    a_label("c", key="zone", default="zone 1"),
    a_label("d", key="zone"),
    an_endpoint("Slack", "e", "e"),
)


async def test_missing_values_stop_an_apply_before_anything_is_written(services: Cluster) -> None:
    plan = await services.plan(REFERRING, stack="s")
    assert list(plan.missing_env_refs) == ["region", "stage", "zone"]
    assert list(plan.unresolved_env_refs) == ["region", "zone"]
    assert list(plan.missing_secrets) == ["slack-token"]
    with pytest.raises(ValuesMissing) as caught:
        await services.apply(REFERRING, stack="s", allow_missing=False)
    assert caught.value.metadata == {"env_refs": "region,zone", "secrets": "slack-token"}
    assert await services.resources() == []
    assert await services.stack_names() == []
    assert (await services.apply(REFERRING, stack="s")).state == SUCCEEDED


async def test_a_default_is_a_value(services: Cluster) -> None:
    package = text(a_label("b", key="stage", default="beta"))
    assert (await services.apply(package, stack="s", allow_missing=False)).state == SUCCEEDED


async def test_what_is_skipped_needs_no_value(services: Cluster) -> None:
    package = text(a_label("a", key="region"), LABEL)
    skip = [planner_pb2.Skip(kind="Label", name="a")]
    assert (await services.plan(package, stack="s", skip=skip)).unresolved_env_refs == []
    assert (await services.apply(package, stack="s", skip=skip, allow_missing=False)).state == SUCCEEDED


async def test_an_empty_package_deletes_all_only_when_allowed(services: Cluster) -> None:
    await services.apply(STEPS[1], stack="s")
    before = await services.record("s")
    for refused in (services.plan, services.apply):
        with pytest.raises(PackageEmpty) as caught:
            await refused(text(), stack="s")
        assert caught.value.metadata == {"stack": "s", "count": "3"}
    assert await services.record("s") == before
    assert (await services.apply(text(), stack="s", allow_empty=True)).state == SUCCEEDED
    assert await services.resources() == []
    assert list((await services.record("s")).resources) == []


async def test_an_empty_package_that_deletes_nothing_is_only_a_warning(services: Cluster) -> None:
    assert list((await services.plan(text())).warnings) == ["the package has no objects"]
    await services.apply(text(LABEL), stack="s")
    kept = await services.plan(text(), stack="s", skip=[planner_pb2.Skip(kind="Label")])
    assert kept.no_change


async def test_what_is_skipped_is_neither_applied_nor_removed(services: Cluster) -> None:
    await services.apply(text(LABEL, BUCKET, DASHBOARD), stack="s")
    before = await services.record("s")
    skip = [planner_pb2.Skip(kind="Label", name="lucid_einstein"), planner_pb2.Skip(kind="Dashboard")]
    assert (await services.apply(text(RENAMED, BUCKET), stack="s", skip=skip)).no_change
    assert await services.record("s") == before


async def test_a_skip_of_no_kind_is_refused(services: Cluster) -> None:
    with pytest.raises(RequestInvalid, match=r"skip\[0\]\.kind: 'Bukkit' is no kind"):
        await services.apply(STEPS[1], skip=[planner_pb2.Skip(kind="Bukkit")])


@pytest.mark.parametrize("stack", ["s", ""])
async def test_a_conflict_shows_the_overwritten_fields(services: Cluster, stack: str) -> None:
    await services.apply(text(LABEL, an_object("Bucket", "b", "same")))
    wanted = text(an_object("Label", "mine", "label_1", color="#326bba"), an_object("Bucket", "b", "same"))
    plan = await services.plan(wanted, stack=stack)
    [conflict] = plan.conflicts
    assert (conflict.key.kind, conflict.key.name) == ("Label", "mine")
    assert conflict.resource_id == plan.resource_diffs[1].resource_id
    assert "its color will be overwritten" in conflict.message
    assert (await services.apply(wanted, stack=stack)).state == SUCCEEDED
    assert list((await services.plan(wanted, stack=stack)).conflicts) == []


async def test_a_long_list_of_missing_values_is_shortened(services: Cluster) -> None:
    labels = [a_label(f"l{number}", key=f"a-rather-long-key-{number:03}") for number in range(300)]
    with pytest.raises(ValuesMissing, match="and 290 more") as raised:
        await services.apply(text(*labels), allow_missing=False)
    assert raised.value.metadata["env_refs"].startswith("a-rather-long-key-000,")


async def test_a_stack_that_is_not_named_is_no_plan_without_a_stack(services: Cluster) -> None:
    with pytest.raises(RequestInvalid, match="stack: name it by id, or by name"):
        await services.plan(text(LABEL), stack_ref=object_pb2.StackRef())


async def test_the_same_request_gets_the_same_plan_also_when_nothing_is_to_do(services: Cluster) -> None:
    await services.apply(text(LABEL), stack="s")
    plans = [await services.plan(text(LABEL), stack="s", store=True, request_id="same") for _ in range(2)]
    assert plans[0].no_change
    assert plans[0].resource_diffs
    assert plans[0].parts == plans[1].parts


async def test_another_view_is_no_other_request(services: Cluster) -> None:
    one, other = [
        await services.plan(text(LABEL), store=True, request_id="other-view", view=view)
        for view in ([], [plan_pb2.PLAN_VIEW_STEPS])
    ]
    assert (one.name, len(one.steps), len(other.steps)) == (other.name, 0, 1)


async def test_names_of_sources_that_fit_into_no_header_are_refused(services: Cluster) -> None:
    long = [parser_pb2.Source(name="n" * 1000, text=text(LABEL)) for _ in range(300)]
    with pytest.raises(RequestInvalid, match="names have 300,000 bytes"):
        await services.plan(package=planner_pb2.PackageSources(sources=long))
