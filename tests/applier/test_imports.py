"""Importing resources into a stack, forgetting them, and renaming their objects."""

from typing import Any

import pytest
from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from services.core.errors import (
    PkgerError,
    RequestInvalid,
    ResourceNotFound,
    ResourceOwned,
    StackLeased,
    StackMoved,
    StackNotFound,
)
from tests.applier.history import baselines, check_history, numbers
from tests.applier.test_cancel import in_the_middle_of
from tests.applier.test_people import resource
from tests.applier.test_sharing import ADOPTED, OWNED, SHARED, beside, origins
from tests.applier.world import SUCCEEDED, Case, World, end
from tests.apply.packages import EVERY_KIND, an_object, text
from tests.drivers.client import create

LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw", ["l"])


async def import_into(case: Case, kind: str, resource_id: str, name: str = "", **more: Any) -> str:
    """Import a resource; returns the name of its object."""
    [imported] = await import_all(case, {"kind": kind, "id": resource_id, "name": name}, **more)
    return imported


async def import_all(case: Case, *resources: dict[str, str], **more: Any) -> list[str]:
    """Import resources; returns the names of their objects."""
    peer = case.services.peers["applier"]
    wanted = [applier_pb2.ResourceImport(**each) for each in resources]
    request = applier_pb2.ImportResourcesRequest(**_named(case), resources=wanted, **more)
    answers = peer.stream(ApplierServiceStub(peer.channel).ImportResources, request)
    return [entry.key.name async for answer in answers for entry in answer.entries]


async def forget(case: Case, kind: str, name: str, **more: Any) -> stack_pb2.Stack:
    peer = case.services.peers["stack"]
    key = object_pb2.ObjectKey(kind=kind, name=name)
    request = stack_pb2.ForgetResourceRequest(**_named(case), key=key, **more)
    return (await peer.call(StackServiceStub(peer.channel).ForgetResource, request)).stack


async def rename(case: Case, kind: str, name: str, new_name: str, **more: Any) -> stack_pb2.Stack:
    peer = case.services.peers["stack"]
    key = object_pb2.ObjectKey(kind=kind, name=name)
    request = stack_pb2.RenameResourceRequest(**_named(case), key=key, new_name=new_name, **more)
    return (await peer.call(StackServiceStub(peer.channel).RenameResource, request)).stack


def _named(case: Case) -> dict[str, Any]:
    return {"stack": object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack)}


async def unowned(case: Case, kind: str = "Bucket", name: str = "theirs") -> str:
    """Create a resource outside any stack; returns its id."""
    before = {each.id for each in (await case.look()).resources}
    await case.driver.change(case.org, create(kind, {"name": name}, name + str(len(before))))
    [new] = {each.id for each in (await case.look()).resources} - before
    return new


async def test_an_imported_resource_counts_as_adopted(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    bucket = await unowned(case)
    plan = await case.plan(text(LABEL, an_object("Label", "m", "more")))

    assert await import_into(case, "Bucket", bucket, "b") == "b"

    assert await origins(case) == {"b": ADOPTED, "l": OWNED}
    assert ("Bucket", "b") in await baselines(case)
    record = (await case.look()).record
    assert record
    assert (record.stack.generation, record.stack.revision) == (2, 1)
    with pytest.raises(StackMoved):
        await case.apply_plan(plan)
    # The package lacks the object.
    removal = await case.plan(text(LABEL))
    assert [step.key.name for step in removal.steps] == ["b"]
    assert end(await case.apply(text(LABEL, an_object("Bucket", "b", "theirs")))).state == SUCCEEDED
    await check_history(case)


async def test_a_name_is_made_as_for_exports(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    name = await import_into(case, "Bucket", await unowned(case, name="CPU (Überblick)"))
    assert name.startswith("cpu-uberblick-")
    assert name in await origins(case)


@pytest.mark.parametrize("word", ["CheckDeadman", "Check"])
async def test_the_name_of_a_family_finds_all_its_kinds(faulty: World, word: str) -> None:
    case = await faulty.case_with(text(*EVERY_KIND))
    found = await resource(case, "CheckDeadman")
    await forget(case, "CheckDeadman", "silent")
    assert await import_into(case, word, found.id, "quiet") == "quiet"


async def test_what_cannot_be_imported_changes_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    other = beside(case, "other")
    assert end(await other.apply(text(an_object("Bucket", "o", "owned")))).state == SUCCEEDED
    bucket = await unowned(case)
    owned = (await other.look()).recorded["Bucket", "o"][1]
    mine = (await case.look()).recorded["Bucket", "b"][1]
    before = (await case.look()).record
    attempts: list[tuple[tuple[str, ...], type[PkgerError], str]] = [
        (("Bucket", "nowhere"), ResourceNotFound, "does not have Bucket nowhere"),
        (("Label", bucket), ResourceNotFound, "does not have Label"),
        (("Rocket", bucket), RequestInvalid, "'Rocket' is no kind"),
        (("Bucket", ""), RequestInvalid, r"resources\[0\].id: must not be empty"),
        (("Bucket", bucket, "b"), RequestInvalid, "stack 's' has another object of that name, Bucket 'b'"),
        (("Bucket", bucket, "No Name"), RequestInvalid, "'No Name' is no metadata.name"),
        (("Bucket", mine), RequestInvalid, "is in stack 's' already, as 'b'"),
        (("Bucket", mine, "b"), RequestInvalid, "is in stack 's' already, as 'b'"),
        (("Bucket", owned), ResourceOwned, "stack 'other'"),
    ]
    for arguments, error, problem in attempts:
        with pytest.raises(error, match=problem):
            await import_into(case, *arguments)
    with pytest.raises(StackNotFound):
        await import_into(beside(case, "unknown"), "Bucket", bucket)
    assert (await case.look()).record == before


async def test_a_resource_is_found_by_the_only_display_name(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    label = await unowned(case, "Label", "Cpu Usage")

    # The platform compares names of labels without case.
    await import_all(case, {"kind": "Label", "id_or_name": "cpu usage", "name": "cpu"})

    record = (await case.look()).recorded
    assert record["Label", "cpu"][1] == label


async def test_an_id_precedes_a_display_name(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    first = await unowned(case, "Dashboard", "first")
    await unowned(case, "Dashboard", first)
    await import_all(case, {"kind": "Dashboard", "id_or_name": first, "name": "board"})
    assert (await case.look()).recorded["Dashboard", "board"][1] == first


async def test_a_display_name_of_several_resources_or_none_is_refused(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    boards = sorted([await unowned(case, "Dashboard", "CPU"), await unowned(case, "Dashboard", "CPU")])
    ids = f"Dashboard {boards[0]}, Dashboard {boards[1]}"
    with pytest.raises(RequestInvalid, match=f"2 resources have the name 'CPU': {ids}; give an id"):
        await import_all(case, {"kind": "Dashboard", "id_or_name": "CPU"})
    with pytest.raises(ResourceNotFound, match="does not have Dashboard with id or name 'cpu'"):
        await import_all(case, {"kind": "Dashboard", "id_or_name": "cpu"})


async def test_resources_are_imported_together_or_not_at_all(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    first, second = await unowned(case, name="first"), await unowned(case, name="second")
    before = (await case.look()).record
    one = {"kind": "Bucket", "id": first, "name": "one"}
    refused: list[tuple[dict[str, str], str]] = [
        ({"kind": "Bucket", "id": second, "name": "one"}, r"resources\[1\].name: another resource .* Bucket 'one'"),
        ({"kind": "Bucket", "id": first, "name": "two"}, r"resources\[1\]: Bucket .* twice, first as 'one'"),
        ({"kind": "Label", "id": (await case.look()).recorded["Label", "l"][1]}, r"resources\[1\]: .* as 'l'"),
    ]
    for other, problem in refused:
        with pytest.raises(RequestInvalid, match=problem):
            await import_all(case, one, other)
    assert (await case.look()).record == before

    assert await import_all(case, one, {"kind": "Bucket", "id": second, "name": "two"}) == ["one", "two"]

    record = (await case.look()).record
    assert record
    assert record.stack.generation == 2
    assert await origins(case) == {"l": OWNED, "one": ADOPTED, "two": ADOPTED}
    assert {("Bucket", "one"), ("Bucket", "two")} <= {*await baselines(case)}


async def test_the_record_cannot_be_changed_while_an_operation_runs(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    bucket = await unowned(case)
    _, task, opened = await in_the_middle_of(case, 0, text(LABEL, BUCKET))
    for attempt in (
        import_into(case, "Bucket", bucket),
        forget(case, "Label", "l"),
        rename(case, "Label", "l", "m"),
    ):
        with pytest.raises(StackLeased):
            await attempt
    opened.set()
    assert end(await task).state == SUCCEEDED


async def test_a_repeated_request_has_the_same_response(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    bucket = await unowned(case)
    for _ in range(2):
        assert await import_into(case, "Bucket", bucket, "t", request_id="one") == "t"
        await rename(case, "Bucket", "t", "u", request_id="two")
        await forget(case, "Bucket", "u", request_id="three")
    record = (await case.look()).record
    assert record
    assert record.stack.generation == 4


async def test_a_forgotten_resource_stays_without_an_owner(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    stack = await forget(case, "Bucket", "b")
    assert (stack.generation, stack.resource_count) == (2, 1)
    assert [each.kind for each in (await case.look()).resources] == ["Bucket", "Label"]
    assert await origins(case) == {"l": OWNED}
    assert ("Bucket", "b") not in await baselines(case)
    assert end(await case.apply(text(LABEL, BUCKET))).state == SUCCEEDED
    assert await origins(case) == {"b": ADOPTED, "l": OWNED}
    assert await numbers(case) == [2, 1]


async def test_a_forgotten_resource_that_another_stack_uses_is_handed_over(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    theirs = beside(case, "theirs")
    assert end(await theirs.apply(text(an_object("Label", "tag", "sensors")))).state == SUCCEEDED
    assert await origins(theirs) == {"tag": SHARED}

    await forget(case, "Label", "l")

    assert (await origins(case), await origins(theirs)) == ({}, {"tag": OWNED})


async def test_a_used_resource_can_be_forgotten(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    theirs = beside(case, "theirs")
    await theirs.apply(text(an_object("Label", "tag", "sensors")))
    await forget(theirs, "Label", "tag")
    assert (await origins(case), await origins(theirs)) == ({"l": OWNED}, {})
    assert end(await case.uninstall()).state == SUCCEEDED
    assert (await case.look()).resources == []


async def test_a_renamed_object_is_the_same_resource(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    before = (await case.look()).ids

    await rename(case, "Label", "l", "tag")

    package = text(an_object("Label", "tag", "sensors"), an_object("Bucket", "b", "raw", ["tag"]))
    plan = await case.plan(package)
    assert (plan.steps, plan.warnings) == ([], [])
    assert end(await case.apply(package)).state == SUCCEEDED
    assert (await case.look()).ids == before
    assert await numbers(case) == [2, 1]
    await check_history(case)


async def test_what_cannot_be_renamed_or_forgotten_changes_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(*EVERY_KIND))
    before = (await case.look()).record
    attempts: list[tuple[tuple[str, str, str], str]] = [
        (("Label", "lucid_einstein", "lucid_einstein"), "has that name already"),
        (("Label", "unknown", "x"), "stack 's' has no Label 'unknown'"),
        (("Label", "lucid_einstein", ""), "'' is no metadata.name"),
        (("Label", "lucid_einstein", "two\nlines"), "is no metadata.name"),
        (("CheckDeadman", "silent", "hot"), "has another object of that name, CheckThreshold 'hot'"),
        (("", "x", "y"), "key.kind: must not be empty"),
    ]
    for arguments, problem in attempts:
        with pytest.raises(RequestInvalid, match=problem):
            await rename(case, *arguments)
    with pytest.raises(RequestInvalid, match="stack 's' has no Label 'unknown'"):
        await forget(case, "Label", "unknown")
    assert (await case.look()).record == before
