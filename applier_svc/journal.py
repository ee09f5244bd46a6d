"""Writes what one operation intends and what comes of it: into the store first, then it is known, then it is told."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.failpoints import reach
from applier_svc.feed import Feed, Happening
from applier_svc.ids import Ids
from applier_svc.lease import Lease
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from applier_svc.progress import Progress
from services.core.model import Plan

_INTENTS = {Direction.DO: journal_pb2.STEP_STATE_INTENT, Direction.UNDO: journal_pb2.STEP_STATE_UNDO_INTENT}
_ENDS = {
    Direction.DO: (journal_pb2.STEP_STATE_DONE, journal_pb2.STEP_STATE_FAILED, journal_pb2.STEP_STATE_UNKNOWN),
    Direction.UNDO: (
        journal_pb2.STEP_STATE_UNDONE,
        journal_pb2.STEP_STATE_UNDO_FAILED,
        journal_pb2.STEP_STATE_UNDO_UNKNOWN,
    ),
}
"""How a step, or its undo, is noted that took effect, that had none, of which nobody knows."""


class Journal:
    """
    The journal of one operation.

    Every method raises what the store answers when it cannot write: nothing is known or told then.

    Attributes:
        progress: What is written.
    """

    def __init__(self, lease: Lease, feed: Feed, progress: Progress) -> None:
        self.progress = progress
        self._lease = lease
        self._feed = feed
        # Writes are made one after another, so that events get into the store in their order.
        self._turn = asyncio.Lock()

    async def start(self, plan: plan_pb2.Plan, is_stored: bool) -> None:
        """Store the plan, or take it if it *is_stored*, and tell that it is going to run."""
        async with self._turn:
            accepted = self._feed.stamp(operation_pb2.Accepted())
            request = journal_pb2.StartOperationRequest(accepted=accepted)
            if is_stored:
                request.stored_plan = plan.name
            else:
                request.plan = _kept_plan(plan).SerializeToString()
            await self._lease.start(request)
            # The event is going to have a copy of a large plan as well.
            del request
            reach("after_start")
            accepted.accepted.plan.CopyFrom(plan)
            await self._feed.publish(accepted)

    async def intend(
        self, targets: Mapping[int, str], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> None:
        """
        Note what is about to be sent; nothing is sent before this returns.

        Args:
            targets: Ids of the resources that steps are sent to, by step number; empty for creations.
            direction: Whether steps are carried out or taken back.
            before_ids: For creations that would have to be searched for, what is there before, by step number. What
                was noted when one was first sent counts on: that sending, too, may still take effect.
        """
        known = {**before_ids, **self.progress.before_ids}
        records = [
            journal_pb2.StepRecord(
                step=number, state=_INTENTS[direction], remote_id=remote_id, before_ids=known.get(number, ())
            )
            for number, remote_id in targets.items()
        ]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=records))
        self.progress.before_ids |= {number: known[number] for number in targets if number in known}
        self.progress.intend(targets, direction)

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Note that *steps* were sent and certainly had no effect: they are where they were before."""
        is_undo = direction is Direction.UNDO
        state = journal_pb2.STEP_STATE_DONE if is_undo else journal_pb2.STEP_STATE_PLANNED
        records = [
            self._with_known(journal_pb2.StepRecord(step=number, state=state), still_there=is_undo) for number in steps
        ]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=records))
        self.progress.retract(steps, direction)

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction, happening: Happening) -> None:
        """Note how steps ended, and tell it."""
        records = [self._record(number, outcome, direction) for number, outcome in sorted(outcomes.items())]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=records), happening)
        self.progress.end(outcomes, direction)

    async def decide(
        self, records: Sequence[journal_pb2.StepRecord], happening: Happening | None, plan: Plan, ids: Ids
    ) -> None:
        """
        Note what somebody decided for steps, and tell it.

        Args:
            records: All that is known of the steps from now on.
            happening: What is told; None: nothing.
            plan: The plan.
            ids: Ids that earlier steps made; learns from the records.
        """
        known = [self._with_known(record, still_there=False) for record in records]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=known), happening)
        for record in known:
            self.progress.learn(record, plan.steps[record.step], ids)

    async def tell(self, happening: Happening) -> None:
        """Tell something that changes nothing."""
        await self._write(journal_pb2.AdvanceOperationRequest(), happening)

    async def seal(self) -> None:
        """Pass the point of no return."""
        await self._write(journal_pb2.AdvanceOperationRequest(seal=True))
        self.progress.sealed = True
        reach("after_seal")

    async def turn_back(self, cause: str, started: operation_pb2.UndoStarted) -> None:
        """From now on what was done is taken back."""
        await self._write(journal_pb2.AdvanceOperationRequest(roll_back=True, cause=cause), started)
        self.progress.turned_back = cause
        reach("after_turn_back")

    async def finish(
        self,
        outcome: journal_pb2.Record | journal_pb2.Remove | None,
        finished: operation_pb2.Finished,
        blocked: Sequence[operation_pb2.BlockedStep] = (),
    ) -> None:
        """End the operation, *blocked* or leaving *outcome* (None: the record as it is), and tell it."""
        reach("before_finish")
        async with self._turn:
            event = self._feed.stamp(finished)
            await self._lease.finish(outcome, finished.state, _kept_end(event), blocked=blocked)
            reach("after_finish")
            await self._feed.publish(event)

    def _record(self, number: int, outcome: Outcome, direction: Direction) -> journal_pb2.StepRecord:
        record = journal_pb2.StepRecord(step=number)
        done, failed, unknown = _ENDS[direction]
        match outcome:
            case Done(remote_id):
                record.state, record.remote_id = done, remote_id
            case Failed(message, reason):
                record.state, record.message, record.reason = failed, message, reason
            case Unknown(message):
                record.state, record.message = unknown, message
            case Skipped(message):
                record.state, record.message = journal_pb2.STEP_STATE_SKIPPED, message
        return self._with_known(record, still_there=direction is Direction.UNDO and not isinstance(outcome, Done))

    def _with_known(self, record: journal_pb2.StepRecord, still_there: bool) -> journal_pb2.StepRecord:
        """*record* with what else is known of its step: each record replaces the one before it."""
        before = self.progress.done.get(record.step)
        if still_there and isinstance(before, Done):
            # What was not taken back is there under the id that it had.
            record.remote_id = before.remote_id
        record.before_ids.extend(self.progress.before_ids.get(record.step, ()))
        return record

    async def _write(self, request: journal_pb2.AdvanceOperationRequest, happening: Happening | None = None) -> None:
        async with self._turn:
            event = self._feed.stamp(happening) if happening else None
            if event:
                request.events.append(event)
            await self._lease.advance(request)
            if event:
                await self._feed.publish(event)


def _kept_plan(plan: plan_pb2.Plan) -> plan_pb2.Plan:
    """What the store keeps of a plan: of one with nothing to do, not what is there already (operation.proto)."""
    if not plan.no_change:
        return plan
    shown = ("resource_diffs", "label_mapping_diffs", "summary_json")
    return plan_pb2.Plan(**{field.name: value for field, value in plan.ListFields() if field.name not in shown})


def _kept_end(event: operation_pb2.OperationEvent) -> operation_pb2.OperationEvent:
    """What the store keeps of the last event, likewise."""
    if not event.finished.no_change:
        return event
    told = {field.name: value for field, value in event.finished.ListFields() if field.name != "summary_json"}
    finished = operation_pb2.Finished(**told)
    return operation_pb2.OperationEvent(operation=event.operation, seq=event.seq, time=event.time, finished=finished)
