"""One organization with one stack under faults: its resources, its record, and what holds of both."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pkger.applier.v1 import applier_pb2
from pkger.applier.v1.applier_pb2_grpc import ApplierServiceStub
from pkger.driver.v1 import driver_pb2
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.planner.v1 import planner_pb2

import applier_svc.__main__ as applier
from applier_svc.execution.timeouts import Timeouts
from services.core.errors import StackNotFound
from services.rpc.plan_parts import JoinedPlan
from services.rpc.process import Opened
from tests.applier.faulty import FaultyDriver, faulty_platform
from tests.cluster import Cluster, Record, Shown, after_begun, cluster, place, sources

SUCCEEDED = operation_pb2.OPERATION_STATE_SUCCEEDED
ROLLED_BACK = operation_pb2.OPERATION_STATE_ROLLED_BACK
BLOCKED = operation_pb2.OPERATION_STATE_BLOCKED
OVER = (SUCCEEDED, ROLLED_BACK, BLOCKED, operation_pb2.OPERATION_STATE_FAILED)

QUICK = Timeouts(
    attempts=3,
    first_wait=0.002,
    longest_wait=0.01,
    settle=0.01,
    resolution=0.1,
    throttled=0.1,
    recovery=0.05,
    watch=0.01,
)
"""Timeouts for a platform that only a script delays."""


class Events(list[operation_pb2.OperationEvent]):
    """
    The events of an operation, with its plan.

    Attributes:
        plan: The plan that the first event names, or that the operation has; without steps when it has none.
    """

    plan: Shown


Content = list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]
"""Kind, spec, and names of labels and references of each resource, sorted; ids do not count."""


class Snapshot(NamedTuple):
    """Resources and record at one moment; the record is None if there is none."""

    resources: Sequence[object_pb2.Resource]
    record: Record | None

    @property
    def content(self) -> Content:
        names = {resource.id: json.loads(resource.spec_json)["name"] for resource in self.resources}
        return sorted(
            (
                resource.kind,
                resource.spec_json,
                tuple(sorted(names[label] for label in resource.label_ids)),
                tuple(names[reference.id] for reference in resource.references),
            )
            for resource in self.resources
        )

    @property
    def ids(self) -> set[tuple[str, str]]:
        """Kind and id of each resource on the platform."""
        return {(resource.kind, resource.id) for resource in self.resources}

    @property
    def recorded(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Kind and id of each recorded resource, by the key of its object."""
        entries = self.record.resources if self.record else ()
        return {(entry.key.kind, entry.key.name): (entry.key.kind, entry.resource_id) for entry in entries}

    @property
    def recorded_content(self) -> list[tuple[str, str, int, tuple[str, ...]]]:
        """The record without ids."""
        entries = self.record.resources if self.record else ()
        return [
            (entry.key.kind, entry.key.name, entry.origin, tuple(label.name for label in entry.associations))
            for entry in entries
        ]


@dataclass
class Case:
    """
    One stack in an organization of its own.

    Attributes:
        services: The services.
        driver: The driver of the platform.
        org: The organization.
        stack: Name of the stack; empty for operations on behalf of none.
    """

    services: Cluster
    driver: FaultyDriver
    org: str
    stack: str = "s"

    async def apply(self, *texts: str, digest: str = "", **more: Any) -> Events:
        """All events of one apply, with *more* fields of its request."""
        return await self.collected(self.events(*texts, digest=digest, **more))

    async def collected(self, stream: AsyncIterable[operation_pb2.OperationEvent]) -> Events:
        """All events of *stream*, with the plan of their operation."""
        return await self.planned(Events([event async for event in stream]))

    async def planned(self, events: Events) -> Events:
        """*events*, with the plan of their operation; without events there is none."""
        if not events:
            return events
        plan = (await self.operation(events[0].operation_id)).plan_id
        events.plan = await self.services.stored_plan(plan) if plan else Shown(JoinedPlan())
        return events

    def events(self, *texts: str, digest: str = "", **more: Any) -> AsyncIterator[operation_pb2.OperationEvent]:
        return self.services.events(*texts, stack=self.stack, org=self.org, digest=digest, **more)

    async def plan(self, *texts: str, **more: Any) -> Shown:
        """A plan that is stored, with *more* as of ``Cluster.plan``."""
        return await self.services.plan(*texts, stack=self.stack, org=self.org, store=True, **more)

    async def apply_plan(self, plan: Shown, **more: Any) -> Events:
        """All events of one apply of a stored plan, with *more* fields of its request."""
        return await self.collected(self.services.apply_plan(plan.name, plan.digest, **more))

    async def watch(self, operation: str, after_seq: int = 0) -> AsyncIterator[operation_pb2.OperationEvent]:
        """The events of an operation, as a later client receives them."""
        peer = self.services.peers["applier"]
        request = applier_pb2.WatchOperationRequest(operation_id=operation, after_seq=after_seq)
        async for event in peer.stream(ApplierServiceStub(peer.channel).WatchOperation, request):
            yield event

    async def recover(self, operation: str, **decisions: str) -> Events:
        """
        All events of the rest of a blocked operation.

        *decisions* are terms by step number behind an underscore, as in ``_3="skip"`` or ``_4="adopt:ID"``.
        """
        peer = self.services.peers["applier"]
        request = applier_pb2.RecoverOperationRequest(operation_id=operation)
        for step, way in decisions.items():
            word, _, resource_id = way.partition(":")
            decision = operation_pb2.Decision.Value(f"DECISION_{word.upper()}")
            request.decisions.add(step=int(step.removeprefix("_")), decision=decision, resource_id=resource_id)
        return await self.collected(peer.stream(ApplierServiceStub(peer.channel).RecoverOperation, request))

    async def operation(self, name: str) -> operation_pb2.Operation:
        """One operation."""
        peer = self.services.peers["applier"]
        request = applier_pb2.GetOperationRequest(operation_id=name)
        return (await peer.call(ApplierServiceStub(peer.channel).GetOperation, request)).operation

    async def uninstall(
        self, request_id: str = "", after_uninstall: plan_pb2.AfterUninstall.ValueType = plan_pb2.AFTER_UNINSTALL_DELETE
    ) -> Events:
        """All events of one uninstall; the stack goes, too, unless *then* says otherwise."""
        peer = self.services.peers["applier"]
        request = applier_pb2.UninstallStackRequest(
            stack=object_pb2.StackRef(target=self._target(), name=self.stack),
            request_id=request_id,
            after_uninstall=after_uninstall,
        )
        stream = peer.stream(ApplierServiceStub(peer.channel).UninstallStack, request)
        return await self.collected(after_begun(stream))

    def request(self, *texts: str) -> applier_pb2.ApplyRequest:
        return applier_pb2.ApplyRequest(
            **place(self._target(), self.stack),
            package=planner_pb2.PackageSources(sources=sources(texts)),
            run_options=applier_pb2.RunOptions(allow_missing=True),
        )

    async def look(self) -> Snapshot:
        record: Record | None = None
        with contextlib.suppress(StackNotFound):
            record = await self.services.record(self.stack or "s", self.org)
        return Snapshot(await self.services.resources(org=self.org), record)

    async def settled(self) -> operation_pb2.Operation:
        """The newest operation of all, once it is over or blocked."""
        return await settled(self.services)

    def _target(self) -> object_pb2.Target:
        return object_pb2.Target(org=self.org)


async def put_secrets(case: Case, values: Mapping[str, str]) -> None:
    """Write secrets as another writer would; the driver then counts from 0 again."""
    puts = [driver_pb2.PutSecret(key=key, value=value) for key, value in values.items()]
    await case.services.mutate(*(driver_pb2.Mutation(put_secret=put) for put in puts), org=case.org)
    if case.driver:
        case.driver.heal()


@dataclass
class World:
    """
    Services around a driver with scripted faults.

    Attributes:
        services: The services.
        driver: The driver.
    """

    services: Cluster
    driver: FaultyDriver
    _count: int = field(default=0)

    def case(self, stack: str = "s") -> Case:
        """A stack in an unused organization, and a driver without faults."""
        self._count += 1
        self.driver.heal()
        return Case(self.services, self.driver, f"org-{self._count}", stack)

    async def case_with(self, *texts: str) -> Case:
        """A stack that has the package *texts*."""
        case = self.case()
        if texts:
            assert end(await case.apply(*texts)).state == SUCCEEDED
        self.driver.heal()
        return case


@asynccontextmanager
async def world(
    data: Path,
    timeouts: Timeouts = QUICK,
    replaced: dict[str, Opened] | None = None,
    given: dict[str, str] | None = None,
) -> AsyncIterator[World]:
    """All services; the driver in front of the platform has scripted faults."""
    async with faulty_platform(data) as (driver, address):
        opened: dict[str, Opened] = {"applier": partial(applier.opened, timeouts=timeouts), **(replaced or {})}
        async with cluster(data, opened, {"platform": address, **(given or {})}) as services:
            yield World(services, driver)


async def settled(services: Cluster) -> operation_pb2.Operation:
    """The newest operation of all, once it is over or blocked; some applier has to run."""
    peer = services.peers["stack"]
    stub, newest = JournalServiceStub(peer.channel), journal_pb2.ListOperationsRequest(page_size=1)
    while True:
        [operation] = (await peer.call(stub.ListOperations, newest)).operations
        if operation.state in OVER:
            return operation
        # There is no event to wait for: the next applier acts when a lease expires.
        await asyncio.sleep(0.02)


def end(events: Sequence[operation_pb2.OperationEvent]) -> operation_pb2.Finished:
    """How an operation ended; checks what holds of the events of every operation."""
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert len({event.operation_id for event in events}) == 1
    kinds = [event.WhichOneof("event") for event in events]
    assert kinds[0] == "accepted"
    assert kinds[-1] == "finished"
    assert kinds.count("finished") == kinds.count("accepted") == 1
    return events[-1].finished


def lines(events: Events) -> list[Any]:
    """Events as lines of text, without ``steps_sent``, which the outcomes repeat."""
    return [_words(event, events.plan) for event in events if not event.HasField("steps_sent")]


def _words(event: operation_pb2.OperationEvent, plan: Shown) -> Any:
    match event.WhichOneof("event"):
        case "accepted":
            return f"accepted {len(plan.steps)} steps"
        case "stage_started":
            started = event.stage_started
            return f"stage {started.stage} {started.name}: {started.step_count}"
        case "steps_ended":
            return [_outcome(outcome, plan) for outcome in event.steps_ended.outcomes]
        case "rollback_started":
            return f"undo of {event.rollback_started.step_count}: {event.rollback_started.cause}"
        case "late_effects":
            return [f"late: {each.key.kind} {each.key.name}: {each.message}" for each in event.late_effects.effects]
        case "steps_undone":
            return ["undo", *(_outcome(outcome, plan) for outcome in event.steps_undone.outcomes)]
        case _:
            finished = event.finished
            state = operation_pb2.OperationState.Name(finished.state).removeprefix("OPERATION_STATE_")
            words = [state, finished.cause] + (["no change"] if finished.no_change else [])
            leftovers = [f"{finished.leftover_count} left"] if finished.leftover_count else []
            return [" ".join(filter(None, words)), _counts(finished.counts), *leftovers]


def _counts(counts: plan_pb2.StepCounts) -> str:
    return ", ".join(f"{number} {field.name}" for field, number in counts.ListFields())


def _outcome(outcome: operation_pb2.StepOutcome, plan: Shown) -> str:
    step = plan.steps[outcome.step]
    label = f" {step.label.name}" if step.label else ""
    return f"{outcome.WhichOneof('outcome')}: {step.verb.value} {step.key.kind} {step.key.name}{label}"


def leftovers(events: Events) -> list[int]:
    """Numbers of the steps that are not done though the operation succeeded, by their last outcomes."""
    last = {outcome.step: outcome for event in events for outcome in event.steps_ended.outcomes}
    return sorted(step for step, outcome in last.items() if not outcome.HasField("done"))


def in_doubt(events: Events) -> set[tuple[str, str]]:
    """Keys of the objects with a step or undo whose outcome an event reports as not done."""
    plan = events.plan
    outcomes: Iterable[operation_pb2.StepOutcome] = (
        outcome for event in events for outcome in (*event.steps_ended.outcomes, *event.steps_undone.outcomes)
    )
    found = set()
    for outcome in outcomes:
        if outcome.WhichOneof("outcome") != "done":
            step = plan.steps[outcome.step]
            found |= {(step.key.kind, step.key.name)}
            if step.label and step.label.name:
                found.add(("Label", step.label.name))
    return found


def display_names(keys: set[tuple[str, str]], events: Events) -> set[tuple[str, str]]:
    """Kind and display name of the resources that steps of the objects *keys* change."""
    return {
        (step.key.kind, spec.display_name)
        for step in events.plan.steps
        if step.key in keys
        for spec in (step.old_spec, step.new_spec)
        if spec
    }


def check(before: Snapshot, events: Events, after: Snapshot, wanted: Content) -> None:
    """
    Check what holds after every operation on a stack that owns all resources of its organization.

    Args:
        before: The state before the operation.
        events: The events of the operation.
        after: The state after it.
        wanted: The desired state.
    """
    finished = end(events)
    if finished.stack_id:
        assert after.record is not None
        assert finished.stack_id == after.record.id
        assert finished.generation == after.record.generation
    else:
        assert after.record is None
    recorded = set(after.recorded.values())
    if finished.state == ROLLED_BACK:
        assert after.content == before.content
        assert after.recorded_content == before.recorded_content
        assert recorded == after.ids
        assert (after.record is None) == (before.record is None)
        if after.recorded == before.recorded:
            assert after.record == before.record
        return
    if finished.state == SUCCEEDED and not finished.leftover_count:
        assert after.content == wanted
        assert recorded == after.ids
        return
    assert in_doubt(events), "blocked, and no event says why"
    if finished.state == BLOCKED:
        # The record waits for a decision; callers test the next apply.
        assert after.recorded == before.recorded
        return
    # Only resources that may not have been removed are still recorded.
    doubtful = in_doubt(events)
    assert {key for key, resource in after.recorded.items() if resource not in after.ids} <= doubtful
    unrecorded = {
        (resource.kind, json.loads(resource.spec_json)["name"])
        for resource in after.resources
        if (resource.kind, resource.id) not in recorded
    }
    assert unrecorded <= display_names(doubtful, events)
