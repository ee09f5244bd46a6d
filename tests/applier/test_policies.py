"""The effects of the policy of a stack on its resources (docs/reference/engine.md, "Policies")."""

import json
from typing import Any

import pytest
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import NameTaken, RequestInvalid, ResourceOwned, SharedDiffers, StackMoved
from services.rpc.convert.policies import policy_from_pb, policy_to_pb
from tests.applier.drifting import drift
from tests.applier.history import check_history, numbers, package_of
from tests.applier.test_people import edit, resource
from tests.applier.test_sharing import beside, names
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import a_check, a_rule, an_endpoint, an_object, text
from tests.drivers.client import attach, create, detach

LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw", ["l"])


async def set_policy(case: Case, **policy: Any) -> stack_pb2.Stack:
    """Give the stack a policy."""
    peer = case.services.peers["stack"]
    request = stack_pb2.UpdateStackRequest(
        stack=object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack),
        policy=policy_to_pb(policy),
    )
    return (await peer.call(StackServiceStub(peer.channel).UpdateStack, request)).stack


async def kinds(case: Case) -> list[str]:
    """Kinds of the resources on the platform."""
    return [each.kind for each in (await case.look()).resources]


async def recorded(case: Case) -> list[str]:
    """Names of the recorded objects."""
    record = (await case.look()).record
    return [entry.key.name for entry in record.resources] if record else []


async def ended(case: Case, *objects: dict[str, Any], **more: Any) -> None:
    finished = end(await case.apply(text(*objects), **more))
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 0), finished.cause


async def test_a_policy_moves_the_generation_and_makes_older_plans_stale(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    plan = await case.plan(text(BUCKET, LABEL))
    stack = await set_policy(case, protect=True)
    assert (stack.generation, policy_from_pb(stack.policy)) == (2, {"protect": True})
    with pytest.raises(StackMoved):
        await case.apply_plan(plan)
    assert (await set_policy(case, protect=True)).generation == 2


async def test_an_invalid_policy_changes_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    with pytest.raises(RequestInvalid, match=r"policy\.on_remove: 'orphn' is none of .* did you mean orphan"):
        await set_policy(case, on_remove="orphn")
    record = (await case.look()).record
    assert record
    assert record.stack.generation == 1


async def test_a_removed_object_leaves_its_resource_on_the_platform(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, on_remove="orphan")

    plan = await case.plan(text(an_object("Label", "l", "sensors")))
    assert [warning for warning in plan.warnings if "stays, as the policy says" in warning]
    await ended(case, LABEL)

    assert (await kinds(case), await recorded(case)) == (["Bucket", "Label"], ["l"])
    # It has no owner any more, so it can be adopted.
    await ended(case, LABEL, BUCKET)
    assert await recorded(case) == ["b", "l"]
    await check_history(case)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ({}, ["Bucket"]),
        ({"on_delete": "orphan"}, ["Bucket", "Label"]),
        ({"adopted_on_delete": "delete"}, []),
        (
            {"adopted_on_delete": "delete", "overrides": [{"match": {"kind": "Bucket"}, "on_delete": "orphan"}]},
            ["Bucket"],
        ),
    ],
)
async def test_what_the_end_of_a_stack_leaves(faulty: World, policy: dict[str, Any], left: list[str]) -> None:
    case = faulty.case()
    await case.driver.change(case.org, create("Bucket", {"name": "raw"}))
    await ended(case, LABEL, BUCKET)
    await set_policy(case, **policy)

    assert end(await case.uninstall()).state == SUCCEEDED

    assert await kinds(case) == left


async def test_what_is_protected_is_not_deleted(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, overrides=[{"match": {"kind": "Bucket"}, "protect": True}])

    plan = await case.plan(text(an_object("Label", "l", "sensors", color="#ff0000")))
    assert "protected: Bucket 'b' stays" in plan.warnings
    await ended(case, an_object("Label", "l", "sensors", color="#ff0000"))

    assert (await kinds(case), await recorded(case)) == (["Bucket", "Label"], ["b", "l"])
    assert json.loads((await resource(case, "Label")).spec_json)["color"] == "#ff0000"
    await check_history(case, protected=[("Bucket", "b")])


async def test_to_unprotect_and_delete_takes_two_applies(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, protect=True)
    await ended(case, LABEL, BUCKET)
    await set_policy(case)

    await ended(case, LABEL)
    assert await recorded(case) == ["b", "l"]
    await ended(case, LABEL, BUCKET)
    await ended(case, LABEL)

    assert await recorded(case) == ["l"]


async def test_what_is_protected_is_not_replaced_and_the_rest_goes_on(faulty: World) -> None:
    deadman = a_check("Deadman", "c", "silent", timeSince="90s", level="CRIT")
    case = await faulty.case_with(text(LABEL, deadman))
    await set_policy(case, overrides=[{"match": {"kind": "Check"}, "protect": True}])
    before = await resource(case, "CheckDeadman")

    package = text(an_object("Label", "l", "probes"), a_check("Threshold", "c", "silent"))
    plan = await case.plan(package)
    assert [warning for warning in plan.warnings if warning.startswith("protected: ")]
    assert end(await case.apply(package)).state == SUCCEEDED

    assert await resource(case, "CheckDeadman") == before
    assert json.loads((await resource(case, "Label")).spec_json)["name"] == "probes"


async def test_what_is_protected_is_pending_and_stands_in_the_history_as_the_package_wants_it(faulty: World) -> None:
    check = a_check("Deadman", "c", "silent", timeSince="90s", level="CRIT")
    case = await faulty.case_with(text(LABEL, BUCKET, check))
    await set_policy(case, protect=True)

    package = text(LABEL, a_check("Threshold", "c", "noisy", description="other"))
    plan = await case.plan(package)
    assert [warning for warning in plan.warnings if warning.startswith("protected: ")] == [
        "protected: Bucket 'b' stays",
        "protected: CheckThreshold 'c', recorded as CheckDeadman 'c', stays as it is: its kind can change only by"
        " replacing the resource, so it does not change, nor does description, level, name, reportZero, staleTime"
        " and 2 more fields",
    ]
    await ended(case, LABEL, a_check("Threshold", "c", "noisy", description="other"))

    kept = {(each.key.kind, each.key.name) for each in (await package_of(case, 2)).objects}
    assert kept == {("CheckThreshold", "c"), ("Label", "l")}
    found = await drift(case)
    assert found.statuses == {("Bucket", "b"): "pending", ("CheckDeadman", "c"): "pending"}
    assert (await case.plan(package)).no_change
    await set_policy(case)
    await ended(case, LABEL, BUCKET, check)
    assert (await drift(case)).statuses == {}


async def test_what_was_not_replaced_as_it_is_protected_takes_two_applies_to_delete_like_all_else(
    faulty: World,
) -> None:
    case = await faulty.case_with(text(LABEL, a_check("Deadman", "c", "silent", timeSince="90s", level="CRIT")))
    await set_policy(case, overrides=[{"match": {"kind": "Check"}, "protect": True}])
    await ended(case, LABEL, a_check("Threshold", "c", "silent"))
    await set_policy(case)

    await ended(case, LABEL)
    assert await recorded(case) == ["c", "l"]
    await ended(case, LABEL)
    assert await recorded(case) == ["l"]


async def test_a_stack_that_owns_what_is_protected_is_not_removed(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, overrides=[{"match": {"kind": "Bucket"}, "protect": True}])

    assert end(await case.uninstall()).state == SUCCEEDED

    assert (await kinds(case), await recorded(case)) == (["Bucket"], ["b"])


async def test_an_unowned_resource_is_not_adopted(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, adopt="never")
    await case.driver.change(case.org, create("Bucket", {"name": "raw"}))

    with pytest.raises(NameTaken, match="on the platform"):
        await case.apply(text(LABEL, BUCKET))

    assert await recorded(case) == ["l"]


async def test_an_ignored_field_stays_as_the_platform_has_it(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, ignore=[{"kind": "Bucket", "paths": ["/description"]}])
    await edit(case, "Bucket", "edits")
    # The generation moved, and the record has the new policy; nothing is written to the platform.
    case.driver.heal()
    await ended(case, LABEL, BUCKET)
    assert case.driver.sent == []
    assert end(await case.apply(text(LABEL, BUCKET))).no_change

    await ended(case, LABEL, an_object("Bucket", "b", "RAW", ["l"], description="ours"))

    spec = json.loads((await resource(case, "Bucket")).spec_json)
    assert (spec["name"], spec["description"]) == ("RAW", "theirs")


async def test_a_create_writes_what_is_ignored(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, ignore=["/description"])
    await ended(case, LABEL, an_object("Bucket", "b", "raw", description="ours"))
    assert json.loads((await resource(case, "Bucket")).spec_json)["description"] == "ours"


@pytest.mark.parametrize("path", ["/associations", "/associations/l"])
async def test_ignored_labels_may_be_attached_and_detached_by_others(faulty: World, path: str) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, ignore=[path])
    bucket, label = await resource(case, "Bucket"), await resource(case, "Label")
    await case.driver.change(case.org, detach("Bucket", bucket.id, label.id))

    await ended(case, LABEL, BUCKET)
    assert not (await resource(case, "Bucket")).label_ids

    await case.driver.change(case.org, attach("Bucket", bucket.id, label.id))
    await ended(case, LABEL, an_object("Bucket", "b", "raw"))
    assert list((await resource(case, "Bucket")).label_ids) == [label.id]


async def test_a_reference_that_is_ignored_stays(faulty: World) -> None:
    endpoints = [an_endpoint("HTTP", "one", "one"), an_endpoint("HTTP", "two", "two")]
    case = await faulty.case_with(text(*endpoints, a_rule("r", "one")))
    await set_policy(case, ignore=["/endpointName"])
    before = await resource(case, "NotificationRule")

    await ended(case, *endpoints, a_rule("r", "two"))

    assert await resource(case, "NotificationRule") == before


async def test_sharing_as_the_policy_says(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    theirs = beside(case, "theirs")
    await ended(theirs, BUCKET, an_object("Label", "l", "other"))
    wanted = an_object("Label", "tag", "sensors", color="#ff0000")

    with pytest.raises(SharedDiffers):
        await theirs.apply(text(wanted))
    await set_policy(theirs, share="always")
    plan = await theirs.plan(text(wanted))
    assert "Label 'tag' is used as stack 's' has it, which differs in color" in plan.warnings
    case.driver.heal()
    await ended(theirs, wanted)
    assert not [each for each in case.driver.sent if each.HasField("update")]
    assert end(await theirs.apply(text(wanted))).no_change

    await set_policy(theirs, share="never")
    with pytest.raises(ResourceOwned, match="'sensors'"):
        await theirs.apply(text(wanted))
    assert ("sensors", ()) in await names(case)


async def test_an_empty_package_deletes_all_if_the_policy_allows_it(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, allow_empty=True)
    await ended(case)
    assert await kinds(case) == []


async def test_history_is_as_long_as_the_policy_says(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, history=2)
    for color in ("#000001", "#000002", "#000003"):
        await ended(case, an_object("Label", "l", "sensors", color=color))
    assert await numbers(case) == [4, 3]


async def test_a_failed_apply_leaves_policies_of_entries_as_they_were(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await set_policy(case, protect=True)
    refused = an_object("Bucket", "x", "_system")
    assert end(await case.apply(text(LABEL, BUCKET, refused))).state == ROLLED_BACK
    await set_policy(case)
    await ended(case, LABEL)
    assert await recorded(case) == ["l"]
