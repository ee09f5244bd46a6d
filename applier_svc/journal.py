"""What one operation intended and what came of it: in the store first, then here, then told to whoever follows."""

import asyncio
from collections.abc import Mapping

from pkger.model.v1 import operation_pb2, plan_pb2
from pkger.stack.v1 import journal_pb2

from applier_svc.failpoints import reach
from applier_svc.feed import Feed, Happening
from applier_svc.ids import Ids
from applier_svc.lease import Lease
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Skipped, Unknown
from applier_svc.undo import inverse
from services.core.model import Plan, Step

_INTENTS = {Direction.DO: journal_pb2.STEP_STATE_INTENT, Direction.UNDO: journal_pb2.STEP_STATE_UNDO_INTENT}
_STATES = {
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

    Attributes:
        done: How each step ended, by its number.
        undone: How the undo of each step ended, by its number.
        open: The steps with an intent and no outcome yet.
        sealed: Whether it went past the point of no return: what was done stays, whatever fails (engine.md 3).
        turned_back: Why the operation takes back what it did; empty while it goes forward.
    """

    def __init__(self, lease: Lease, feed: Feed) -> None:
        self.done: dict[int, Outcome] = {}
        self.undone: dict[int, Outcome] = {}
        self.open: dict[int, Direction] = {}
        self.sealed = False
        self.turned_back = ""
        self._lease = lease
        self._feed = feed
        # Writes are made one after another, so that events get into the store in their order.
        self._turn = asyncio.Lock()

    async def start(self, plan: plan_pb2.Plan) -> None:
        """Store the plan, and tell that it is going to run."""
        async with self._turn:
            accepted = self._feed.stamp(operation_pb2.Accepted())
            await self._lease.start(plan.SerializeToString(), accepted)
            reach("after_start")
            accepted.accepted.plan.CopyFrom(plan)
            await self._feed.publish(accepted)

    async def intend(self, targets: Mapping[int, str], direction: Direction) -> None:
        """
        Note what is about to be sent; nothing is sent before this returns.

        Args:
            targets: Ids of the resources that steps are sent to, by step number; empty for creations.
            direction: Whether steps are carried out or taken back.
        """
        records = [
            journal_pb2.StepRecord(step=number, state=_INTENTS[direction], remote_id=remote_id)
            for number, remote_id in targets.items()
        ]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=records))
        self.open |= dict.fromkeys(targets, direction)

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction, happening: Happening) -> None:
        """Note how steps ended, and tell it."""
        records = [self._record(number, outcome, direction) for number, outcome in sorted(outcomes.items())]
        await self._write(journal_pb2.AdvanceOperationRequest(steps=records), happening)
        ended = self.done if direction is Direction.DO else self.undone
        ended |= outcomes
        for number in outcomes:
            self.open.pop(number, None)

    async def tell(self, happening: Happening) -> None:
        """Tell something that changes nothing."""
        await self._write(journal_pb2.AdvanceOperationRequest(), happening)

    async def seal(self) -> None:
        """Pass the point of no return."""
        await self._write(journal_pb2.AdvanceOperationRequest(seal=True))
        self.sealed = True
        reach("after_seal")

    async def turn_back(self, cause: str, started: operation_pb2.UndoStarted) -> None:
        """From now on what was done is taken back."""
        await self._write(journal_pb2.AdvanceOperationRequest(roll_back=True, cause=cause), started)
        self.turned_back = cause
        reach("after_turn_back")

    async def finish(
        self,
        outcome: journal_pb2.Record | journal_pb2.Remove | None,
        finished: operation_pb2.Finished,
    ) -> None:
        """End the operation, and tell it."""
        reach("before_finish")
        async with self._turn:
            event = self._feed.stamp(finished)
            await self._lease.finish(outcome, finished.state, event)
            reach("after_finish")
            await self._feed.publish(event)

    def took_effect(self, step: Step) -> bool:
        """Whether *step* was certainly carried out."""
        return isinstance(self.done.get(step.number), Done)

    def was_undone(self, step: Step) -> bool:
        """Whether *step* was certainly taken back."""
        return isinstance(self.undone.get(step.number), Done)

    def may_have_happened(self, step: Step, direction: Direction) -> bool:
        """Whether *step* was sent before, if only by an applier that is gone, and nobody knows what came of it."""
        ended = self.done if direction is Direction.DO else self.undone
        return self.open.get(step.number) is direction or isinstance(ended.get(step.number), Unknown)

    def load(self, claimed: journal_pb2.ClaimOperationResponse, plan: Plan, ids: Ids) -> None:
        """
        Learn what an applier before this one wrote down.

        Steps whose undo failed, or of which nobody knows, count as not taken back: the undo is tried again.
        """
        self.sealed = claimed.sealed
        is_back = claimed.operation.state in (
            operation_pb2.OPERATION_STATE_ROLLING_BACK,
            operation_pb2.OPERATION_STATE_BLOCKED,
        )
        if is_back and not self.sealed:
            self.turned_back = claimed.operation.cause or "the operation was blocked"
        for record in claimed.steps:
            self._load_step(record, plan.steps[record.step], ids)

    def _load_step(self, record: journal_pb2.StepRecord, step: Step, ids: Ids) -> None:
        match record.state:
            case journal_pb2.STEP_STATE_INTENT:
                self.open[step.number] = Direction.DO
            case journal_pb2.STEP_STATE_FAILED:
                self.done[step.number] = Failed(record.message, record.reason)
            case journal_pb2.STEP_STATE_UNKNOWN:
                self.done[step.number] = Unknown(record.message)
            case journal_pb2.STEP_STATE_UNDO_INTENT | journal_pb2.STEP_STATE_UNDO_UNKNOWN:
                self.done[step.number] = Done(record.remote_id)
                self.open[step.number] = Direction.UNDO
                ids.note(step, record.remote_id)
            case journal_pb2.STEP_STATE_UNDONE:
                self.done[step.number] = self.undone[step.number] = Done(record.remote_id)
                ids.note(step, record.remote_id)
                ids.note(inverse(step), record.remote_id)
            case journal_pb2.STEP_STATE_DONE | journal_pb2.STEP_STATE_UNDO_FAILED:
                self.done[step.number] = Done(record.remote_id)
                ids.note(step, record.remote_id)
            case _:
                # Planned, or skipped by an applier that was stopped: it was not sent.
                pass

    async def _write(self, request: journal_pb2.AdvanceOperationRequest, happening: Happening | None = None) -> None:
        async with self._turn:
            event = self._feed.stamp(happening) if happening else None
            if event:
                request.events.append(event)
            await self._lease.advance(request)
            if event:
                await self._feed.publish(event)

    def _record(self, number: int, outcome: Outcome, direction: Direction) -> journal_pb2.StepRecord:
        record = journal_pb2.StepRecord(step=number)
        done, failed, unknown = _STATES[direction]
        match outcome:
            case Done(remote_id):
                record.state, record.remote_id = done, remote_id
            case Failed(message, reason):
                record.state, record.message, record.reason = failed, message, reason
            case Unknown(message):
                record.state, record.message = unknown, message
            case Skipped(message):
                record.state, record.message = journal_pb2.STEP_STATE_SKIPPED, message
        if direction is Direction.UNDO and not isinstance(outcome, Done):
            # What could not be taken back is still there, under the id that it had.
            before = self.done.get(number)
            record.remote_id = before.remote_id if isinstance(before, Done) else ""
        return record
