"""The journal of one action set: what is written is stored first, then folded into its progress, then published."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from pkger.journal.v1 import action_set_pb2, journal_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.failpoints import reach
from applier_svc.operation.events import Event, Feed
from applier_svc.operation.lease import Lease
from services.actions.folding import ActionSetProgress, Records, ended_phases
from services.rpc.convert.phases import records_to_pb


@dataclass(frozen=True, slots=True)
class _Entry:
    """
    A write that is not stored yet.

    Attributes:
        records: Its records.
        events: Their events.
        snapshots: Manifests of snapshots that are stored with them.
        unless_stopped: Whether it is left out once the action set stops.
        stored: Ends when it is stored, or left out; whether it is stored.
    """

    records: Records
    events: Sequence[Event]
    snapshots: Sequence[str] = ()
    unless_stopped: bool = False
    stored: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class ActionJournal:
    """
    The journal of one action set.

    Every method raises the error of the store if it cannot write; then nothing is folded or published.

    Attributes:
        progress: The fold of the journal.
    """

    def __init__(self, lease: Lease, feed: Feed, progress: ActionSetProgress) -> None:
        self.progress = progress
        self._lease = lease
        self._feed = feed
        # Writes that wait for their turn are stored together.
        self._turn = asyncio.Lock()
        self._queue: list[_Entry] = []
        self._writer: asyncio.Task[None] | None = None

    async def start(self, action_set: action_set_pb2.NewActionSet) -> None:
        """Start the operation: from now on the action set exists, and another applier resumes it if this one dies."""
        accepted = self._feed.stamp(operation_pb2.Accepted(action_set=action_set.name))
        await self._lease.advance([], journal_pb2.Start(action_set=action_set, accepted=accepted[0]))
        reach("after_start")
        await self._feed.publish(*accepted)

    async def write(
        self, records: Records, *events: Event, snapshots: Sequence[str] = (), unless_stopped: bool = False
    ) -> bool:
        """
        Store records with their events. A caller that is cancelled does not keep them from being stored.

        Args:
            records: The records.
            events: The events, in order.
            snapshots: Manifests of snapshots that are stored with the records.
            unless_stopped: Store nothing if the action set stops before.

        Returns:
            Whether they are stored.
        """
        entry = _Entry(records, events, snapshots, unless_stopped)
        self._queue.append(entry)
        if self._writer is None:
            self._writer = asyncio.create_task(self._store_queue())
        return await asyncio.shield(entry.stored)

    async def settle(self) -> None:
        """Wait until all that was to be written is stored, or could not be."""
        while self._writer:
            await asyncio.wait([self._writer])

    async def reserve(self) -> action_set_pb2.Reservation | None:
        """Reserve the stacks of the action set; returns who has one of them, or None."""
        records = Records(reserve=True)
        async with self._turn:
            holder = await self._lease.reserve(self._write_of(_Entry(records, ()), self.progress.ended_count))
            if holder is None:
                self.progress.fold(records, self._lease.store_time)
                reach("after_reserve")
        return holder

    async def finish(self, finished: operation_pb2.Finished) -> None:
        """End the operation, and publish it."""
        reach("before_finish")
        async with self._turn:
            events = self._feed.stamp(finished)
            await self._lease.finish(None, finished.state, events[0])
            reach("after_finish")
            await self._feed.publish(*events)

    async def _store_queue(self) -> None:
        """Store what is in the queue; what comes meanwhile is stored together."""
        try:
            while self._queue:
                async with self._turn:
                    entries, self._queue = self._queue, []
                    try:
                        await self._store(entries)
                    except Exception as error:
                        for entry in entries:
                            if entry.stored.done():
                                # It was left out.
                                continue
                            entry.stored.set_exception(error)
                            # A writer that was cancelled does not read it.
                            entry.stored.exception()
        finally:
            self._writer = None

    async def _store(self, waiting: Sequence[_Entry]) -> None:
        entries = list(_until_stop(waiting, self.progress.stop is not None))
        if not entries:
            return
        events = self._feed.stamp(*(event for entry in entries for event in entry.events))
        time, following = self._lease.store_time, iter(events)
        writes, ended_count = [], self.progress.ended_count
        for entry in entries:
            ended_count += ended_phases(entry.records)
            write = self._write_of(entry, ended_count)
            write.events.extend(islice(following, len(entry.events)))
            writes.append(write)
        await self._lease.advance(writes)
        for entry in entries:
            self.progress.fold(entry.records, time)
            entry.stored.set_result(True)
        await self._feed.publish(*events)

    def _write_of(self, entry: _Entry, ended_count: int) -> journal_pb2.JournalWrite:
        return journal_pb2.JournalWrite(
            action=records_to_pb(entry.records), snapshots=entry.snapshots, done_count=ended_count
        )


def _until_stop(entries: Iterable[_Entry], has_stopped: bool) -> Iterator[_Entry]:
    """*entries* with the first stop only, as phases may fail at the same time, and without what a stop leaves out."""
    for entry in entries:
        if has_stopped and entry.unless_stopped:
            entry.stored.set_result(False)
        elif has_stopped and entry.records.stop:
            events = [event for event in entry.events if not isinstance(event, operation_pb2.Stopping)]
            yield replace(entry, records=replace(entry.records, stop=None), events=events)
        else:
            has_stopped = has_stopped or entry.records.stop is not None
            yield entry
