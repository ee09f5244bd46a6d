"""StackService.GetPlan and JournalService.ReadPlan: the parts of a stored plan."""

from dataclasses import replace
from typing import Any

import pytest
from pkger.journal.v1 import journal_pb2
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

from services.core.errors import PlanNotFound, RequestInvalid
from services.core.model import (
    DiffStatus,
    InventoryEntry,
    Key,
    LabelMappingDiff,
    Origin,
    Plan,
    PlanDiffs,
    PlanRemarks,
    RecordChanges,
    ResourceDiff,
    Step,
    Target,
    Verb,
)
from services.kinds.format.canonical import spec_of
from services.rpc.convert.plans import header_to_pb, work_from_pb
from services.rpc.parts import MAX_PART_BYTES
from services.rpc.plan_parts import (
    REMARKS,
    diffs_parts,
    record_parts,
    remarks_parts,
    shown_part,
    steps_parts,
    stored_part,
    summary_parts,
)
from tests.stack.service import Client

ALL = (PLAN_VIEW_STEPS, PLAN_VIEW_DIFFS, PLAN_VIEW_SUMMARY, PLAN_VIEW_RECORD)
NAME = "plan-1"

RED, MADE, LEFT = Key("Label", "red"), Key("Bucket", "made"), Key("Bucket", "left")
SPEC, OLD = spec_of({"name": "made"}), spec_of({"name": "left", "description": "http://user:password@host"})
STEPS = (
    Step(0, 0, Verb.CREATE, MADE, new_spec=SPEC),
    Step(1, 0, Verb.ATTACH, MADE, "", RED, "01"),
    Step(2, 1, Verb.DELETE, LEFT, "0b", old_spec=OLD),
)
DIFFS = (
    ResourceDiff(LEFT, "0b", DiffStatus.REMOVE, OLD, None),
    ResourceDiff(MADE, "", DiffStatus.NEW, None, SPEC, create_step=0),
)
MAPPINGS = (LabelMappingDiff(DiffStatus.NEW, MADE, "", RED, "01"),)
SUMMARY = '{"buckets":[]}'
SHOWN_REMARKS = PlanRemarks(("one", "two"), ("two",), ("lost",), ("look",))
RECORD = RecordChanges((InventoryEntry(MADE, "", Origin.CREATED, (RED,)),), (LEFT,))


def a_plan(**changes: Any) -> Plan:
    plan = Plan(
        target=Target(),
        stack_id="",
        base_generation=0,
        stages=("one", "two"),
        steps=STEPS,
        record=RECORD,
        no_change=False,
        remarks=SHOWN_REMARKS,
        stack_name="prod",
    )
    return replace(plan, **changes)


def stored(
    plan: Plan,
    diffs: tuple[ResourceDiff, ...] = DIFFS,
    mappings: tuple[LabelMappingDiff, ...] = MAPPINGS,
    summary: str = SUMMARY,
) -> journal_pb2.NewPlan:
    """A plan as the planner stores it."""
    parts = {
        REMARKS: remarks_parts(plan.remarks),
        PLAN_VIEW_STEPS: steps_parts(plan.steps),
        PLAN_VIEW_DIFFS: diffs_parts(PlanDiffs(diffs, mappings)),
        PLAN_VIEW_SUMMARY: summary_parts(summary),
        PLAN_VIEW_RECORD: record_parts(plan),
    }
    return journal_pb2.NewPlan(
        header=header_to_pb(plan, NAME),
        parts=[stored_part(view, part, shown_part(part)) for view, made in parts.items() for part in made],
    )


def sorts(parts: list[PlanPart]) -> list[str | None]:
    return [part.WhichOneof("part") for part in parts]


async def test_a_plan_comes_in_parts_in_a_fixed_order(service: Client) -> None:
    await service.store_plan(stored(a_plan()))

    parts = await service.parts(NAME, *reversed(ALL), PLAN_VIEW_STEPS)

    assert sorts(parts) == ["header", "remarks", "steps", "diffs", "diffs", "summary_json", "record", "record"]
    header, remarks, steps, diffs, mappings, summary, entries, removed = parts
    assert (header.header.counts.deletes, header.header.state) == (1, plan_pb2.PLAN_STATE_PENDING)
    assert (list(remarks.remarks.warnings), list(remarks.remarks.missing_secrets)) == (["look"], ["lost"])
    assert [step.number for step in steps.steps.steps] == [0, 1, 2]
    assert [diff.key.name for diff in diffs.diffs.resources] == ["left", "made"]
    assert [mapping.label.name for mapping in mappings.diffs.label_mappings] == ["red"]
    assert [entry.key.name for entry in entries.record.entries] == ["made"]
    assert (summary.summary_json, removed.record.removed[0].name) == (SUMMARY, "left")


async def test_addresses_are_masked_for_readers_but_not_for_appliers(service: Client) -> None:
    plan = stored(a_plan())
    assert [bool(part.masked_part) for part in plan.parts] == [part.view == PLAN_VIEW_STEPS for part in plan.parts]
    await service.store_plan(plan)

    parts = await service.parts(NAME, PLAN_VIEW_STEPS, PLAN_VIEW_DIFFS)
    _, body = await service.read_plan(NAME)

    shown = '{"description":"http://(hidden)@host","name":"left"}'
    assert parts[2].steps.steps[2].delete.old_spec_json == shown
    assert parts[3].diffs.resources[0].old_spec_json == shown
    read = journal_pb2.PlanBody.FromString(body)
    assert [step.delete.old_spec_json for step in read.steps.steps] == ["", "", OLD.text]


async def test_the_body_of_a_plan_is_made_of_its_parts(service: Client) -> None:
    plan = a_plan(steps=tuple(Step(number, 0, Verb.CREATE, MADE, new_spec=SPEC) for number in range(9000)))
    kept = stored(plan)
    assert [part.view for part in kept.parts].count(PLAN_VIEW_STEPS) > 1
    await service.store_plan(kept)

    header, body = await service.read_plan(NAME)

    read = work_from_pb(header, journal_pb2.PlanBody.FromString(body))
    assert (read.steps, read.record, read.remarks) == (plan.steps, plan.record, replace(plan.remarks, conflicts=()))


@pytest.mark.parametrize("view", ALL)
async def test_a_stream_has_only_the_requested_views(service: Client, view: PlanView.ValueType) -> None:
    await service.store_plan(stored(a_plan()))

    assert sorts(await service.parts(NAME)) == ["header", "remarks"]
    requested = {PLAN_VIEW_SUMMARY: "summary_json"}.get(view, PlanView.Name(view).removeprefix("PLAN_VIEW_").lower())
    assert list(dict.fromkeys(sorts(await service.parts(NAME, view)))) == ["header", "remarks", requested]


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
        await service.parts("plan-2")


@pytest.mark.parametrize("letter", ["x", "ü"])
async def test_no_part_of_a_large_plan_is_above_1_mib(service: Client, letter: str) -> None:
    count = 1200
    keys = [Key("Bucket", f"b{number:05}") for number in range(count)]
    specs = [spec_of({"name": key.name, "description": letter * 900}) for key in keys]
    steps = tuple(
        Step(n, 0, Verb.CREATE, key, new_spec=spec) for n, (key, spec) in enumerate(zip(keys, specs, strict=True))
    )
    entries = tuple(InventoryEntry(key, "", Origin.CREATED, (RED,) * 9) for key in keys)
    remarks = PlanRemarks(
        missing_env_refs=tuple(f"{letter * 90}{number:05}" for number in range(9000)),
        warnings=tuple(f"{letter * 200}{number:05}" for number in range(5000)),
    )
    plan = a_plan(steps=steps, remarks=remarks, record=RecordChanges(entries, tuple(keys)))
    diffs = tuple(ResourceDiff(key, "", DiffStatus.NEW, None, spec) for key, spec in zip(keys, specs, strict=True))
    mappings = tuple(LabelMappingDiff(DiffStatus.NEW, key, "", RED, "01") for key in keys)
    summary = f'"{letter * 3_000_000}"'
    await service.store_plan(stored(plan, diffs, mappings, summary))

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
    names = [key.name for key in keys]
    assert [diff.key.name for part in parts for diff in part.diffs.resources] == names
    assert [mapping.resource.name for part in parts for mapping in part.diffs.label_mappings] == names
    assert "".join(part.summary_json for part in parts) == summary
    assert [entry.key.name for part in parts for entry in part.record.entries] == names
    assert [key.name for part in parts for key in part.record.removed] == names


async def test_a_page_of_plans_is_no_larger_than_1_mib(service: Client) -> None:
    sources = ("x" * 1000,) * 400
    for number in range(3):
        header = header_to_pb(a_plan(sources=sources), f"plan-{number}")
        await service.store_plan(journal_pb2.NewPlan(header=header))

    first = await service.plans(object_pb2.Target())
    second = await service.plans(page_token=first.next_page_token)

    assert [len(page.plans) for page in (first, second)] == [2, 1]
    assert first.ByteSize() < MAX_PART_BYTES
