"""Drift reports the changes on the platform and nothing else (docs/reference/engine.md, "Drift")."""

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from pkger.model.v1 import object_pb2, plan_pb2

from services.core.errors import RequestInvalid, ServiceUnavailable, StackNotFound
from tests.applier.drifting import ABSENT, Key, changed, counts, detached, drift, last_detection
from tests.applier.faulty import ItemFault
from tests.applier.test_blocked import ended as recovered
from tests.applier.test_blocked import in_conflict
from tests.applier.test_imports import import_into, rename
from tests.applier.test_policies import set_policy
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import EVERY_KIND, an_endpoint, an_object, text
from tests.drivers.client import attach, create, delete, detach, update

ALL = text(*EVERY_KIND)
KEYS = [(each["kind"], each["metadata"]["name"]) for each in EVERY_KIND]
LABEL = "lucid_einstein"

SHARED_LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw", ["l"])


async def resource_of(case: Case, kind: str, name: str) -> object_pb2.Resource:
    """The resource of an object of the stack."""
    found = await case.look()
    wanted = found.recorded[kind, name]
    [resource] = [each for each in found.resources if (each.kind, each.id) == wanted]
    return resource


async def change(case: Case, kind: str, key: str, /, **fields: Any) -> dict[str, Any]:
    """Change fields of a resource on the platform; returns the spec before that."""
    resource = await resource_of(case, kind, key)
    before: dict[str, Any] = json.loads(resource.spec_json)
    mutation = update(kind, resource.id, {**before, **fields}, resource.references)
    assert (await case.driver.change(case.org, mutation)).results[0].HasField("done")
    return before


async def remove(case: Case, kind: str, name: str) -> None:
    """Delete a resource on the platform."""
    resource = await resource_of(case, kind, name)
    assert (await case.driver.change(case.org, delete(kind, resource.id))).results[0].HasField("done")


async def test_after_an_apply_there_is_no_drift(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    assert counts(await last_detection(case)) == {"in_sync": len(KEYS)}

    found = await drift(case)

    assert found.differences == {}
    assert sorted((each.key.kind, each.key.name) for each in found.reports) == sorted(KEYS)
    assert (found.summary.generation, found.summary.revision, found.summary.without_baseline_count) == (1, 1, 0)
    assert found.summary.is_stored
    assert counts(found.summary) == counts(await last_detection(case)) == {"in_sync": len(KEYS)}
    # The names of the endpoints, which differ from those that the platform returns for rules.
    assert found.of("NotificationRule", "to_hook").display_name == "rule"


async def test_an_edited_field_is_reported_and_nothing_else(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    differences: dict[Key, Any] = {}
    for key in KEYS:
        before = await change(case, *key, description="theirs")
        differences[key] = ("drifted", changed("/description", before.get("description", ABSENT), "theirs"))
        assert (await drift(case)).differences == differences
    assert counts(await last_detection(case)) == {"drifted": len(KEYS)}

    assert not end(await case.apply(ALL)).no_change

    assert counts(await last_detection(case)) == {"in_sync": len(KEYS)}
    assert (await drift(case)).differences == {}


async def test_a_renamed_resource_is_reported_and_nothing_else(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    differences: dict[Key, Any] = {}
    for key in KEYS:
        before = await change(case, *key, name=f"{key[1]}-theirs")
        differences[key] = ("drifted", changed("/name", before["name"], f"{key[1]}-theirs"))
    found = await drift(case)
    assert found.differences == differences
    assert {each.display_name for each in found.reports} == {f"{name}-theirs" for _, name in KEYS}

    assert end(await case.apply(ALL)).state == SUCCEEDED

    assert (await drift(case)).differences == {}


async def test_a_detached_label_is_reported_and_an_added_one_is_not(faulty: World) -> None:
    """A label that another writer attached is not drift."""
    case = await faulty.case_with(ALL)
    [made] = (await case.driver.change(case.org, create("Label", {"name": "theirs"}))).results
    label = await resource_of(case, "Label", LABEL)
    resources = {key: (await resource_of(case, *key)).id for key in KEYS[1:]}
    for key, resource_id in resources.items():
        await case.driver.change(case.org, attach(key[0], resource_id, made.done.id))
    assert (await drift(case)).differences == {}

    for key, resource_id in resources.items():
        await case.driver.change(case.org, detach(key[0], resource_id, label.id))

    assert (await drift(case)).differences == {key: ("drifted", detached(LABEL)) for key in KEYS[1:]}
    assert end(await case.apply(ALL)).state == SUCCEEDED
    assert (await drift(case)).differences == {}


async def test_a_deleted_resource_is_reported(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    names = {(each["kind"], each["metadata"]["name"]): each["spec"]["name"] for each in EVERY_KIND}
    users = {"hook": "to_hook", "pager": "to_pager"}
    for key in KEYS[1:]:
        await remove(case, *key)

        found = await drift(case)

        differences = found.differences
        assert differences.pop(key) == ("missing",)
        report = found.of(*key)
        assert (report.display_name, report.HasField("same_name")) == (names[key], False)
        # Resources that referred to it have lost the reference.
        assert {name for _, name in differences} == {users.get(key[1], "")} & {name for _, name in differences}
        assert end(await case.apply(ALL)).state == SUCCEEDED
        assert (await drift(case)).differences == {}


async def test_a_deleted_label_is_missing_everywhere(faulty: World) -> None:
    case = await faulty.case_with(ALL)

    await remove(case, "Label", LABEL)

    expected = {("Label", LABEL): ("missing",), **{key: ("drifted", detached(LABEL)) for key in KEYS[1:]}}
    assert (await drift(case)).differences == expected


async def test_a_rolled_back_apply_is_no_drift(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    refused = an_object("Bucket", "refused", "_system")
    moved = {**EVERY_KIND[0], "spec": {"name": "label_1", "color": "#000001"}}
    assert end(await case.apply(text(moved, *EVERY_KIND[1:], refused))).state == ROLLED_BACK
    assert (await drift(case)).differences == {}


async def test_a_skipped_object_keeps_its_drift_and_its_apply_is_no_detection(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    await change(case, "Bucket", "b", description="theirs")
    red = an_object("Label", "l", "sensors", color="#000001")
    described = an_object("Bucket", "b", "raw", ["l"], description="ours")

    assert end(await case.apply(text(red, described), skip=[{"kind": "Bucket", "name": "b"}])).state == SUCCEEDED

    look = await last_detection(case)
    assert look
    assert look.generation == 1
    # The skipped change was never in the package of the stack.
    assert (await drift(case)).differences == {("Bucket", "b"): ("drifted", changed("/description", "", "theirs"))}


async def test_a_skipped_object_that_was_never_applied_is_none_of_the_stack(faulty: World) -> None:
    case = faulty.case()
    await case.apply(text(SHARED_LABEL, BUCKET), skip=[{"kind": "Bucket", "name": "b"}])
    assert [each.key.name for each in (await drift(case)).reports] == ["l"]


async def test_a_label_that_leaves_beside_a_skipped_object_is_no_drift_of_that(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    assert end(await case.apply("[]", skip=[{"kind": "Bucket", "name": "b"}], allow_empty=True)).state == SUCCEEDED
    found = await drift(case)
    assert ([each.key.name for each in found.reports], found.differences) == (["b"], {})


async def test_a_kept_conflict_is_pending(faulty: World) -> None:
    case, name = await in_conflict(faulty)
    blocked = await drift(case)
    assert not blocked.summary.is_stored
    assert recovered(await case.recover(name, _0="keep")).state == SUCCEEDED

    found = await drift(case)

    pending = ("/description", "pending", "new", "theirs", "theirs")
    assert found.differences == {("Task", "roll"): ("pending", pending)}
    assert counts(await last_detection(case)) == counts(found.summary) == {"pending": 1}
    assert await case.apply(json_task("new"))
    assert (await drift(case)).differences == {}


async def test_an_apply_with_a_kept_step_is_no_detection(faulty: World) -> None:
    case, name = await in_conflict(faulty)
    await case.recover(name, _0="keep")
    look, record = await last_detection(case), (await case.look()).record
    assert look
    assert record
    assert (look.generation, record.generation) == (1, 2)


async def test_a_conflict_shows_all_three_sides(faulty: World) -> None:
    case, name = await in_conflict(faulty)
    await case.recover(name, _0="keep")

    await change(case, "Task", "roll", description="again")

    conflict = ("/description", "conflict", "new", "theirs", "again")
    assert (await drift(case)).differences == {("Task", "roll"): ("conflict", conflict)}
    await change(case, "Task", "roll", description="new")
    found = await drift(case)
    assert found.differences == {("Task", "roll"): ("in_sync", ("/description", "converged", "new", "theirs", "new"))}
    assert found.statuses == {}


async def test_an_adopted_resource_drifts_like_any_other(faulty: World) -> None:
    case = faulty.case()
    await case.services.mutate(create("Bucket", {"name": "raw", "description": "old"}), org=case.org)
    await case.apply(text(SHARED_LABEL, BUCKET))
    found = await drift(case)
    assert (found.differences, found.of("Bucket", "b").origin) == ({}, object_pb2.ORIGIN_ADOPTED)
    await change(case, "Bucket", "b", description="theirs")
    assert (await drift(case)).differences == {("Bucket", "b"): ("drifted", changed("/description", "", "theirs"))}


async def test_drift_of_a_shared_resource_is_reported_to_all_its_stacks(faulty: World) -> None:
    owner = await faulty.case_with(text(SHARED_LABEL))
    user = replace(owner, stack="t")
    await user.apply(text(SHARED_LABEL, BUCKET))
    assert (await drift(user)).differences == {}

    await change(owner, "Label", "l", color="#000001")

    mine, theirs = await drift(owner), await drift(user)
    assert mine.statuses == theirs.statuses == {("Label", "l"): "drifted"}
    assert mine.of("Label", "l").origin == object_pb2.ORIGIN_CREATED
    assert theirs.of("Label", "l").origin == object_pb2.ORIGIN_SHARED


async def test_what_is_used_as_it_is_does_not_drift(faulty: World) -> None:
    owner = await faulty.case_with(text(SHARED_LABEL))
    user = replace(owner, stack="t")
    await user.apply(text(an_object("Bucket", "own", "own")))
    await set_policy(user, share="always")
    other = an_object("Label", "l", "sensors", color="#00ff00")
    assert end(await user.apply(text(other, BUCKET))).state == SUCCEEDED

    await change(owner, "Label", "l", color="#000001")

    assert (await drift(user)).differences == {}
    label = await resource_of(owner, "Label", "l")
    await case_detach(user, label.id)
    assert (await drift(user)).differences == {("Bucket", "b"): ("drifted", detached("l"))}


async def test_an_unreadable_resource_is_never_missing(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    await remove(case, "Bucket", "pristine_noir")
    await change(case, "Task", "alcord_mumphries", description="theirs")
    case.driver.hide_kinds("Bucket", "Label")

    found = await drift(case)

    unreadable = {("Bucket", "pristine_noir"): "unreadable", ("Label", LABEL): "unreadable"}
    assert found.statuses == {**unreadable, ("Task", "alcord_mumphries"): "drifted"}
    assert "scripted" in found.of("Bucket", "pristine_noir").problem
    assert counts(await last_detection(case)) == {"unreadable": 2, "drifted": 1, "in_sync": len(KEYS) - 3}
    case.driver.heal()
    assert (await drift(case)).statuses == {
        ("Bucket", "pristine_noir"): "missing",
        ("Task", "alcord_mumphries"): "drifted",
    }


async def test_a_platform_that_does_not_list_anything_leaves_all_unreadable(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    case.driver.hide()
    assert {*(await drift(case)).statuses.values()} == {"unreadable"}


async def test_an_incomplete_listing_makes_nothing_missing(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    case.driver.heal()
    case.driver.lack(*range(100))
    found = await drift(case)
    assert {*found.statuses.values()} == {"unreadable"}
    assert "which exists" in found.reports[0].problem


async def test_a_platform_that_describes_nothing_is_an_error(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    case.driver.descriptions = [grpc.StatusCode.UNAVAILABLE]
    with pytest.raises(ServiceUnavailable):
        await drift(case)


async def test_a_resource_created_again_under_the_name_is_named(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    await remove(case, "Bucket", "b")
    [made] = (await case.driver.change(case.org, create("Bucket", {"name": "raw"}))).results

    same = (await drift(case)).of("Bucket", "b").same_name

    assert (same.resource.kind, same.resource.id, same.stack_id) == ("Bucket", made.done.id, "")
    other = replace(case, stack="t")
    await other.apply(text(an_object("Bucket", "theirs", "raw")))
    same = (await drift(case)).of("Bucket", "b").same_name
    record = (await other.look()).record
    assert record
    assert (same.stack_id, same.stack_name) == (record.id, "t")


async def test_a_name_may_be_that_of_a_resource_of_another_kind(faulty: World) -> None:
    case = await faulty.case_with(text(an_endpoint("HTTP", "hook", "hook")))
    await remove(case, "NotificationEndpointHTTP", "hook")
    slack = {"name": "hook", "url": "https://example.com", "token": {"secretRef": {"key": "k"}}}
    await case.driver.change(case.org, create("NotificationEndpointSlack", slack))
    found = (await drift(case)).of("NotificationEndpointHTTP", "hook")
    assert found.same_name.resource.kind == "NotificationEndpointSlack"


async def test_a_failed_deletion_is_a_leftover_until_the_resource_is_gone(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, an_object("Bucket", "b", "raw")))
    before = await resource_of(case, "Bucket", "b")
    case.driver.fail({0: ItemFault.REJECT})
    assert end(await case.apply(text(SHARED_LABEL))).leftover_count == 1
    assert (await drift(case)).differences == {("Bucket", "b"): ("leftover",)}
    look = await last_detection(case)
    assert counts(look) == {"leftover": 1, "in_sync": 1}
    await case.driver.change(case.org, delete("Bucket", before.id))
    assert (await drift(case)).differences == {("Bucket", "b"): ("gone",)}


def forget(data: Path, *, revisions: bool) -> None:
    """Remove the baselines of the store, and optionally its revisions."""
    connection = sqlite3.connect(data / "stack.db")
    connection.execute("DELETE FROM baselines")
    connection.execute("DELETE FROM drift_checks")
    if revisions:
        connection.execute("DELETE FROM revisions")
        connection.execute("UPDATE stacks SET revision = 0, package_digest = ''")
    connection.commit()
    connection.close()


async def test_without_any_history_drift_says_what_is_missing(faulty: World, tmp_path: Path) -> None:
    case = await faulty.case_with(ALL)
    forget(tmp_path, revisions=True)
    await remove(case, "Bucket", "pristine_noir")
    await change(case, "Task", "alcord_mumphries", description="theirs")

    found = await drift(case)

    assert found.differences == {("Bucket", "pristine_noir"): ("missing",)}
    assert (found.summary.revision, found.summary.without_baseline_count) == (0, len(KEYS))
    assert found.reports[0].lacks_baseline
    # The first apply makes the history.
    assert end(await case.apply(ALL)).state == SUCCEEDED
    found = await drift(case)
    assert (found.differences, found.summary.without_baseline_count, found.summary.revision) == ({}, 0, 1)


async def test_an_apply_with_nothing_to_do_records_the_baselines_that_are_missing(
    faulty: World, tmp_path: Path
) -> None:
    case = await faulty.case_with(ALL)
    forget(tmp_path, revisions=False)
    assert (await drift(case)).summary.without_baseline_count == len(KEYS)

    assert end(await case.apply(ALL)).state == SUCCEEDED

    found = await drift(case)
    assert (found.differences, found.summary.without_baseline_count, found.summary.revision) == ({}, 0, 1)


async def test_without_baselines_the_package_stands_for_them(faulty: World, tmp_path: Path) -> None:
    case = await faulty.case_with(ALL)
    forget(tmp_path, revisions=False)
    assert await last_detection(case) is None
    assert (await drift(case)).differences == {}
    await change(case, "Task", "alcord_mumphries", description="theirs")
    key = ("Task", "alcord_mumphries")
    assert (await drift(case)).differences == {key: ("drifted", changed("/description", "", "theirs"))}


async def test_what_a_policy_ignores_is_listed_and_does_not_count(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    await set_policy(case, ignore=["/description"], overrides=[{"match": {"kind": "Label"}, "drift": "ignore"}])
    await change(case, "Bucket", "b", description="theirs")
    await change(case, "Label", "l", color="#000001")

    found = await drift(case)

    ignored = ("/description", "ignored", "", "", "theirs")
    drifted = changed("/color", "", "#000001")
    assert found.differences == {("Label", "l"): ("drifted", drifted), ("Bucket", "b"): ("in_sync", ignored)}
    assert found.of("Label", "l").is_ignored
    assert counts(found.summary) == {"in_sync": 2}


async def test_a_detection_for_some_resources_is_not_stored(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    before = await last_detection(case)
    await change(case, "Bucket", "pristine_noir", description="theirs")
    case.driver.heal()

    found = await drift(
        case, ("Bucket", "pristine_noir"), ("Label", ""), ("NotificationEndpoint", ""), ("Check", "hot")
    )

    assert found.statuses == {("Bucket", "pristine_noir"): "drifted"}
    assert {each.key.name for each in found.reports} == {"pristine_noir", LABEL, "hook", "pager", "chat", "hot"}
    assert not found.summary.is_stored
    assert await last_detection(case) == before
    # One listing for each requested kind, and none for the others.
    assert case.driver.looks == 6


async def test_keys_that_name_nothing_are_refused_with_their_names(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    with pytest.raises(RequestInvalid, match=r"'s' has nothing that is called Buckett, Task, Bucket:c$"):
        await drift(case, ("Buckett", ""), ("Task", ""), ("Bucket", "c"), ("Bucket", "b"))
    with pytest.raises(RequestInvalid, match=r"Bucket:4 and 5 more$"):
        await drift(case, *(("Bucket", str(number)) for number in range(10)))


async def test_an_unknown_stack_is_not_found(faulty: World) -> None:
    with pytest.raises(StackNotFound):
        await drift(faulty.case())


async def case_detach(case: Case, label_id: str) -> None:
    """Detach a label from the bucket of the stack, on the platform."""
    bucket = await resource_of(case, "Bucket", "b")
    await case.driver.change(case.org, detach("Bucket", bucket.id, label_id))


def json_task(description: str) -> str:
    """The package of ``in_conflict``."""
    return text(an_object("Task", "roll", "roll", every="1h", query="buckets()", description=description))


async def test_an_imported_resource_is_pending_until_a_package_has_it(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL))
    await case.driver.change(case.org, create("Bucket", {"name": "theirs"}))
    [bucket] = [each for each in (await case.look()).resources if each.kind == "Bucket"]
    await import_into(case, "Bucket", bucket.id, "b")

    found = await drift(case)

    # As it is compared: a missing schema type is implicit.
    spec = {**json.loads(bucket.spec_json), "schemaType": ""}
    assert found.differences == {("Bucket", "b"): ("pending", ("", "pending", ABSENT, spec, spec))}
    assert found.of("Bucket", "b").origin == object_pb2.ORIGIN_ADOPTED
    assert end(await case.apply(text(SHARED_LABEL, an_object("Bucket", "b", "theirs")))).state == SUCCEEDED
    assert (await drift(case)).differences == {}


async def test_a_renamed_object_is_pending_until_a_package_has_its_name(faulty: World) -> None:
    case = await faulty.case_with(text(an_object("Bucket", "b", "raw")))
    await rename(case, "Bucket", "b", "c")
    assert (await drift(case)).statuses == {("Bucket", "c"): "pending"}
    assert end(await case.apply(text(an_object("Bucket", "c", "raw")))).state == SUCCEEDED
    assert (await drift(case)).differences == {}


async def test_a_kind_that_the_platform_has_lost_is_unreadable(faulty: World) -> None:
    case = await faulty.case_with(text(SHARED_LABEL, BUCKET))
    await case.driver.forget("Bucket")

    found = await drift(case)

    assert found.differences == {("Bucket", "b"): ("unreadable",)}
    assert found.of("Bucket", "b").problem == "platform 'embedded' has no kind Bucket"


async def test_a_stack_that_was_uninstalled_has_no_drift(faulty: World) -> None:
    case = await faulty.case_with(ALL)
    await case.uninstall(after_uninstall=plan_pb2.AFTER_UNINSTALL_KEEP)
    found = await drift(case)
    assert (list(found.reports), counts(found.summary), found.summary.is_stored) == ([], {}, True)
