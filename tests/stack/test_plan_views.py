"""StackService.GetPlan: the parts of a stored plan, and the ids of the resources that it created."""

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepRecord, StepState
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.model.v1.plan_pb2 import (
    PLAN_VIEW_DIFFS,
    PLAN_VIEW_RECORD,
    PLAN_VIEW_STEPS,
    PLAN_VIEW_SUMMARY,
    PLAN_VIEW_UNSPECIFIED,
    PlanPart,
    PlanView,
)

from parser_svc.sources import Encoding
from services.core.errors import PlanNotFound, RequestInvalid
from services.core.model import (
    DiffStatus,
    InventoryEntry,
    Key,
    LabelMappingDiff,
    Object,
    Origin,
    Plan,
    PlanRemarks,
    RecordChanges,
    ResourceDiff,
    Spec,
    Step,
    Target,
    Verb,
)
from services.kinds.format.canonical import canonical_text, spec_of
from services.kinds.summary import planned_summary
from services.rpc.convert.objects import key_fields, object_fields
from services.rpc.convert.plans import (
    diff_fields,
    header_to_pb,
    mapping_fields,
    record_changes_to_pb,
    remarks_to_pb,
    step_fields,
)
from services.rpc.parts import MAX_PART_BYTES
from tests.apply.packages import a_rule, an_endpoint, an_object, text
from tests.parser.parsing import objects
from tests.stack.service import Begun, Client

ALL = (PLAN_VIEW_STEPS, PLAN_VIEW_DIFFS, PLAN_VIEW_SUMMARY, PLAN_VIEW_RECORD)
NAME = "plans/1"

NEW, EXISTS, REMOVE = DiffStatus.NEW, DiffStatus.EXISTS, DiffStatus.REMOVE

PACKAGE = objects(
    text(
        an_object("Label", "red", "red"),
        an_object("Label", "green", "green"),
        an_object("Bucket", "made", "made", ["green", "red"]),
        an_object("Bucket", "updated", "updated", ["red"], description="new"),
        an_object("Bucket", "same", "same"),
        an_object("Bucket", "alike", "alike"),
        an_object("Bucket", "gone", "gone"),
        an_object("Bucket", "replaced", "replaced", schemaType="explicit"),
        an_endpoint("Slack", "chat", "chat"),
        a_rule("rule", "chat"),
    ),
    encoding=Encoding.JSON,
)
SPECS = {item.key: item.spec for item in PACKAGE}
CHAT = Key("NotificationEndpointSlack", "chat")
RULE = Key("NotificationRule", "rule")
RED, GREEN = Key("Label", "red"), Key("Label", "green")
OLD = {name: spec_of({"name": name, "description": "old"}) for name in ("updated", "left", "replaced")}
ALIKE = Spec('{"name":"alike ","x":1}', "alike")
"""A spec that the platform writes differently, with the same meaning."""


def bucket(name: str) -> Key:
    return Key("Bucket", name)


STEPS = (
    Step(0, 0, Verb.CREATE, GREEN, new_spec=SPECS[GREEN]),
    Step(1, 0, Verb.CREATE, bucket("made"), new_spec=SPECS[bucket("made")]),
    Step(2, 0, Verb.CREATE, bucket("gone"), new_spec=SPECS[bucket("gone")]),
    Step(3, 0, Verb.UPDATE, bucket("updated"), "0a", None, "", OLD["updated"], SPECS[bucket("updated")]),
    Step(4, 0, Verb.ATTACH, bucket("made"), "", GREEN),
    Step(5, 0, Verb.ATTACH, bucket("made"), "", RED, "01"),
    Step(6, 1, Verb.DELETE, bucket("left"), "0b", old_spec=OLD["left"]),
    Step(7, 1, Verb.DELETE, bucket("replaced"), "0c", old_spec=OLD["replaced"]),
    Step(8, 1, Verb.CREATE, bucket("replaced"), new_spec=SPECS[bucket("replaced")]),
)
DIFFS = (
    ResourceDiff(bucket("alike"), "0d", EXISTS, ALIKE, None),
    ResourceDiff(bucket("gone"), "0e", EXISTS, None, None),
    ResourceDiff(bucket("left"), "0b", REMOVE, None, None),
    ResourceDiff(bucket("made"), "", NEW, None, None),
    ResourceDiff(bucket("replaced"), "0c", EXISTS, None, None),
    ResourceDiff(bucket("same"), "0f", EXISTS, None, None),
    ResourceDiff(bucket("updated"), "0a", EXISTS, None, None),
    ResourceDiff(GREEN, "", NEW, None, None),
    ResourceDiff(RED, "01", EXISTS, None, None),
    ResourceDiff(RULE, "10", EXISTS, None, None),
)
MAPPINGS = (
    LabelMappingDiff(NEW, bucket("made"), "", GREEN, ""),
    LabelMappingDiff(NEW, bucket("made"), "", RED, "01"),
    LabelMappingDiff(EXISTS, bucket("updated"), "0a", RED, "01"),
)
REMARKS = PlanRemarks(("one", "two"), ("two",), ("lost",), ("look",))
RECORD = RecordChanges((InventoryEntry(bucket("made"), "", Origin.CREATED, (GREEN, RED)),), (bucket("left"),))


def a_plan(**changes: Any) -> Plan:
    plan = Plan(
        target=Target(),
        stack_id="",
        base_generation=0,
        stages=("one", "two"),
        steps=STEPS,
        record=RECORD,
        no_change=False,
        remarks=REMARKS,
        stack_name="prod",
    )
    return replace(plan, **changes)


def content_of(
    items: tuple[Object, ...] = PACKAGE,
    diffs: tuple[ResourceDiff, ...] = DIFFS,
    mappings: tuple[LabelMappingDiff, ...] = MAPPINGS,
) -> bytes:
    content = journal_pb2.PlanContent(
        objects=map(object_fields, items),
        skipped=[key_fields(CHAT)],
        diffs=plan_pb2.PlanDiffs(
            # The planner stores an old spec only if no other part has it.
            resources=[diff_fields(diff) for diff in diffs],
            label_mappings=map(mapping_fields, mappings),
        ),
        referred=[journal_pb2.ReferredResource(key=key_fields(CHAT), resource_id="11")],
    )
    return zlib.compress(content.SerializeToString())


def stored(plan: Plan, content: bytes = b"") -> journal_pb2.NewPlan:
    body = journal_pb2.PlanBody(
        remarks=remarks_to_pb(plan.remarks),
        steps=map(step_fields, plan.steps),
        record=record_changes_to_pb(plan.record),
    )
    return journal_pb2.NewPlan(header=header_to_pb(plan, NAME), body=body.SerializeToString(), content=content)


def sorts(parts: list[PlanPart]) -> list[str | None]:
    return [part.WhichOneof("part") for part in parts]


def diffs_of(parts: list[PlanPart]) -> dict[str, plan_pb2.ResourceDiff]:
    """The diffs by name; each object of the package has another name."""
    return {diff.key.name: diff for part in parts for diff in part.diffs.resources}


def mappings_of(parts: list[PlanPart]) -> list[tuple[str, str, str, str]]:
    return [
        (mapping.resource.name, mapping.resource_id, mapping.label.name, mapping.label_id)
        for part in parts
        for mapping in part.diffs.label_mappings
    ]


def summary_of(parts: list[PlanPart]) -> str:
    return "".join(part.summary_json for part in parts)


def expected_summary(**ids: str) -> str:
    known = {CHAT: "11", RED: "01", RULE: "10"} | {
        bucket(name): ids.pop(name) for name in [*ids] if bucket(name) in SPECS
    }
    known = {bucket("gone"): "0e"} | known | {bucket("alike"): "0d", bucket("same"): "0f", bucket("updated"): "0a"}
    known |= {Key("Label", name): value for name, value in ids.items()}
    attached = {(bucket("updated"), RED)}
    return canonical_text(planned_summary(PACKAGE, {CHAT}, known, attached, ("one", "two"), ("lost",)))


async def test_a_plan_comes_in_parts_in_a_fixed_order(service: Client) -> None:
    kept = stored(a_plan(), content_of())
    await service.store_plan(kept)

    parts = await service.parts(NAME, *reversed(ALL), PLAN_VIEW_STEPS)

    assert sorts(parts) == ["header", "remarks", "steps", "diffs", "summary_json", "record"]
    body = journal_pb2.PlanBody.FromString(kept.body)
    assert (parts[1].remarks, list(parts[2].steps.steps), parts[5].record) == (
        body.remarks,
        list(body.steps),
        body.record,
    )
    assert (parts[0].header.counts, parts[0].header.state) == (kept.header.counts, plan_pb2.PLAN_STATE_PENDING)


@pytest.mark.parametrize("view", ALL)
async def test_a_stream_has_only_the_requested_views(service: Client, view: PlanView.ValueType) -> None:
    await service.store_plan(stored(a_plan(), content_of()))

    assert sorts(await service.parts(NAME)) == ["header", "remarks"]
    requested = {PLAN_VIEW_SUMMARY: "summary_json"}.get(view, PlanView.Name(view).removeprefix("PLAN_VIEW_").lower())
    assert sorts(await service.parts(NAME, view)) == ["header", "remarks", requested]


async def test_a_plan_with_nothing_but_a_header_is_one_part(service: Client) -> None:
    plan = a_plan(steps=(), record=RecordChanges(), no_change=True, remarks=PlanRemarks())
    await service.store_plan(journal_pb2.NewPlan(header=header_to_pb(plan, NAME)))

    assert sorts(await service.parts(NAME, *ALL)) == ["header"]


@pytest.mark.parametrize("view", [PLAN_VIEW_UNSPECIFIED, 99])
async def test_a_view_that_is_not_streamed_is_refused(service: Client, view: Any) -> None:
    await service.store_plan(stored(a_plan()))

    with pytest.raises(RequestInvalid) as raised:
        await service.parts(NAME, PLAN_VIEW_STEPS, view)

    assert raised.value.metadata["field"] == "view"
    with pytest.raises(PlanNotFound):
        await service.parts("plans/2")


async def test_differences_get_their_specs_from_objects_and_steps(service: Client) -> None:
    await service.store_plan(stored(a_plan(), content_of()))

    parts = await service.parts(NAME, PLAN_VIEW_DIFFS)

    specs = {key.name: spec.text for key, spec in SPECS.items()}
    assert {name: (diff.old_spec_json, diff.new_spec_json) for name, diff in diffs_of(parts).items()} == {
        "alike": (ALIKE.text, specs["alike"]),
        "gone": ("", specs["gone"]),
        "left": (OLD["left"].text, ""),
        "made": ("", specs["made"]),
        "replaced": (OLD["replaced"].text, specs["replaced"]),
        "same": (specs["same"], specs["same"]),
        "updated": (OLD["updated"].text, specs["updated"]),
        "green": ("", specs["green"]),
        "red": (specs["red"], specs["red"]),
        "rule": (specs["rule"], specs["rule"]),
    }


async def test_a_replaced_resource_of_another_kind_has_the_spec_that_is_deleted(service: Client) -> None:
    hot, old = Key("CheckThreshold", "hot"), spec_of({"name": "hot", "every": "1m"})
    steps = (
        Step(0, 0, Verb.DELETE, Key("CheckDeadman", "hot"), "0a", old_spec=old),
        Step(1, 0, Verb.CREATE, hot, new_spec=spec_of({"name": "hot"})),
    )
    item = Object(hot, "v", spec_of({"name": "hot"}))
    diff = ResourceDiff(hot, "0a", EXISTS, None, None, old_kind="CheckDeadman")
    await service.store_plan(stored(a_plan(steps=steps), content_of((item,), (diff,), ())))

    [found] = diffs_of(await service.parts(NAME, PLAN_VIEW_DIFFS)).values()

    assert (found.old_spec_json, found.new_spec_json, found.resource_id) == (old.text, '{"name":"hot"}', "0a")


async def test_ids_of_created_resources_are_filled_in(service: Client) -> None:
    await service.store_plan(stored(a_plan(), content_of()))
    before = await service.parts(NAME, PLAN_VIEW_DIFFS, PLAN_VIEW_SUMMARY)
    assert summary_of(before) == expected_summary()
    assert diffs_of(before)["gone"].resource_id == "0e"
    assert mappings_of(before) == [
        ("made", "", "green", ""),
        ("made", "", "red", "01"),
        ("updated", "0a", "red", "01"),
    ]
    answer = await service.begin_planned(NAME)
    begun = Begun(answer.operation.name, answer.stack, answer.token, answer.expire_time, True)
    await service.start(begun, plan=NAME)
    made = {0: "a0", 1: "a1", 2: "a2", 8: "a8"}

    await service.advance(begun, [record(step, "DONE", resource_id) for step, resource_id in made.items()])

    parts = await service.parts(NAME, PLAN_VIEW_DIFFS, PLAN_VIEW_SUMMARY)
    diffs = diffs_of(parts)
    ids = {"green": "a0", "made": "a1", "gone": "a2", "replaced": "a8"}
    assert {name: diff.resource_id for name, diff in diffs.items()} == {
        diff.key.name: ids.get(diff.key.name, diff.resource_id) for diff in DIFFS
    }
    assert (diffs["replaced"].old_spec_json, diffs["gone"].old_spec_json) == (OLD["replaced"].text, "")
    assert mappings_of(parts) == [
        ("made", "a1", "green", "a0"),
        ("made", "a1", "red", "01"),
        ("updated", "0a", "red", "01"),
    ]
    assert summary_of(parts) == expected_summary(**ids)

    await service.advance(begun, [record(1, "UNDO_INTENT", "a1"), record(2, "UNDO_INTENT", "a2")], rollback=True)
    await service.advance(begun, [record(1, "UNDONE", "a1")])

    left = {name: diff.resource_id for name, diff in diffs_of(await service.parts(NAME, PLAN_VIEW_DIFFS)).items()}
    assert (left["made"], left["gone"], left["green"]) == ("", "a2", "a0")


def record(step: int, state: str, resource_id: str) -> StepRecord:
    return StepRecord(step=step, state=StepState.Value(f"STEP_STATE_{state}"), resource_id=resource_id)


async def test_a_plan_without_content_has_no_differences_and_no_summary(service: Client) -> None:
    await service.store_plan(stored(a_plan()))

    assert sorts(await service.parts(NAME, *ALL)) == ["header", "remarks", "steps", "record"]


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_no_part_of_a_large_plan_is_above_1_mib(service: Client, letter: str) -> None:
    count = 1200
    items = objects(
        text(
            *(an_object("Bucket", f"b{number:05}", f"n{number}", description=letter * 900) for number in range(count))
        ),
        encoding=Encoding.JSON,
    )
    steps = tuple(Step(n, 0, Verb.CREATE, item.key, new_spec=item.spec) for n, item in enumerate(items))
    entries = tuple(InventoryEntry(item.key, "", Origin.CREATED, (RED,) * 9) for item in items)
    remarks = PlanRemarks(
        missing_env_refs=tuple(f"{letter * 90}{number:05}" for number in range(9000)),
        warnings=tuple(f"{letter * 200}{number:05}" for number in range(5000)),
    )
    plan = a_plan(steps=steps, remarks=remarks, record=RecordChanges(entries, tuple(item.key for item in items)))
    diffs = tuple(ResourceDiff(item.key, "", NEW, None, None) for item in items)
    mappings = tuple(LabelMappingDiff(NEW, item.key, "", RED, "01") for item in items)
    await service.store_plan(stored(plan, content_of(items, diffs, mappings)))

    parts = await service.parts(NAME, *ALL)

    assert max(part.ByteSize() for part in parts) < MAX_PART_BYTES
    found = sorts(parts)
    assert [sort for sort, before in zip(found, [None, *found], strict=False) if sort != before] == [
        "header",
        "remarks",
        "steps",
        "diffs",
        "summary_json",
        "record",
    ]
    assert all(found.count(sort) > 1 for sort in ("remarks", "steps", "diffs", "summary_json"))
    assert [step.number for part in parts for step in part.steps.steps] == list(range(count))
    assert [text for part in parts for text in part.remarks.warnings] == list(remarks.warnings)
    assert [text for part in parts for text in part.remarks.missing_env_refs] == list(remarks.missing_env_refs)
    assert len(mappings_of(parts)) == len(diffs_of(parts)) == count
    assert len(json.loads(summary_of(parts))["buckets"]) == count
    assert [entry.key.name for part in parts for entry in part.record.entries] == [item.key.name for item in items]
    assert [key.name for part in parts for key in part.record.removed] == [item.key.name for item in items]


async def test_a_page_of_plans_is_no_larger_than_1_mib(service: Client) -> None:
    sources = ("x" * 1000,) * 400
    for number in range(3):
        header = header_to_pb(a_plan(sources=sources), f"plans/{number}")
        await service.store_plan(journal_pb2.NewPlan(header=header))

    first = await service.plans(object_pb2.Target())
    second = await service.plans(page_token=first.next_page_token)

    assert [len(page.plans) for page in (first, second)] == [2, 1]
    assert first.ByteSize() < MAX_PART_BYTES
