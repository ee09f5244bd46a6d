"""Replacements with rejected steps: no resource is lost that can be kept, and the record is right."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pkger.model.v1 import object_pb2

from services.core.errors import ReplacementRefused
from services.core.model import Verb
from tests.applier.faulty import ItemFault
from tests.applier.packages import EXPLICIT, HELD, IMPLICIT, MOVED, TURNED, WATCHED
from tests.applier.world import ROLLED_BACK, SUCCEEDED, Case, Events, Snapshot, World, end
from tests.apply.packages import an_object, text

RENAMED = text(an_object("Label", "red", "red"), an_object("Bucket", "raw", "new raw", ["red"], schemaType="explicit"))
"""After IMPLICIT: the bucket is replaced by one with another, free name."""

CREATED, ADOPTED = object_pb2.ORIGIN_CREATED, object_pb2.ORIGIN_ADOPTED


async def fails_at(case: Case, verb: Verb, kind: str, *texts: str, **more: Any) -> Events:
    """An apply in which the platform rejects the step with *verb* and *kind*."""
    steps = (await case.plan(*texts, **more)).steps
    [number] = [step.number for step in steps if (step.verb, step.key.kind) == (verb, kind)]
    case.driver.fail({number: ItemFault.REJECT})
    return await case.apply(*texts, **more)


async def replaced(case: Case, *texts: str, **more: Any) -> list[tuple[str, str]]:
    """Resources after an apply without faults; afterwards there is nothing left to do."""
    case.driver.heal()
    events = await case.apply(*texts, **more)
    assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 0)
    assert (await case.plan(*texts, **more)).steps == []
    return [(step.verb.value, step.key.name) for step in events.plan.steps if not step.label]


def buckets(now: Snapshot) -> list[tuple[str, Sequence[str]]]:
    """Display name and names of labels of each bucket."""
    return [(json.loads(spec)["name"], labels) for kind, spec, labels, _ in now.content if kind == "Bucket"]


def entries(now: Snapshot) -> dict[str, object_pb2.InventoryEntry]:
    assert now.record
    return {entry.key.name: entry for entry in now.record.resources}


async def test_a_refused_creation_costs_no_data_where_both_may_be_there(faulty: World) -> None:
    case = await faulty.case_with(IMPLICIT)
    before = await case.look()
    events = await fails_at(case, Verb.CREATE, "Bucket", RENAMED)
    assert (end(events).state, await case.look()) == (ROLLED_BACK, before)
    assert await replaced(case, RENAMED) == [("create", "raw"), ("delete", "raw")]
    assert buckets(await case.look()) == [("new raw", ("red",))]


async def test_a_replaced_resource_that_cannot_be_deleted_stays_in_the_record_for_the_next_apply(faulty: World) -> None:
    case = await faulty.case_with(IMPLICIT)
    held = entries(await case.look())["raw"].resource_id
    events = await fails_at(case, Verb.DELETE, "Bucket", RENAMED)
    assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 1)
    now = await case.look()
    assert buckets(now) == [("new raw", ("red",)), ("raw", ())]
    left = entries(now)[f"raw~{held}"]
    assert (left.resource_id, left.is_pending_delete, list(left.associations)) == (held, True, [])
    assert set(now.recorded.values()) == now.ids
    assert await replaced(case, RENAMED, skip=[{"kind": "Bucket", "name": "raw"}]) == []
    assert buckets(await case.look()) == buckets(now)
    assert await replaced(case, RENAMED) == [("delete", f"raw~{held}")]
    assert end(await case.uninstall()).state == SUCCEEDED
    assert (await case.look()).ids == set()


async def test_a_replaced_resource_that_cannot_be_deleted_can_be_adopted_by_its_name(faulty: World) -> None:
    case = await faulty.case_with(IMPLICIT)
    held = entries(await case.look())["raw"].resource_id
    await fails_at(case, Verb.DELETE, "Bucket", RENAMED)
    both = text(
        an_object("Label", "red", "red"),
        an_object("Bucket", "raw", "new raw", ["red"], schemaType="explicit"),
        an_object("Bucket", "old", "raw", schemaType="implicit"),
    )
    assert await replaced(case, both) == []
    assert entries(await case.look())["old"].resource_id == held
    assert not entries(await case.look())["old"].is_pending_delete


@pytest.mark.parametrize(("before", "after"), [(WATCHED, TURNED), (HELD, MOVED)])
async def test_a_rejected_creation_restores_the_deleted_resource_with_its_labels_and_rules(
    faulty: World, before: str, after: str
) -> None:
    """The restored resource has another id, which is in the record and in the rules."""
    case = await faulty.case_with(before)
    kinds = [step.key.kind for step in (await case.plan(after)).steps if step.verb is Verb.CREATE]
    for kind in kinds:
        at_first = await case.look()
        events = await fails_at(case, Verb.CREATE, kind, after)
        now = await case.look()
        assert end(events).state == ROLLED_BACK
        assert (now.content, now.recorded_content) == (at_first.content, at_first.recorded_content)
        assert set(now.recorded.values()) == now.ids
    await replaced(case, after)


async def test_a_refused_creation_past_the_seal_fails_the_command_and_the_next_apply_creates_it(faulty: World) -> None:
    case = await faulty.case_with(IMPLICIT)
    events = await fails_at(case, Verb.CREATE, "Bucket", EXPLICIT)
    finished, now = end(events), await case.look()
    # There is no bucket to attach the label to.
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 2)
    assert finished.cause.startswith("create Bucket 'raw'")
    assert (await case.operation(events[0].operation_id)).cause == finished.cause
    assert buckets(now) == []
    assert entries(now).keys() == {"red"}
    assert await replaced(case, EXPLICIT) == [("create", "raw")]
    assert buckets(await case.look()) == [("raw", ("red",))]


@pytest.mark.parametrize("is_adopted", [False, True])
async def test_nothing_replaces_a_resource_that_cannot_be_deleted(faulty: World, is_adopted: bool) -> None:
    if is_adopted:
        case = faulty.case(stack="")
        await case.apply(IMPLICIT)
        case.stack = "s"
        await case.apply(IMPLICIT)
    else:
        case = await faulty.case_with(IMPLICIT)
    before = await case.look()
    events = await fails_at(case, Verb.DELETE, "Bucket", EXPLICIT)
    finished, now = end(events), await case.look()
    assert (finished.state, finished.leftover_count) == (SUCCEEDED, 2)
    assert finished.cause.startswith("delete Bucket 'raw'")
    assert not any(mutation.HasField("create") for mutation in case.driver.sent)
    assert (now.content, now.recorded) == (before.content, before.recorded)
    raw = entries(now)["raw"]
    assert (raw.origin, raw.is_pending_delete) == (ADOPTED if is_adopted else CREATED, False)
    assert await replaced(case, EXPLICIT) == [("delete", "raw"), ("create", "raw")]


async def test_an_unowned_resource_that_cannot_be_deleted_stays_unowned(faulty: World) -> None:
    case = faulty.case(stack="")
    await case.apply(IMPLICIT)
    case.stack = "s"
    events = await fails_at(case, Verb.DELETE, "Bucket", EXPLICIT, allow_replace=True)
    now = await case.look()
    assert (end(events).state, end(events).leftover_count) == (SUCCEEDED, 2)
    assert buckets(now) == [("raw", ("red",))]
    assert entries(now).keys() == {"red"}
    with pytest.raises(ReplacementRefused):
        await case.apply(EXPLICIT)
