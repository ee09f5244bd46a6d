"""Writes what one operation intends and what comes of it: stored first, then known, then published."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from applier_svc.failpoints import reach
from applier_svc.operation.events import Event, Feed
from applier_svc.operation.lease import Lease
from services.engine.conclusion import Remove, Write
from services.engine.decisions import BlockedStep
from services.engine.operation import Direction
from services.engine.outcome import Done, GivenUp, Outcome, Outcomes
from services.engine.progress import Progress
from services.engine.step_life import StepRecord, StepState
from services.rpc.convert.operations import outcomes_to_pb, step_record_fields, steps_sent_to_pb


class Journal:
    """
    The journal of one operation.

    Every method raises what the store answers when it cannot write: nothing is known or published then.

    Attributes:
        progress: What is written.
    """

    def __init__(self, lease: Lease, feed: Feed, progress: Progress) -> None:
        self.progress = progress
        self._lease = lease
        self._feed = feed
        # Writes are made one after another, so that events get into the store in their order.
        self._turn = asyncio.Lock()
        self._waiting: list[Event] = []

    async def start(self, header: plan_pb2.Plan, new_plan: journal_pb2.NewPlan | None) -> None:
        """Store the plan with *header*, or take it when it is stored (None), and publish that it is going to run."""
        async with self._turn:
            event = operation_pb2.Accepted(plan=header.name, digest=header.digest, counts=header.counts)
            [accepted] = self._feed.stamp(event)
            request = journal_pb2.StartOperationRequest(accepted=accepted)
            if new_plan:
                request.plan.CopyFrom(new_plan)
            else:
                request.stored_plan = header.name
            await self._lease.start(request)
            reach("after_start")
            await self._feed.publish(accepted)

    async def intend(
        self, steps: Sequence[int], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> None:
        """
        Note what is about to be sent, and publish it; nothing is sent before this returns.

        Args:
            steps: Numbers of the steps that are carried out or taken back.
            direction: Which of the two.
            before_ids: For creations that would have to be searched for, what is there before, by step number.
        """
        records = [self.progress.intent(step, direction, before_ids.get(step, ())) for step in steps]
        unsaid = [record for record in records if record.step in before_ids]
        await self._fold(records, unsaid, steps_sent_to_pb(steps, direction))

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Note that *steps* were sent and certainly had no effect: they are where they were before."""
        records = [self.progress.retracted(step, direction) for step in steps]
        await self._fold(records, records)

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        """Note how steps ended, and publish it."""
        records = [self.progress.ended(step, outcome, direction) for step, outcome in sorted(outcomes.items())]
        # What the platform made of a write is in no event.
        unsaid = [record for record in records if record.observed]
        await self._fold(records, unsaid, outcomes_to_pb(outcomes, direction), outcomes)

    async def decide(self, records: Sequence[StepRecord], direction: Direction) -> None:
        """Note what somebody decided for steps, or for their inverses, and publish what ended with that."""
        ended: Outcomes = {}
        for record in records:
            if record.state in (StepState.DONE, StepState.KEPT, StepState.UNDONE) and _ends(record, direction):
                ended[record.step] = Done(record.resource_id)
            elif record.message:
                ended[record.step] = GivenUp(record.message)
        await self._fold(records, records, outcomes_to_pb(ended, direction))

    async def start_stage(self, index: int, name: str, step_count: int) -> None:
        """Publish, with what is noted next, that a stage is about to run."""
        async with self._turn:
            self._waiting.append(operation_pb2.StageStarted(stage=index, name=name, step_count=step_count))

    async def publish(self, *events: Event) -> None:
        """Publish something that changes nothing."""
        await self._write(journal_pb2.AdvanceOperationRequest(), events)

    async def seal(self) -> None:
        """Pass the point of no return."""
        await self._write(journal_pb2.AdvanceOperationRequest(seal=True))
        self.progress.sealed = True
        reach("after_seal")

    async def turn_back(self, cause: str, step_count: int) -> None:
        """From now on what was done is taken back: *step_count* steps."""
        started = operation_pb2.RollbackStarted(cause=cause, step_count=step_count)
        await self._write(journal_pb2.AdvanceOperationRequest(rollback=True, cause=cause), [started])
        self.progress.turned_back = cause
        self.progress.is_undoing = True
        reach("after_turn_back")

    async def finish(
        self,
        change: Write | Remove | None,
        finished: operation_pb2.Finished,
        blocked: Sequence[BlockedStep] = (),
    ) -> None:
        """End the operation, *blocked* or with a *change* of the record (None: it stays as it is), and publish it."""
        reach("before_finish")
        if self._waiting:
            await self.publish()
        async with self._turn:
            [event] = self._feed.stamp(finished)
            generation = await self._lease.finish(change, finished.state, event, blocked=blocked)
            reach("after_finish")
            event.finished.generation = generation if finished.stack_id else 0
            await self._feed.publish(event)

    async def _fold(
        self,
        records: Sequence[StepRecord],
        unsaid: Iterable[StepRecord],
        events: Sequence[Event] = (),
        outcomes: Mapping[int, Outcome] | None = None,
    ) -> None:
        """Know *records* once *events* are stored, beside those of them that no event says."""
        self.progress.check(records)
        request = journal_pb2.AdvanceOperationRequest(steps=map(step_record_fields, unsaid))
        await self._write(request, events, records)
        self.progress.fold(records, outcomes)

    async def _write(
        self,
        request: journal_pb2.AdvanceOperationRequest,
        events: Sequence[Event] = (),
        records: Sequence[StepRecord] = (),
    ) -> None:
        async with self._turn:
            stamped = self._feed.stamp(*self._waiting, *events)
            request.events.extend(stamped)
            request.done_count = self.progress.done_count(records)
            await self._lease.advance(request)
            self._waiting.clear()
            await self._feed.publish(*stamped)


def _ends(record: StepRecord, direction: Direction) -> bool:
    """Whether a decided step, or its inverse, counts as done; a step whose inverse is sent again was so before."""
    return direction is Direction.DO or record.state is StepState.UNDONE
