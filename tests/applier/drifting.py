"""Drift of a stack, as a client sees it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pkger.model.v1 import drift_pb2, object_pb2
from pkger.planner.v1 import planner_pb2
from pkger.planner.v1.planner_pb2_grpc import PlannerServiceStub
from pkger.stack.v1 import stack_pb2
from pkger.stack.v1.stack_pb2_grpc import StackServiceStub

from tests.applier.world import Case
from tests.cluster import Cluster

Key = tuple[str, str]
"""Kind and metadata.name."""

Field = tuple[str, str, Any, Any, Any]
"""Path, class, and the three sides as JSON values: package, applied, live; ``ABSENT`` where nothing is."""

ABSENT = "(absent)"


@dataclass(frozen=True)
class Drift:
    """
    The result of one drift detection.

    Attributes:
        summary: Its first message.
        reports: One for each resource, in order.
    """

    summary: planner_pb2.DriftSummary
    reports: Sequence[planner_pb2.DriftReport]

    @property
    def differences(self) -> dict[Key, Any]:
        """Status and different fields of each resource that is not in sync, by key, worst first."""
        return {
            _key(each): (_word(drift_pb2.DriftStatus, each.status), *map(_field, each.fields))
            for each in self.reports
            if each.status != drift_pb2.DRIFT_STATUS_IN_SYNC or each.fields
        }

    @property
    def statuses(self) -> dict[Key, str]:
        """The status of each resource that is not in sync, by key, worst first."""
        return {key: differences[0] for key, differences in self.differences.items() if differences[0] != "in_sync"}

    def of(self, kind: str, name: str) -> planner_pb2.DriftReport:
        """The report on one resource."""
        [found] = [each for each in self.reports if _key(each) == (kind, name)]
        return found


async def drift(case: Case, *keys: Key, services: Cluster | None = None) -> Drift:
    """Detect the drift of the stack of *case*, or of the resources that *keys* name."""
    return await drift_of(services or case.services, case.stack, case.org, *keys)


async def drift_of(services: Cluster, stack: str, org: str = "", *keys: Key) -> Drift:
    """Detect the drift of a stack, or of its resources that *keys* name."""
    peer = services.peers["planner"]
    request = planner_pb2.DetectDriftRequest(
        stack=object_pb2.StackRef(target=object_pb2.Target(org=org), name=stack),
        keys=[object_pb2.ObjectKey(kind=kind, name=name) for kind, name in keys],
    )
    messages = [answer async for answer in peer.stream(PlannerServiceStub(peer.channel).DetectDrift, request)]
    assert all(message.ByteSize() <= 1024 * 1024 for message in messages)
    first, *others = messages
    assert first.WhichOneof("answer") == "summary"
    assert all(each.WhichOneof("answer") == "reports" for each in others)
    reports = [report for each in others for report in each.reports.reports]
    assert [each.status for each in reports] == sorted(each.status for each in reports)
    return Drift(first.summary, reports)


async def last_detection(case: Case) -> drift_pb2.DriftCheck | None:
    """The last drift detection that is stored for the stack."""
    peer = case.services.peers["stack"]
    request = stack_pb2.GetStackRequest(
        stack=object_pb2.StackRef(target=object_pb2.Target(org=case.org), name=case.stack)
    )
    stack = (await peer.call(StackServiceStub(peer.channel).GetStack, request)).stack
    return stack.last_drift_check if stack.HasField("last_drift_check") else None


def counts(look: drift_pb2.DriftCheck | planner_pb2.DriftSummary | None) -> Mapping[str, int]:
    """The counts that are not zero."""
    assert look
    return {field.name: number for field, number in look.counts.ListFields()}


def changed(path: str, before: Any, now: Any) -> Field:
    """A field that was changed on the platform."""
    return path, "drifted", before, before, now


def detached(label: str) -> Field:
    """A label that was detached on the platform."""
    return changed(f"/associations/{label}", True, ABSENT)


def _key(report: planner_pb2.DriftReport) -> Key:
    return report.key.kind, report.key.name


def _field(field: drift_pb2.DriftField) -> Field:
    sides = (field.package_json, field.applied_json, field.live_json)
    values = [json.loads(side) if side else ABSENT for side in sides]
    return field.path, _word(drift_pb2.DriftClass, field.field_class), values[0], values[1], values[2]


def _word(enum: Any, number: int) -> str:
    name: str = enum.Name(number)
    return name.removeprefix("DRIFT_STATUS_").removeprefix("DRIFT_CLASS_").lower()
