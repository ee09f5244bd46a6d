"""A stored plan shows what the planner returned, also once it ran; the events have the ids of the created resources."""

import pytest

from services.views.ids import fill_in
from tests.applier.packages import CHANGES
from tests.apply.packages import an_object, text
from tests.cluster import Cluster, Shown


async def planned(services: Cluster, change: str) -> Shown:
    """A stored plan for a stack, or for its uninstall."""
    before, after = CHANGES[change]
    if before:
        await services.apply(before, stack="s")
    return await services.plan(after, stack="s", store=True)


@pytest.mark.parametrize("change", CHANGES)
async def test_a_stored_plan_shows_what_the_planner_returned(services: Cluster, change: str) -> None:
    plan = await planned(services, change)
    assert (await services.stored_plan(plan.name)).parts == plan.parts
    assert plan.summary is not None
    assert plan.resource_diffs


@pytest.mark.parametrize("change", CHANGES)
async def test_events_have_the_ids_of_what_a_plan_created(services: Cluster, change: str) -> None:
    plan = await planned(services, change)
    events = [event async for event in services.apply_plan(plan.name)]
    parts = (await services.stored_plan(plan.name)).parts
    assert (parts.diffs, parts.summary) == (plan.parts.diffs, plan.parts.summary)
    fill_in(parts, events)
    ran, record = Shown(parts), await services.record("s")
    ids = {(diff.key.kind, diff.key.name): diff.resource_id for diff in ran.resource_diffs if diff.new_spec_json}
    assert ids == record.ids
    for mapping in ran.label_mapping_diffs:
        if (mapping.resource.kind, mapping.resource.name) in ids:
            assert mapping.resource_id == ids[mapping.resource.kind, mapping.resource.name]
    assert ran.summary is not None
    labels = {entry["templateMetaName"]: entry["id"] for entry in ran.summary["labels"]}
    assert labels == {name: int(id_, 16) for (kind, name), id_ in ids.items() if kind == "Label"}
    assert [diff.changes for diff in ran.resource_diffs] == [diff.changes for diff in plan.resource_diffs]


async def test_the_end_of_a_stack_shows_what_goes(services: Cluster) -> None:
    await services.apply(text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "raw", ["red"])), stack="s")
    plan = await services.plan(stack="s", destroy=True, store=True)
    assert (await services.stored_plan(plan.name)).parts == plan.parts
    assert [(diff.key.name, bool(diff.old_spec_json), diff.new_spec_json) for diff in plan.resource_diffs] == [
        ("raw", True, ""),
        ("red", True, ""),
    ]
