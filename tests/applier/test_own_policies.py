"""The effects of policies that packages and their objects say themselves (docs/policies.md, "In packages")."""

import json
from typing import Any

import pytest
from pkger.model.v1 import object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import NameTaken, RequestInvalid
from tests.applier.drifting import counts, drift
from tests.applier.history import numbers
from tests.applier.test_imports import import_all, unowned
from tests.applier.test_people import edit, resource
from tests.applier.test_policies import ended, kinds, recorded, set_policy
from tests.applier.world import SUCCEEDED, Case, World, end
from tests.apply.packages import a_check, an_object, text
from tests.drivers.client import create

LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw", ["l"])


def saying(item: dict[str, Any], **policy: Any) -> dict[str, Any]:
    """*item* with a policy of its own."""
    return {**item, "metadata": {**item["metadata"], "lifecycle": policy}}


def lifecycle(**policy: Any) -> dict[str, Any]:
    """The document of a package that says *policy*."""
    return {"apiVersion": "pkger/v1", "kind": "Lifecycle", "metadata": {"name": "p"}, "spec": {"policy": policy}}


async def entries(case: Case) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The resolved policy of each entry, and what package and object said, by name; without those that say nothing."""
    record = (await case.look()).record
    assert record
    return {
        each.key.name: (json.loads(each.policy_json or "{}"), json.loads(each.own_policy_json or "{}"))
        for each in record.resources
        if each.policy_json or each.own_policy_json
    }


async def revision(case: Case, number: int) -> stack_pb2.RevisionObjects:
    """The objects of one revision."""
    peer, objects = case.services.peers["stack"], stack_pb2.RevisionObjects()
    ref = object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack)
    request = stack_pb2.GetRevisionRequest(stack=ref, number=number)
    async for part in peer.stream(StackServiceStub(peer.channel).GetRevision, request):
        objects.MergeFrom(part.objects)
    return objects


async def test_what_package_and_object_say_is_recorded_beside_the_resolved_policy(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, on_remove="orphan", drift="report")
    package = lifecycle(drift="revert", ignore=[{"kind": "Bucket", "names": ["b"], "paths": ["/description"]}])
    await ended(case, LABEL, package, saying(BUCKET, protect=True, recreate_deleted=True))
    said = {"drift": "revert"}
    assert await entries(case) == {
        "l": ({"on_remove": "orphan"}, {"package": said}),
        "b": (
            {"on_remove": "orphan", "protect": True, "recreate_deleted": True, "ignore": ["/description"]},
            {
                "package": said | {"ignore": ["/description"]},
                "object": {"protect": True, "recreate_deleted": True},
            },
        ),
    }
    assert [entry.key.kind for entry in (await case.services.record(case.stack, case.org)).resources] == [
        "Bucket",
        "Label",
    ]


async def test_a_new_policy_alone_is_a_change_of_the_record(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    case.driver.heal()
    assert not end(await case.apply(text(LABEL, saying(BUCKET, protect=True)))).no_change
    assert case.driver.sent == []
    assert await numbers(case) == [2, 1]
    assert end(await case.apply(text(LABEL, saying(BUCKET, protect=True)))).no_change
    assert not end(await case.apply(text(LABEL, BUCKET, lifecycle()))).no_change
    assert await entries(case) == {}


async def test_a_plan_that_brings_other_policies_has_another_digest(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    plans = [
        await case.plan(text(LABEL, BUCKET)),
        await case.plan(text(LABEL, saying(BUCKET, on_delete="orphan"))),
        await case.plan(text(LABEL, BUCKET, lifecycle(on_delete="orphan"))),
    ]
    assert len({plan.digest for plan in plans}) == 3
    assert [plan.no_change for plan in plans] == [True, False, False]


async def test_an_object_that_left_the_package_is_treated_as_it_said(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, saying(BUCKET, on_remove="orphan")))
    plan = await case.plan(text(LABEL))
    assert [warning for warning in plan.warnings if "stays, as the policy says" in warning]
    await ended(case, LABEL)
    assert (await kinds(case), await recorded(case)) == (["Bucket", "Label"], ["l"])


async def test_an_object_that_left_the_package_is_treated_as_the_stack_says_now(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET, lifecycle(on_remove="orphan")))
    await set_policy(case, on_remove="delete")
    await ended(case, LABEL)
    assert (await kinds(case), await recorded(case)) == (["Label"], ["l"])


async def test_what_an_object_protects_stays_until_an_apply_says_otherwise(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, saying(BUCKET, protect=True)))
    for _ in range(2):
        assert "protected: Bucket 'b' stays" in (await case.plan(text(LABEL))).warnings
        await ended(case, LABEL)
        assert await recorded(case) == ["b", "l"]
    await ended(case, LABEL, BUCKET)
    await ended(case, LABEL)
    assert await recorded(case) == ["l"]


async def test_no_package_unprotects_what_the_stack_protects(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, protect=True)
    await ended(case, lifecycle(protect=False), LABEL, saying(BUCKET, protect=False))
    await ended(case, LABEL)
    assert await recorded(case) == ["b", "l"]


async def test_what_an_object_protects_is_not_replaced(faulty: World) -> None:
    deadman = a_check("Deadman", "c", "silent", timeSince="90s", level="CRIT")
    case = await faulty.case_with(text(LABEL, saying(deadman, protect=True)))
    before = await resource(case, "CheckDeadman")
    threshold = saying(a_check("Threshold", "c", "silent"), protect=True)
    plan = await case.plan(text(LABEL, threshold))
    assert [warning for warning in plan.warnings if warning.startswith("protected: CheckThreshold 'c'")]
    await ended(case, LABEL, threshold)
    assert await resource(case, "CheckDeadman") == before
    # Now the object says nothing, but its resource is protected until this apply has ended.
    await ended(case, LABEL, a_check("Threshold", "c", "silent"))
    assert await resource(case, "CheckDeadman") == before
    assert await entries(case) == {}


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([lifecycle(on_delete="orphan")], ["Bucket", "Label"]),
        ([lifecycle(adopted_on_delete="delete")], []),
        ([lifecycle()], ["Bucket"]),
    ],
)
async def test_what_the_end_of_a_stack_leaves_as_its_package_said(
    faulty: World, said: list[dict[str, Any]], left: list[str]
) -> None:
    case = faulty.case()
    await case.driver.change(case.org, create("Bucket", {"name": "raw"}))
    await ended(case, LABEL, BUCKET, *said)
    assert end(await case.uninstall()).state == SUCCEEDED
    assert await kinds(case) == left


async def test_an_object_that_must_be_new_adopts_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await case.driver.change(case.org, create("Bucket", {"name": "raw"}))
    with pytest.raises(NameTaken, match="on the platform"):
        await case.apply(text(LABEL, saying(BUCKET, adopt="never")))
    assert await recorded(case) == ["l"]


@pytest.mark.parametrize(
    "package",
    [
        [lifecycle(ignore=[{"kind": "Bucket", "paths": ["/description"]}]), LABEL, BUCKET],
        [LABEL, saying(BUCKET, ignore=["/description"])],
    ],
)
async def test_a_field_that_package_or_object_ignores_stays(faulty: World, package: list[dict[str, Any]]) -> None:
    case = await faulty.case_with(text(*package))
    await edit(case, "Bucket", "edits")
    found = await drift(case)
    assert found.differences == {("Bucket", "b"): ("in_sync", ("/description", "ignored", "", "", "theirs"))}
    case.driver.heal()
    assert end(await case.apply(text(*package))).no_change
    assert case.driver.sent == []


async def test_drift_that_an_object_ignores_does_not_count(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, saying(BUCKET, drift="ignore")))
    await edit(case, "Bucket", "edits")
    found = await drift(case)
    assert found.statuses == {("Bucket", "b"): "drifted"}
    assert counts(found.summary) == {"in_sync": 2}


async def test_drift_to_revert_is_reported(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET, lifecycle(drift="revert", recreate_deleted=True)))
    await edit(case, "Bucket", "edits")
    assert counts((await drift(case)).summary) == {"in_sync": 1, "drifted": 1}


async def test_a_plan_warns_of_objects_that_are_laxer_than_their_stack(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await set_policy(case, adopt="never", on_remove="orphan", on_delete="orphan", adopted_on_delete="orphan")
    lax = {"adopt": "if_unmanaged", "on_remove": "delete", "on_delete": "cleanup", "drift": "ignore"}
    plan = await case.plan(text(LABEL, saying(BUCKET, **lax), saying(an_object("Task", "t", "t", **_TASK), **lax)))
    assert [each for each in plan.warnings if "laxer" in each] == [
        f"the package says {field}: {lax[field]}, laxer than {value} of the stack, for Bucket 'b', Task 't'"
        for field, value in (
            ("drift", "report"),
            ("on_remove", "orphan"),
            ("on_delete", "orphan"),
            ("adopt", "never"),
        )
    ]
    careful = {"adopt": "never", "on_remove": "orphan", "on_delete": "orphan", "drift": "revert", "protect": True}
    plan = await case.plan(text(LABEL, saying(BUCKET, **careful)))
    assert [each for each in plan.warnings if "laxer" in each] == []


_TASK = {"every": "1h", "query": "buckets()"}


async def test_policies_without_a_stack_have_no_effect_and_the_plan_says_so(faulty: World) -> None:
    case = faulty.case(stack="")
    plan = await case.plan(text(LABEL, saying(BUCKET, protect=True)))
    assert "the package has policies for 1 object, which have no effect without a stack" in plan.warnings
    plan = await case.plan(text(LABEL, BUCKET))
    assert [each for each in plan.warnings if "policies" in each] == []


async def test_a_revision_has_the_policies_of_its_package(faulty: World) -> None:
    case = await faulty.case_with(text(lifecycle(drift="revert"), LABEL, saying(BUCKET, protect=True)))
    objects = await revision(case, 1)
    assert [(each.key.name, each.lifecycle_json) for each in objects.objects] == [("b", '{"protect":true}'), ("l", "")]
    [document] = objects.lifecycles
    assert (document.package, json.loads(document.document_json)) == ("", lifecycle(drift="revert"))


async def test_a_rollback_brings_policies_back(faulty: World) -> None:
    case = await faulty.case_with(text(lifecycle(on_delete="orphan"), LABEL, saying(BUCKET, on_remove="orphan")))
    before = await entries(case)
    await ended(case, LABEL, BUCKET)
    assert await entries(case) == {}
    plan = await case.plan(revision=1)
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    assert await entries(case) == before
    assert (await revision(case, 3)).lifecycles == (await revision(case, 1)).lifecycles


async def test_objects_that_an_apply_keeps_keep_what_they_said(faulty: World) -> None:
    case = await faulty.case_with(text(lifecycle(on_delete="orphan"), LABEL, saying(BUCKET, on_remove="orphan")))
    before = await entries(case)
    other = an_object("Label", "other", "others")
    plan = await case.plan(text(other), keep_others=True)
    assert end(await case.apply_plan(plan)).state == SUCCEEDED
    assert {name: policies for name, policies in (await entries(case)).items() if name != "other"} == before
    objects = await revision(case, 2)
    assert [json.loads(each.document_json) for each in objects.lifecycles] == [lifecycle(on_delete="orphan")]
    assert [each.lifecycle_json for each in objects.objects if each.key.name == "b"] == ['{"on_remove":"orphan"}']


async def test_an_import_of_a_package_records_what_it_says(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    await unowned(case, name="raw")
    peer = case.services.peers["planner"]
    package = text(lifecycle(drift="revert"), saying(an_object("Bucket", "b", "raw"), protect=True))
    request = planner_pb2.PlanImportRequest(
        stack=object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack),
        package=planner_pb2.PackageSources(sources=case.request(package).package.sources),
    )
    answers = peer.stream(PlannerServiceStub(peer.channel).PlanImport, request)
    [found] = [each async for answer in answers for each in answer.imports.objects]
    own = {"package": {"drift": "revert"}, "object": {"protect": True}}
    assert json.loads(found.own_policy_json) == own
    resource_id = found.resources[0].resource.id
    await import_all(case, {"kind": "Bucket", "id": resource_id, "name": "b", "own_policy_json": found.own_policy_json})
    assert await entries(case) == {"b": ({"drift": "revert", "protect": True}, own)}
    await ended(case, LABEL)
    assert await recorded(case) == ["b", "l"]


async def test_an_import_checks_what_it_records(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    resource_id = await unowned(case)
    with pytest.raises(
        RequestInvalid, match=r"resources\[0\]\.own_policy_json: object\.protct: .* did you mean protect"
    ):
        await import_all(case, {"kind": "Bucket", "id": resource_id, "own_policy_json": '{"object":{"protct":true}}'})
    assert await recorded(case) == ["l"]
