"""Runs an action set to its end: makes one move after the other, with a task for each phase that runs."""

import asyncio
from contextlib import suppress

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.actions.context import RunContext, Told
from applier_svc.actions.phase_names import phase_of
from applier_svc.actions.phase_runner import PhaseRunner
from services.actions.durations import duration_text
from services.actions.folding import PhaseKey, PhaseRecord, Records, Stop
from services.actions.life import ActionSetState, PhaseState, StopReason
from services.actions.next_move import RESTORED, Await, Begin, End, Finish, Reserve, Signals, StopNow, next_move
from services.actions.signatures import Recovery

BETWEEN_LOOKS = 1.0
"""Seconds between two looks at what no event tells: the lease, the timeout, and stacks that are in use."""

BETWEEN_LOOKS_BEHIND = 5.0
"""The same of an action set behind another one of this applier that waits for the same operation."""

MOST_INTERRUPTIONS = 3
"""Interruptions of one phase after which it fails: what ends its applier does not end all of them for ever."""

_STATES = {
    ActionSetState.COMPLETE: operation_pb2.OPERATION_STATE_SUCCEEDED,
    ActionSetState.FAILED: operation_pb2.OPERATION_STATE_FAILED,
    ActionSetState.CANCELLED: operation_pb2.OPERATION_STATE_CANCELLED,
}


class Control:
    """
    What others tell a run of an action set.

    Attributes:
        is_cancelled: Whether it is to stop.
        is_draining: Whether its applier ends: no phase begins any more.
        is_released: Whether it ends now: running phases are put back.
    """

    def __init__(self) -> None:
        self.is_cancelled = False
        self.is_draining = False
        self.is_released = False
        self._changed = asyncio.Event()

    def cancel(self) -> None:
        """Stop the action set."""
        self.is_cancelled = True
        self._changed.set()

    def drain(self) -> None:
        """Begin no further phase; the run ends when those that run have ended, and another applier continues."""
        self.is_draining = True
        self._changed.set()

    def release(self) -> None:
        """Put back the phases that run, so that another applier continues."""
        self.is_draining = self.is_released = True
        self._changed.set()

    def wake(self) -> None:
        """Look again: a phase has ended."""
        self._changed.set()

    async def changes(self, seconds: float) -> None:
        """Wait until something changes, at most for *seconds*."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()


class ActionSetRunner:
    """Runs one action set from where its journal ends."""

    def __init__(self, context: RunContext, control: Control, create_time: int, is_restored: bool = False) -> None:
        """
        Args:
            context: What it works with.
            control: What others tell it.
            create_time: When the action set was created, in microseconds since 1970, by the clock of the store.
            is_restored: Whether the store was restored from a backup since another applier worked on it.
        """
        self._context = context
        self._control = control
        self._create_time = create_time
        self._is_restored = is_restored
        self._told = Told()
        self._phases = PhaseRunner(context, self._told)
        self._live: dict[PhaseKey, asyncio.Task[None]] = {}
        self._holder = action_set_pb2.Reservation()
        self._is_waiting_over = False

    async def take_over(self) -> None:
        """Record what becomes of the phases that ran when the last applier ended."""
        progress = self._context.progress
        running = [key for key, status in progress.statuses() if status.state is PhaseState.RUNNING]
        records = [self._take_over(key) for key in running]
        if self._is_restored and progress.stop is None:
            # In one write with the ends of phases: if this applier dies in between, the next one runs them again.
            records.insert(0, self._stop(Stop(StopReason.STORE_RESTORED, RESTORED)))
        await asyncio.gather(*records)

    async def _take_over(self, key: PhaseKey) -> None:
        status, function = self._context.progress.status(key), phase_of(self._context.pinned, key).function
        count = status.interruptions + 1
        if self._is_restored:
            await self._phases.interrupt(key, RESTORED)
        elif count >= MOST_INTERRUPTIONS:
            await self._phases.cancel_operation(key)
            await self._phases.interrupt(key, f"an applier ended while it ran, {count} times")
        elif self._context.recovery(key) is Recovery.ONCE and not await self._phases.look_up(key):
            await self._phases.interrupt(key, f"an applier ended while it ran, and {function} runs at most once")
        elif not self._context.progress.status(key).has_ended:
            await self._phases.run_again(key)

    async def run(self) -> bool:
        """
        Run the action set.

        Returns:
            Whether it has ended; False: this applier was told to stop, and another one continues.

        Raises:
            LeaseLost: Another applier works on it.
            PkgerError: The store does not answer.
        """
        try:
            while True:
                self._raise_failures()
                self._context.lease.check()
                if self._control.is_draining:
                    if not self._live:
                        return False
                    if self._control.is_released:
                        await self._release()
                        return False
                    await self._control.changes(BETWEEN_LOOKS)
                    continue
                match next_move(self._context.progress, self._live, self._signals()):
                    case Finish(state=state, cause=cause):
                        await self._context.journal.finish(operation_pb2.Finished(state=_STATES[state], cause=cause))
                        return True
                    case StopNow(stop=stop):
                        await self._stop(stop)
                    case End(phases=phases):
                        for key, _ in phases:
                            await self._phases.end_between_attempts(key)
                    case Begin(phases=phases):
                        for key in phases:
                            self._begin(key)
                    case Reserve():
                        await self._reserve()
                    case Await():
                        await self._control.changes(BETWEEN_LOOKS)
                self._tell()
        finally:
            self._context.holders.leave(self._holder.operation_id, self._control.wake)
            for task in self._live.values():
                task.cancel()
            await asyncio.gather(*self._live.values(), return_exceptions=True)

    def _signals(self) -> Signals:
        pinned, now = self._context.pinned, self._context.lease.store_time
        age = now - self._create_time
        holder = _in_use(self._holder, pinned.wait) if self._is_waiting_over else ""
        return Signals(
            is_cancelled=self._control.is_cancelled or self._context.lease.cancel_requested,
            is_late=pinned.timeout is not None and age >= pinned.timeout * 1000,
            holder=holder,
            is_restored=self._is_restored,
        )

    def _begin(self, key: PhaseKey) -> None:
        task = asyncio.create_task(self._phases.run(key))
        self._live[key] = task
        task.add_done_callback(lambda _: self._control.wake())

    def _raise_failures(self) -> None:
        """Forget the phases that have ended; raise the error of one that could not be recorded."""
        for key in [key for key, task in self._live.items() if task.done()]:
            task = self._live.pop(key)
            if not task.cancelled() and (error := task.exception()):
                raise error

    async def _stop(self, stop: Stop) -> None:
        await self._context.journal.write(Records(stop=stop), operation_pb2.Stopping(cause=stop.cause))

    def _tell(self) -> None:
        """Tell the phases that run what the action set does."""
        stop = self._context.progress.stop
        if stop is None:
            return
        self._told.stops.set()
        for key in filter(self._phases.is_waiting, list(self._live)):
            self._live[key].cancel()
        if stop.reason is not StopReason.FAILED or self._signals().is_cancelled:
            self._told.ends.set()

    async def _reserve(self) -> None:
        """Reserve the stacks, or wait until the next attempt."""
        context, holders, wake = self._context, self._context.holders, self._control.wake
        until, age = self._create_time + context.pinned.wait * 1000, context.lease.store_time - self._create_time
        if context.lease.store_time < until and not holders.is_first(self._holder.operation_id, wake):
            first_end = min(context.pinned.wait, context.pinned.timeout or context.pinned.wait)
            await self._control.changes(min(first_end / 1000 - age / 1_000_000, BETWEEN_LOOKS_BEHIND))
            return
        holder, before = await context.journal.reserve(), self._holder
        if holder is None or holder.operation_id != before.operation_id:
            holders.leave(before.operation_id, wake)
        if holder is None:
            return
        self._holder, self._is_waiting_over = holder, context.lease.store_time >= until
        if self._is_waiting_over:
            return
        if holder.operation_id != before.operation_id:
            holders.join(holder.operation_id, wake)
            await self._tell_holder(until)
        await self._control.changes(BETWEEN_LOOKS)

    async def _tell_holder(self, until: int) -> None:
        """Tell who has a stack of which the action set waits."""
        end = Timestamp()
        end.FromMicroseconds(until)
        event = operation_pb2.Waiting(
            stack_name=self._holder.stack_name,
            operation_id=self._holder.operation_id,
            action_set=self._holder.action_set,
            until=end,
        )
        await self._context.journal.write(Records(), event)

    async def _release(self) -> None:
        """Stop the phases that run, and put them back: no interruption is counted."""
        for task in self._live.values():
            task.cancel()
        await asyncio.gather(*self._live.values(), return_exceptions=True)
        # A phase may have ended, and its record be on its way.
        await self._context.journal.settle()
        progress = self._context.progress
        running = [key for key, status in progress.statuses() if status.state is PhaseState.RUNNING]
        for key in running:
            if self._context.recovery(key) is Recovery.ONCE:
                function = phase_of(self._context.pinned, key).function
                await self._phases.interrupt(key, f"its applier was stopped, and {function} runs at most once")
            else:
                status = progress.status(key)
                record = PhaseRecord(key, PhaseState.PENDING, status.attempt, status.try_number)
                await self._context.journal.write(Records((record,)))


def _in_use(holder: action_set_pb2.Reservation, wait: int) -> str:
    who = f"action set {holder.action_set} (operation {holder.operation_id})" if holder.action_set else ""
    who = who or f"operation {holder.operation_id}"
    waited = f", and was not free within {duration_text(wait)}" if wait else ""
    return f"stack {holder.stack_name} is in use by {who}{waited}"
