"""A stored plan, a platform that changed meanwhile, and a failing step: all is as planned, or nothing changed."""

import asyncio
import json

from hypothesis import given, settings
from hypothesis import strategies as st
from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import object_pb2, plan_pb2

from services.core.errors import NameTaken, PlanStale
from tests.applier.faulty import ItemFault
from tests.applier.random_packages import packages
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end

WAYS = ("edit", "rename", "delete", "label", "add")


def mutation_of(resources: list[object_pb2.Resource], way: str, pick: int) -> driver_pb2.Mutation | None:
    """One change of a platform that has *resources*; None if such a change is impossible."""
    if way == "add" or not resources:
        kind, name = (("Label", "red"), ("Bucket", "theirs"), ("Dashboard", "same"), ("Bucket", "one"))[pick % 4]
        spec_json = json.dumps({"name": name})
        return driver_pb2.Mutation(create=driver_pb2.CreateResource(kind=kind, spec_json=spec_json))
    resource = resources[pick % len(resources)]
    kind, resource_id = resource.kind, resource.id
    match way:
        case "delete":
            return driver_pb2.Mutation(delete=driver_pb2.DeleteResource(kind=kind, id=resource_id))
        case "label":
            labels = [each.id for each in resources if each.kind == "Label"]
            if not labels or kind == "Label":
                return None
            if labels[0] in resource.label_ids:
                return driver_pb2.Mutation(detach=driver_pb2.DetachLabel(kind=kind, id=resource_id, label_id=labels[0]))
            return driver_pb2.Mutation(attach=driver_pb2.AttachLabel(kind=kind, id=resource_id, label_id=labels[0]))
        case _:
            spec = json.loads(resource.spec_json) | {"name" if way == "rename" else "description": "theirs"}
            update = driver_pb2.UpdateResource(
                kind=kind, id=resource_id, spec_json=json.dumps(spec), references=resource.references
            )
            return driver_pb2.Mutation(update=update)


async def change(case: Case, way: str, pick: int) -> None:
    """Change the platform as another writer does; rejected changes have no effect."""
    resources = sorted((await case.look()).resources, key=lambda resource: (resource.kind, resource.spec_json))
    if mutation := mutation_of(resources, way, pick):
        await case.services.mutate(mutation, org=case.org)


@settings(settings.get_profile("faults"))
@given(
    before=packages(),
    wanted=packages(),
    way=st.sampled_from(WAYS),
    pick=st.integers(0, 20),
    refused=st.none() | st.integers(0, 12),
)
async def test_a_stored_plan_does_what_it_says_or_nothing(
    faulty: World, before: str, wanted: str, way: str, pick: int, refused: int | None
) -> None:
    fresh, case = faulty.case(), faulty.case()
    await asyncio.gather(fresh.apply(before), case.apply(before))
    try:
        plan = await case.plan(wanted)
    except NameTaken:
        # An endpoint that becomes another kind takes two applies.
        return
    await asyncio.gather(change(fresh, way, pick), change(case, way, pick))
    at_first = await case.look()
    case.driver.fail({} if refused is None else {refused: ItemFault.REJECT})
    try:
        events = await case.apply_plan(plan)
    except PlanStale:
        assert case.driver.sent == []
        assert await case.look() == at_first
        assert (await case.services.stored_plan(plan.name)).state == plan_pb2.PLAN_STATE_STALE
        return
    after = await case.look()
    if end(events).state == ROLLED_BACK:
        assert refused is not None
        assert (after.content, after.recorded_content) == (at_first.content, at_first.recorded_content)
        return
    assert end(events).state == SUCCEEDED
    case.driver.heal()
    try:
        await fresh.apply(wanted)
    except NameTaken:
        return
    await case.apply(wanted)
    now, goal = await asyncio.gather(case.look(), fresh.look())
    assert (now.content, now.recorded_content) == (goal.content, goal.recorded_content)
