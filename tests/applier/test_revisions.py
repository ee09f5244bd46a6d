"""The history of a stack: each operation that changed it makes a revision, to which it can be rolled back."""

import json
from typing import Any

import pytest
from pkger.driver.v1 import driver_pb2
from pkger.driver.v1.driver_pb2_grpc import DriverServiceStub
from pkger.model.v1 import plan_pb2

from services.core.errors import KindUnsupported, RequestInvalid, RevisionNotFound, StackNotFound, ValuesMissing
from tests.applier.faulty import ItemFault
from tests.applier.history import (
    baselines,
    check_history,
    difference,
    numbers,
    package_of,
    revisions,
    roll_back,
)
from tests.applier.test_blocked import in_conflict
from tests.applier.test_people import edit
from tests.applier.test_sharing import beside
from tests.applier.world import BLOCKED, ROLLED_BACK, SUCCEEDED, Case, World, end
from tests.apply.packages import EVERY_KIND, a_rule, an_endpoint, an_object, text
from tests.cluster import Calls
from tests.drivers.client import create

LABEL = an_object("Label", "l", "sensors")
BUCKET = an_object("Bucket", "b", "raw", ["l"])
PLAIN = an_object("Bucket", "b", "raw")
BOARD = an_object("Dashboard", "d", "board")


def described(words: str) -> str:
    """A package of a label and a bucket with a description."""
    return text(LABEL, an_object("Bucket", "b", "raw", ["l"], description=words))


async def ended(case: Case, *texts: str, **more: Any) -> int:
    """The end of an apply, which has to succeed."""
    finished = end(await case.apply(*texts, **more))
    assert finished.state == SUCCEEDED, finished.cause
    return finished.generation


async def test_each_apply_that_changed_anything_makes_a_revision(faulty: World) -> None:
    case = faulty.case()
    first = await case.apply(text(LABEL), author="ann")
    await ended(case, text(LABEL), author="ben")
    await ended(case, text(LABEL, BUCKET))

    newest, oldest = await revisions(case)

    assert (newest.number, oldest.number) == (2, 1)
    assert (oldest.author, oldest.operation_id) == ("ann", first[0].operation_id)
    assert (oldest.kind, oldest.rollback_of, oldest.leftover_count) == (plan_pb2.OPERATION_KIND_APPLY, 0, 0)
    assert list(oldest.sources) == ["source-0"]
    assert (await case.operation(first[0].operation_id)).author == "ann"
    assert [each.key.name for each in (await package_of(case, 2)).objects] == ["b", "l"]
    await check_history(case)


async def test_a_package_without_objects_is_one_too(faulty: World) -> None:
    """It differs from an uninstall, which has no package."""
    case = await faulty.case_with(text(LABEL))
    await ended(case, "[]", allow_empty=True)
    await ended(case, text(LABEL))

    assert end(await roll_back(case, 2, allow_empty=True)).state == SUCCEEDED

    found = await revisions(case)
    assert [(each.number, each.rollback_of, bool(each.package_digest)) for each in found] == [
        (4, 2, True),
        (3, 0, True),
        (2, 0, True),
        (1, 0, True),
    ]
    assert await case.services.resources() == []
    assert list((await package_of(case, 2)).objects) == []
    await check_history(case)


async def test_a_package_is_sent_once_and_only_when_a_plan_is_to_run(faulty: World, calls: Calls) -> None:
    case = faulty.case()
    many = [an_object("Label", f"l-{number}", f"label {number}", description="x" * 900) for number in range(80)]
    await case.services.plan(text(*many), stack=case.stack)
    assert not {"KeepAttachment", "StoreAttachment"} & set(calls.methods)

    await ended(case, text(*many))
    assert calls.count("StoreAttachment") == 1
    await ended(case, text(*many, LABEL))
    await ended(case, text(*many))
    # The package of revision 1 is stored.
    assert calls.count("StoreAttachment") == 2


async def test_a_short_package_is_sent_with_its_plan(faulty: World, calls: Calls) -> None:
    case = faulty.case()
    await ended(case, text(LABEL))
    await ended(case, text(LABEL, BUCKET))
    assert not {"KeepAttachment", "StoreAttachment"} & set(calls.methods)


async def test_what_was_rolled_back_makes_no_revision(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    refused = an_object("Bucket", "b", "_system")

    assert end(await case.apply(text(an_object("Label", "l", "probes"), refused))).state == ROLLED_BACK

    assert await numbers(case) == [1]
    await check_history(case)


async def test_an_apply_that_only_writes_secrets_moves_nothing_but_the_generation(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL))
    before = (await case.look()).record
    assert before

    assert await ended(case, text(LABEL), secrets={"token": "hidden"}) == before.stack.generation + 1

    after = (await case.look()).record
    assert after
    assert (after.stack.update_time, after.stack.revision) == (before.stack.update_time, 1)
    assert await numbers(case) == [1]


async def test_a_package_that_says_the_same_in_other_words_is_a_revision_and_moves_no_generation(faulty: World) -> None:
    case = await faulty.case_with(text(an_object("Label", "l", "sensors")))
    other = {**LABEL, "apiVersion": "influxdata.com/v2alpha2"}

    assert await ended(case, text(other)) == 1

    assert await numbers(case) == [2, 1]
    assert [each.api_version for each in (await package_of(case, 2)).objects] == ["influxdata.com/v2alpha2"]
    await check_history(case)


async def test_a_stack_of_every_kind_is_rolled_back_and_forth(faulty: World) -> None:
    case = await faulty.case_with(text(*EVERY_KIND))
    before = await case.look()
    await ended(case, text(LABEL))
    await check_history(case)

    finished = end(await roll_back(case, 1, author="ann"))

    assert (finished.state, finished.no_change) == (SUCCEEDED, False)
    after = await case.look()
    assert after.content == before.content
    assert after.recorded_content == before.recorded_content
    newest = (await revisions(case))[0]
    assert (newest.number, newest.rollback_of, newest.author) == (3, 1, "ann")
    assert newest.kind == plan_pb2.OPERATION_KIND_ROLLBACK
    assert newest.package_digest == (await revisions(case))[-1].package_digest
    assert (await case.plan(text(*EVERY_KIND))).header.no_change
    await check_history(case)


async def test_a_rollback_to_the_current_revision_changes_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    assert end(await roll_back(case, 1)).no_change
    assert await numbers(case) == [1]


async def test_a_rollback_undoes_the_edits_of_other_writers(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, PLAIN))
    await edit(case, "Bucket", "edits")

    assert end(await roll_back(case, 1)).state == SUCCEEDED

    assert await numbers(case) == [2, 1]
    await check_history(case)


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        (0, "0 is no revision"),
        (-1, "-1 is no revision"),
        (2, "stack 's' has no revision 2; it keeps 1"),
        (2**62, "has no revision"),
    ],
)
async def test_a_rollback_to_an_unknown_revision_is_refused(faulty: World, number: int, problem: str) -> None:
    case = await faulty.case_with(text(LABEL))
    for attempt in (roll_back(case, number), package_of(case, number), difference(case, 1, number)):
        with pytest.raises((RequestInvalid, RevisionNotFound), match=problem):
            await attempt
    with pytest.raises((RequestInvalid, RevisionNotFound), match=problem):
        await case.plan(revision=number)
    assert await numbers(case) == [1]


async def test_an_unknown_stack_has_no_history(faulty: World) -> None:
    case = faulty.case()
    for attempt in (roll_back(case, 1), package_of(case, 1), revisions(case)):
        with pytest.raises(StackNotFound):
            await attempt
    assert (await case.look()).record is None


async def test_a_rollback_is_refused_as_an_apply_is(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET))
    await ended(case, text(an_object("Label", "l", "probes")))
    before = await case.look()
    # Another stack takes the name that the bucket needs.
    await case.services.apply(text(an_object("Bucket", "b", "raw", description="other")), stack="t", org=case.org)

    with pytest.raises(Exception, match="shares Bucket 'raw' of stack 't'"):
        await roll_back(case, 1)

    assert (await case.look()).recorded == before.recorded
    assert await numbers(case) == [2, 1]


async def test_a_rollback_to_a_kind_that_the_platform_has_lost_changes_nothing(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BOARD))
    await ended(case, text(LABEL))
    before = await case.look()
    peer = case.services.peers["platform"]
    lost = await peer.call(DriverServiceStub(peer.channel).Describe, driver_pb2.DescribeRequest())
    kinds = [kind for kind in lost.kinds if kind.kind != "Dashboard"]
    del lost.kinds[:]
    lost.kinds.extend(kinds)
    case.driver.descriptions = [lost] * 3

    with pytest.raises(KindUnsupported, match="does not support kind 'Dashboard'"):
        await roll_back(case, 1)

    case.driver.descriptions = []
    assert await case.look() == before
    assert await numbers(case) == [2, 1]


async def test_a_rollback_that_fails_in_the_middle_is_undone(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, BUCKET, BOARD))
    await ended(case, text(an_object("Label", "l", "probes")))
    before = await case.look()
    case.driver.fail({1: ItemFault.REJECT})

    assert end(await roll_back(case, 1)).state == ROLLED_BACK

    assert (await case.look()).content == before.content
    assert await numbers(case) == [2, 1]
    await check_history(case)


async def test_what_was_skipped_stands_in_the_revision_as_before(faulty: World) -> None:
    case = await faulty.case_with(described("one"))

    await ended(
        case,
        text(an_object("Label", "l", "sensors", color="#ff0000"), an_object("Bucket", "b", "raw", description="two")),
        skip=[{"kind": "Bucket", "name": "b"}],
    )

    bucket = next(each for each in (await package_of(case, 2)).objects if each.key.kind == "Bucket")
    assert json.loads(bucket.spec_json)["description"] == "one"
    await ended(case, text(LABEL))
    assert end(await roll_back(case, 2)).state == SUCCEEDED
    assert [entry.key.name for entry in (await case.look()).record.resources] == ["b", "l"]  # type: ignore[union-attr]


async def test_what_is_skipped_and_was_never_applied_is_not_part_of_the_revision(faulty: World) -> None:
    case = faulty.case()
    await ended(case, text(LABEL, PLAIN), skip=[{"kind": "Bucket", "name": "b"}])
    await ended(case, text(LABEL, PLAIN))

    assert end(await roll_back(case, 1)).state == SUCCEEDED

    assert [each.kind for each in (await case.look()).resources] == ["Label"]


SKIPPED = [{"kind": "NotificationEndpoint", "name": "hook"}]


async def test_what_is_skipped_and_referred_to_is_kept_without_credentials(faulty: World) -> None:
    case = await faulty.case_with(text(an_endpoint("HTTP", "hook", "hook")))
    credential = an_endpoint("HTTP", "hook", "hook", token="hunter2")
    mine = beside(case, "mine")

    await ended(mine, text(credential, a_rule("r", "hook")), skip=SKIPPED)

    kept = {each.key.name: each.spec_json for each in (await package_of(mine, 1)).objects}
    assert "hunter2" not in kept["hook"]
    assert "hunter2" not in str((await mine.plan(text(credential, a_rule("r", "hook")), skip=SKIPPED)).parts)
    await ended(mine, text(LABEL))
    plan = await mine.plan(revision=1)
    assert [step.key.name for step in plan.steps if step.new_spec] == ["r"]
    assert end(await roll_back(mine, 1)).state == SUCCEEDED
    assert [entry.key.name for entry in (await mine.look()).record.resources] == ["r"]  # type: ignore[union-attr]


async def test_the_platform_must_still_have_the_secrets(faulty: World) -> None:
    case = faulty.case()
    await ended(case, text(an_endpoint("Slack", "chat", "chat")), secrets={"slack-token": "hidden"})
    await ended(case, text(LABEL))
    await case.services.mutate(
        driver_pb2.Mutation(delete_secret=driver_pb2.DeleteSecret(key="slack-token")), org=case.org
    )

    with pytest.raises(ValuesMissing, match="slack-token"):
        await roll_back(case, 1, allow_missing=False)

    assert await numbers(case) == [2, 1]


async def test_a_stored_plan_of_a_revision_is_run_as_it_is(faulty: World) -> None:
    case = await faulty.case_with(described("one"))
    await ended(case, described("two"))
    plan = await case.plan(revision=1)
    assert (plan.header.kind, plan.header.rollback_of) == (plan_pb2.OPERATION_KIND_ROLLBACK, 1)
    assert [diff.changes[0].path for diff in plan.resource_diffs if diff.changes] == ["/description"]

    assert end(await case.apply_plan(plan, author="ann")).state == SUCCEEDED

    newest = (await revisions(case))[0]
    assert (newest.rollback_of, newest.author) == (1, "ann")


async def test_ten_applies_are_compared_and_rolled_back_to(faulty: World) -> None:
    case = faulty.case()
    for number in range(10):
        await ended(case, described(str(number)), text(*([BOARD] if number % 2 else [])))

    for old in range(1, 11):
        new = 11 - old
        diffs = await difference(case, old, new)
        changed = {each.key.kind: each.status for each in diffs.resources}
        expected = plan_pb2.DIFF_STATUS_NEW if new % 2 == 0 else plan_pb2.DIFF_STATUS_REMOVE
        assert changed == {"Bucket": plan_pb2.DIFF_STATUS_EXISTS, "Dashboard": expected}
        [change] = next(each for each in diffs.resources if each.key.kind == "Bucket").changes
        assert (change.path, change.old_json, change.new_json) == ("/description", f'"{old - 1}"', f'"{new - 1}"')
    for number in range(1, 11):
        assert end(await roll_back(case, number)).state == SUCCEEDED
        words = [described(str(number - 1)), text(*([] if number % 2 else [BOARD]))]
        assert (await case.plan(*words)).header.no_change
    await check_history(case)
    assert await difference(case, 1, 1) == plan_pb2.PlanDiffs()


async def test_labels_are_part_of_a_difference(faulty: World) -> None:
    case = await faulty.case_with(text(LABEL, PLAIN))
    await ended(case, text(LABEL, BUCKET))
    [mapping] = (await difference(case, 2, 1)).label_mappings
    assert (mapping.status, mapping.resource.name, mapping.label.name) == (plan_pb2.DIFF_STATUS_REMOVE, "b", "l")


async def test_twenty_revisions_are_kept(faulty: World) -> None:
    case = faulty.case()
    for number in range(23):
        await ended(case, text(an_object("Label", "l", "sensors", description=str(number))))

    assert await numbers(case) == list(range(23, 3, -1))
    with pytest.raises(RevisionNotFound, match="it keeps 4 to 23"):
        await roll_back(case, 3)
    assert end(await roll_back(case, 4)).state == SUCCEEDED


@pytest.mark.parametrize("author", ["a" * 201, "two\nlines"])
async def test_an_author_is_one_line_of_200_characters(faulty: World, author: str) -> None:
    case = faulty.case()
    with pytest.raises(RequestInvalid, match="author"):
        await case.apply(text(LABEL), author=author)
    assert (await case.look()).resources == []


async def test_what_is_adopted_without_a_write_has_a_baseline(faulty: World) -> None:
    case = faulty.case()
    await case.driver.change(case.org, create("Label", {"name": "sensors"}))
    await ended(case, text(LABEL))
    case.driver.heal()
    assert case.driver.sent == []
    await check_history(case)


@pytest.mark.parametrize(("way", "held"), [("keep", "theirs"), ("force", "new"), ("skip", "old")])
async def test_a_kept_resource_is_the_baseline(faulty: World, way: str, held: str) -> None:
    case, name = await in_conflict(faulty)
    assert (await case.recover(name, _0=way))[-1].finished.state == SUCCEEDED
    assert json.loads((await baselines(case))["Task", "roll"].spec_json)["description"] == held


async def test_a_failed_first_apply_leaves_no_history(faulty: World) -> None:
    case = faulty.case()
    assert end(await case.apply(text(an_object("Bucket", "b", "_system")))).state in (ROLLED_BACK, BLOCKED)
    with pytest.raises(StackNotFound):
        await revisions(case)
