"""Plans in parts: cut for a stream, stored, and joined."""

import zlib
from collections.abc import AsyncIterable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from google.protobuf.message import Message
from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import object_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2
from pkger.stack.v1 import stack_pb2

from services.core.errors import RequestInvalid
from services.core.masking import masked_sides
from services.core.model import InventoryEntry, LabelMappingDiff, Plan, PlanDiffs, PlanRemarks, ResourceDiff, Spec, Step
from services.rpc.convert.objects import entry_fields
from services.rpc.convert.plans import diff_fields, mapping_fields, plan_record_to_pb, remarks_to_pb, step_fields
from services.rpc.parts import cut, parts, pieces, text_bytes

View: TypeAlias = plan_pb2.PlanView.ValueType

VIEWS: tuple[View, ...] = (
    plan_pb2.PLAN_VIEW_STEPS,
    plan_pb2.PLAN_VIEW_DIFFS,
    plan_pb2.PLAN_VIEW_SUMMARY,
    plan_pb2.PLAN_VIEW_RECORD,
)
"""The views of a plan, in the order of their parts in a stream."""

REMARKS: View = plan_pb2.PLAN_VIEW_UNSPECIFIED
"""The view of the stored parts with remarks, which are in every stream."""

BODY: frozenset[View] = frozenset((REMARKS, plan_pb2.PLAN_VIEW_STEPS, plan_pb2.PLAN_VIEW_RECORD))
"""The views whose parts, one after the other, are a ``PlanBody``."""

_LEVEL = 1
"""The fastest level of compression; it finds most repetitions of specs."""

_TEXTS_OF_STEPS: dict[str, tuple[str, ...]] = {
    "create": ("spec_json", "display_name"),
    "update": ("old_spec_json", "spec_json", "old_display_name", "display_name"),
    "delete": ("old_spec_json", "old_display_name"),
}
"""The fields with specs and names of each change of a step, the old ones first."""

_FRAME = 160
"""An upper estimate of the bytes of a step or a diff, without its texts."""


@dataclass(slots=True)
class JoinedPlan:
    """
    A plan that is joined from its parts.

    Attributes:
        header: The header.
        body: Remarks, steps and changes of the record.
        diffs: The diffs.
        summaries: Pieces of the summary document.
    """

    header: plan_pb2.Plan = field(default_factory=plan_pb2.Plan)
    body: journal_pb2.PlanBody = field(default_factory=journal_pb2.PlanBody)
    diffs: plan_pb2.PlanDiffs = field(default_factory=plan_pb2.PlanDiffs)
    summaries: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The summary document as JSON text; empty unless it was requested."""
        # Keeps the joined text instead of the pieces: both together would double the memory of a large plan.
        self.summaries = ["".join(self.summaries)]
        return self.summaries[0]

    @property
    def steps(self) -> Sequence[plan_pb2.Step]:
        """The steps, by number."""
        return self.body.steps.steps

    @property
    def remarks(self) -> plan_pb2.PlanRemarks:
        """The remarks."""
        return self.body.remarks

    def add(self, part: plan_pb2.PlanPart) -> None:
        """Add the next part."""
        match part.WhichOneof("part"):
            case "header":
                self.header = part.header
            case "remarks":
                self.body.remarks.MergeFrom(part.remarks)
            case "steps":
                self.body.steps.MergeFrom(part.steps)
            case "diffs":
                self.diffs.MergeFrom(part.diffs)
            case "summary_json":
                self.summaries.append(part.summary_json)
            case "record":
                self.body.record.MergeFrom(part.record)


async def joined(
    answers: AsyncIterable[planner_pb2.CreatePlanResponse | stack_pb2.GetPlanResponse],
) -> JoinedPlan | list[object_pb2.Violation]:
    """Join all parts of a plan; or return all violations of its package."""
    plan, violations = JoinedPlan(), list[object_pb2.Violation]()
    async for answer in answers:
        if isinstance(answer, planner_pb2.CreatePlanResponse) and answer.HasField("violations"):
            violations.extend(answer.violations.violations)
        else:
            plan.add(answer.part)
    return violations or plan


def shown_part(part: plan_pb2.PlanPart) -> plan_pb2.PlanPart:
    """
    A part of a plan as clients get it: addresses in its steps and diffs are masked.

    Pieces of a summary stay as they are, because an address may be cut: the whole summary is masked before it is cut.
    """
    if not any(_masked_texts(message, fields) for message, fields in _texts(part)):
        return part
    shown = plan_pb2.PlanPart()
    shown.CopyFrom(part)
    for message, fields in _texts(shown):
        for name, text in _masked_texts(message, fields).items():
            setattr(message, name, text)
    return shown


def _texts(part: plan_pb2.PlanPart) -> Iterator[tuple[Message, tuple[str, ...]]]:
    """The messages of a part that have specs, names or values, each with these fields, the old ones first."""
    for step in part.steps.steps:
        change = step.WhichOneof("change")
        if change and change in _TEXTS_OF_STEPS:
            yield getattr(step, change), _TEXTS_OF_STEPS[change]
    for diff in part.diffs.resources:
        yield diff, ("old_spec_json", "new_spec_json")
        for field_change in diff.changes:
            yield field_change, ("old_json", "new_json")


def _masked_texts(message: Message, fields: tuple[str, ...]) -> dict[str, str]:
    """The masked texts of *fields*, by field; empty if there is nothing to mask."""
    texts = tuple([getattr(message, name) for name in fields])
    masked = masked_sides(texts)
    return {} if masked == texts else dict(zip(fields, masked, strict=True))


def checked_view(view: Collection[View]) -> frozenset[View]:
    """
    The requested views.

    Raises:
        RequestInvalid: One of them is unknown.
    """
    for part in view:
        if part not in VIEWS:
            valid = ", ".join(map(plan_pb2.PlanView.Name, VIEWS))
            raise RequestInvalid("view", f"{part} is not a view of a plan; the views are {valid}")
    return frozenset(view)


def stored_part(view: View, part: plan_pb2.PlanPart, shown: plan_pb2.PlanPart) -> journal_pb2.StoredPart:
    """
    A part of a plan for the store.

    Args:
        view: Its view.
        part: The part.
        shown: The part as clients get it. Only the parts of ``BODY`` are also stored as they are, for appliers.
    """
    kept = part if view in BODY else shown
    masked = b"" if shown is kept else _compressed(shown)
    return journal_pb2.StoredPart(view=view, part=_compressed(kept), masked_part=masked)


def _compressed(part: plan_pb2.PlanPart) -> bytes:
    return zlib.compress(part.SerializeToString(), _LEVEL)


def inflated(stored: bytes) -> bytes:
    """A stored part in its wire format."""
    return zlib.decompress(stored)


def remarks_parts(remarks: PlanRemarks) -> Iterator[plan_pb2.PlanPart]:
    """Remarks in parts; none without remarks."""
    return (plan_pb2.PlanPart(remarks=part) for part in cut(remarks_to_pb(remarks)))


def steps_parts(steps: Iterable[Step]) -> Iterator[plan_pb2.PlanPart]:
    """Steps in parts."""
    for part in parts(steps, _step_bytes):
        yield plan_pb2.PlanPart(steps=plan_pb2.PlanSteps(steps=map(step_fields, part)))


def diffs_parts(diffs: PlanDiffs) -> Iterator[plan_pb2.PlanPart]:
    """Diffs in parts: of objects, then of associations."""
    for resources in parts(diffs.resources, _diff_bytes):
        yield plan_pb2.PlanPart(diffs=plan_pb2.PlanDiffs(resources=map(diff_fields, resources)))
    for mappings in parts(diffs.label_mappings, _mapping_bytes):
        yield plan_pb2.PlanPart(diffs=plan_pb2.PlanDiffs(label_mappings=map(mapping_fields, mappings)))


def summary_parts(summary: str) -> Iterator[plan_pb2.PlanPart]:
    """A summary document in parts."""
    return (plan_pb2.PlanPart(summary_json=piece) for piece in pieces(summary))


def record_parts(plan: Plan) -> Iterator[plan_pb2.PlanPart]:
    """The changes of the record by a plan, with its adoptions, in parts: first the entries."""
    for entries in parts(plan.record.entries, _entry_bytes):
        yield plan_pb2.PlanPart(record=plan_pb2.PlanRecord(entries=map(entry_fields, entries)))
    others = replace(plan, record=replace(plan.record, entries=()))
    yield from (plan_pb2.PlanPart(record=part) for part in cut(plan_record_to_pb(others)))


def _step_bytes(step: Step) -> int:
    references = len(step.references) + len(step.old_references)
    return _spec_bytes(step.old_spec) + _spec_bytes(step.new_spec) + text_bytes(step.reason) + _FRAME * (1 + references)


def _diff_bytes(diff: ResourceDiff) -> int:
    changed = sum(text_bytes(each.old) + text_bytes(each.new) + text_bytes(each.path) + 8 for each in diff.changes)
    return _spec_bytes(diff.old_spec) + _spec_bytes(diff.new_spec) + changed + _FRAME


def _entry_bytes(entry: InventoryEntry) -> int:
    labels = sum(text_bytes(label.name) + 16 for label in entry.associations)
    return text_bytes(entry.key.name) + text_bytes(entry.policy) + labels + _FRAME


def _mapping_bytes(diff: LabelMappingDiff) -> int:
    return text_bytes(diff.resource.name) + text_bytes(diff.label.name) + _FRAME


def _spec_bytes(spec: Spec | None) -> int:
    return text_bytes(spec.text) + text_bytes(spec.display_name) if spec else 0
