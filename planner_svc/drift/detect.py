"""Detects drift: from a request to one report for each resource, as messages."""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pkger.model.v1 import drift_pb2, object_pb2
from pkger.planner.v1 import planner_pb2
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from planner_svc.drift.inputs import DriftReader
from planner_svc.drift.report import DriftInput, ResourceDrift, reports_of
from planner_svc.inputs import PlanInputs
from planner_svc.matching.match import ResourceHolder
from services.core.drift import DriftCounts, drift_counts
from services.core.errors import RequestInvalid, StackMoved
from services.core.masking import masked
from services.core.model import InventoryEntry, Key, ResourceKey, StackRecord
from services.core.text_lists import listed
from services.kinds.kind_words import meant_kind
from services.kinds.registry import FAMILY_NAMES, family_of
from services.rpc.convert.drift import CLASSES, ORIGINS, STATUSES, counts_fields
from services.rpc.convert.objects import key_fields, target_to_pb
from services.rpc.parts import parts
from services.rpc.stack_records import RECORD_ATTEMPTS

_NAMED = 5
"""How many unknown keys an error lists at most."""


@dataclass(frozen=True, slots=True)
class Detected:
    """
    The result of a drift detection.

    Attributes:
        facts: The facts that were compared.
        reports: The drift of each resource, worst first.
        owners: The owners of resources that have the name of a missing one; an unowned resource has no entry.
    """

    facts: DriftInput
    reports: Sequence[ResourceDrift]
    owners: dict[ResourceKey, ResourceHolder]

    @property
    def counts(self) -> DriftCounts:
        """The number of resources by status; a resource whose drift is ignored counts as in sync."""
        return drift_counts(report.counted for report in self.reports)

    def messages(self, *, is_stored: bool) -> Iterator[planner_pb2.DetectDriftResponse]:
        """The response to the caller; *is_stored*: whether the result is stored as the last detection of the stack."""
        stack = self.facts.stack
        summary = planner_pb2.DriftSummary(
            stack_id=stack.id,
            stack_name=stack.name,
            target=target_to_pb(stack.target),
            generation=stack.generation,
            revision=stack.revision,
            counts=counts_fields(self.counts),
            without_baseline_count=sum(report.lacks_baseline for report in self.reports),
            is_stored=is_stored,
        )
        yield planner_pb2.DetectDriftResponse(summary=summary)
        for part in parts(map(self._report, self.reports), planner_pb2.DriftReport.ByteSize):
            yield planner_pb2.DetectDriftResponse(reports=planner_pb2.DriftReports(reports=part))

    def _report(self, report: ResourceDrift) -> planner_pb2.DriftReport:
        entry = report.entry
        message = planner_pb2.DriftReport(
            key=key_fields(entry.key),
            resource_id=entry.resource_id,
            origin=ORIGINS.number(entry.origin),
            status=STATUSES.number(report.status),
            problem=report.problem,
            lacks_baseline=report.lacks_baseline,
            display_name=masked(report.display_name),
            is_ignored=report.is_ignored,
        )
        for field in report.fields:
            message.fields.append(
                drift_pb2.DriftField(
                    path=field.path,
                    field_class=CLASSES.number(field.field_class),
                    package_json=field.package,
                    applied_json=field.applied,
                    live_json=field.live,
                )
            )
        if report.same_name:
            kind, resource_id = report.same_name
            owner = self.owners.get(report.same_name)
            message.same_name.resource.CopyFrom(object_pb2.ResourceId(kind=kind, id=resource_id))
            message.same_name.stack_id = owner.stack_id if owner else ""
            message.same_name.stack_name = owner.stack_name if owner else ""
        return message


async def detect(request: planner_pb2.DetectDriftRequest, drift: DriftReader, reader: PlanInputs) -> Detected:
    """
    Compare the resources that *request* asks for.

    Raises:
        PkgerError: They cannot be compared; planner.proto lists the reasons.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(StackMoved), stop=stop_after_attempt(RECORD_ATTEMPTS), reraise=True
    )
    return await retrying(_detect_once, request, drift, reader)


async def _detect_once(request: planner_pb2.DetectDriftRequest, drift: DriftReader, reader: PlanInputs) -> Detected:
    stack = await drift.record(request.stack)
    entries = selected([Key(key.kind, key.name) for key in request.keys], stack)
    facts = await drift.facts(stack, entries)
    prepared = await drift.prepared(facts)
    # In a thread, so that other calls are answered while a large stack is compared.
    reports = await asyncio.to_thread(reports_of, facts, prepared)
    named = {report.same_name for report in reports if report.same_name}
    holders = await reader.holders(stack.target, sorted(named))
    owners = {resource: each.owner for resource, each in holders.items() if each.owner}
    return Detected(facts, reports, owners)


def selected(keys: Collection[Key], stack: StackRecord) -> Sequence[InventoryEntry]:
    """
    The entries that *keys* name: a kind without a name stands for all of the kind, a family for its kinds.

    Raises:
        RequestInvalid: Lists the keys that name no entry of the stack.
    """
    if not keys:
        return stack.resources
    names = {name for entry in stack.resources for name in _names_of(entry.key)}
    if unknown := [_called(key) for key in dict.fromkeys(keys) if key not in names]:
        raise RequestInvalid(
            "keys",
            f"stack {stack.name or stack.id!r} has nothing that is called {listed(unknown, _NAMED)}"
            + (meant_kind(unknown[0].partition(":")[0]) if len(unknown) == 1 else ""),
        )
    requested_keys = {*keys}
    return [entry for entry in stack.resources if not requested_keys.isdisjoint(_names_of(entry.key))]


def _names_of(key: Key) -> tuple[Key, ...]:
    """The keys by which a caller may name *key*."""
    words = (key.kind, *(word for word, family in FAMILY_NAMES.items() if family == family_of(key.kind)))
    return tuple(Key(word, name) for word in words for name in ("", key.name))


def _called(key: Key) -> str:
    return f"{key.kind}:{key.name}" if key.name else key.kind
