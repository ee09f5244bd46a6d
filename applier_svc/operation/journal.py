"""
Writes the intents and outcomes of one operation: stored first, then folded into its progress, then published.

Writes that nothing waits for are kept back, and stored together with the next one: the start of the operation, and the
outcomes of a stage that succeeded. If the applier dies before that, its successor looks the outcomes up.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from pkger.journal.v1 import journal_pb2
from pkger.model.v1 import operation_pb2, plan_pb2

from applier_svc.execution.journal_protocol import OutcomeRefused
from applier_svc.failpoints import reach
from applier_svc.operation.events import Event, Feed
from applier_svc.operation.lease import Lease
from applier_svc.operation.plans import OperationPlan
from services.core.errors import ResourceOwned
from services.core.model import PlatformTraits
from services.engine.claims import (
    Claim,
    Claimed,
    ClaimedResource,
    ClaimHolder,
    ClaimMode,
    Refusal,
    adopted_claims,
    taken_claims,
    used_claims,
)
from services.engine.conclusion import NO_ORPHANS, Orphans, RemoveStack, WriteRecord
from services.engine.decisions import BlockedStep
from services.engine.effects import AnyEffect, inverse_of
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Outcomes, Unknown
from services.engine.progress import Progress
from services.engine.step_state import StepRecord, StepState
from services.rpc.convert.claims import claim_from_pb, claim_to_pb, refusal_from_pb
from services.rpc.convert.objects import key_from_pb
from services.rpc.convert.operations import (
    outcomes_to_pb,
    step_record_fields,
    steps_sent_to_pb,
    steps_waiting_to_pb,
)
from services.rpc.convert.plans import use_from_pb
from services.rpc.parts import cut
from services.rpc.plan_parts import REMARKS, stored_part


@dataclass(frozen=True, slots=True)
class _Entry:
    """A write that is not stored yet, without its events, and the events."""

    write: journal_pb2.JournalWrite
    events: Sequence[Event] = ()


class _KeptBack(NamedTuple):
    """Outcomes that are folded and not stored yet, and the records that their steps had before."""

    outcomes: Mapping[int, Outcome]
    direction: Direction
    before: Sequence[StepRecord]


class Journal:
    """
    The journal of one operation.

    Every method raises the error of the store if it cannot write; then nothing is folded or published.

    Attributes:
        progress: The fold of the journal.
    """

    def __init__(
        self,
        lease: Lease,
        feed: Feed,
        progress: Progress,
        traits: PlatformTraits,
        new_plan: OperationPlan | None = None,
    ) -> None:
        """*new_plan* is the plan of an operation that is to start; None: it has started before."""
        self.progress = progress
        self._traits = traits
        self._taken = frozenset(claim.what for claim in taken_claims(progress.plan.record))
        self._lease = lease
        self._feed = feed
        # Writes are serialised, so that events are stored in their order.
        self._turn = asyncio.Lock()
        self._waiting: list[Event] = []
        self._entries: list[_Entry] = []
        self._kept_back: _KeptBack | None = None
        self._new_plan = new_plan

    @property
    def has_started(self) -> bool:
        """Whether the operation has its plan in the store."""
        return self._new_plan is None

    async def flush(self) -> None:
        """Store what is kept back, if anything is."""
        async with self._turn:
            if self._entries or self._new_plan:
                await self._store([])

    async def intend(
        self, steps: Sequence[int], direction: Direction, before_ids: Mapping[int, tuple[str, ...]]
    ) -> list[Refusal]:
        """
        Write the intents of steps and publish them; nothing is sent before this returns.

        Args:
            steps: Numbers of the steps.
            direction: Whether they are done or undone.
            before_ids: Ids of the resources that have the kind and name of a searched creation before it, by step
                number.

        Returns:
            The claims that are refused because of another stack; if there are any, nothing is written.
        """
        records = [self.progress.intent(step, direction, before_ids.get(step, ())) for step in steps]
        unpublished = [record for record in records if record.step in before_ids]
        effects = [self._effect(step, direction) for step in steps]
        claims = [
            Claim(effect.number, effect.step.key, what, self._mode(effect, what))
            for effect in effects
            for what in effect.claims(self.progress.ids, self._traits)
        ]
        return await self._fold(records, unpublished, steps_sent_to_pb(steps, direction), claims=claims)

    def _mode(self, effect: AnyEffect, what: Claimed) -> ClaimMode:
        return ClaimMode.TAKE_OVER if what in self._taken else effect.claim_mode(what)

    async def wait(self, refusals: Sequence[Refusal], direction: Direction) -> None:
        """Publish which steps wait, and for which operation or stack."""
        by_holder: dict[ClaimHolder, set[int]] = {}
        for refusal in refusals:
            by_holder.setdefault(refusal.holder, set()).add(refusal.claim.step)
        await self.publish(*(steps_waiting_to_pb(sorted(by_holder[each]), direction, each) for each in by_holder))

    async def retract(self, steps: Collection[int], direction: Direction) -> None:
        """Record that *steps* were sent and certainly had no effect; each returns to its state before the intent."""
        records = [self.progress.retracted(step, direction) for step in steps]
        await self._fold(records, records)

    async def record(self, outcomes: Mapping[int, Outcome], direction: Direction, may_wait: bool = False) -> None:
        """
        Record the outcomes of steps, and publish them.

        The operation claims each resource that a creation made. If another stack has a claim on that resource, the
        answer of the platform is wrong, and the outcome of the creation is unknown.

        Args:
            outcomes: The outcomes, by step number.
            direction: Whether the steps were done or undone.
            may_wait: Whether another write follows at once. Outcomes of steps that are done are then stored with it.
        """
        before = list(map(self.progress.record, outcomes))
        may_wait = may_wait and all(isinstance(outcome, Done) for outcome in outcomes.values())
        if refusals := await self._record(outcomes, direction, may_wait):
            await self._record(_with_unknown(outcomes, refusals), direction)
        elif self._entries:
            self._kept_back = _KeptBack(outcomes, direction, before)

    async def _record(
        self, outcomes: Mapping[int, Outcome], direction: Direction, may_wait: bool = False
    ) -> list[Refusal]:
        records = [self.progress.ended(step, outcome, direction) for step, outcome in sorted(outcomes.items())]
        # Events do not have observed specs, so these records are stored beside them.
        unpublished = [record for record in records if record.observed]
        released = [
            Claim(step, effect.step.key, what)
            for step, outcome in outcomes.items()
            if isinstance(outcome, Done | Failed)
            and (effect := self._effect(step, direction)).makes
            and effect.awaits_claims(self._traits)
            for what in effect.claims(self.progress.ids, self._traits)
        ]
        return await self._fold(
            records,
            unpublished,
            outcomes_to_pb(outcomes, direction),
            outcomes,
            self._claims_of(records, direction),
            released,
            # A later write may need the released claims.
            may_wait and not released,
        )

    async def decide(self, records: Sequence[StepRecord], direction: Direction) -> None:
        """
        Record the decisions for steps, or for their inverses, and publish the outcomes.

        Raises:
            ResourceOwned: Another stack owns a resource that a creation is to adopt.
        """
        ended: Outcomes = {}
        for record in records:
            if record.state in (StepState.DONE, StepState.KEPT, StepState.UNDONE) and _ends(record, direction):
                ended[record.step] = Done(record.resource_id)
            elif record.message:
                ended[record.step] = GivenUp(record.message)
        claims = self._claims_of(records, direction)
        if refusals := await self._fold(records, records, outcomes_to_pb(ended, direction), claims=claims):
            raise ResourceOwned([each.owned for each in refusals])

    async def start_stage(self, index: int, name: str, step_count: int) -> None:
        """Publish, together with the next write, that a stage is about to run."""
        async with self._turn:
            self._waiting.append(operation_pb2.StageStarted(stage=index, name=name, step_count=step_count))

    async def publish(self, *events: Event) -> None:
        """Publish events that change no step."""
        await self._write(journal_pb2.JournalWrite(), events)

    async def seal(self) -> None:
        """Pass the seal: no step is undone from now on."""
        await self._write(journal_pb2.JournalWrite(seal=True))
        self.progress.sealed = True
        reach("after_seal")

    async def roll_back(self, cause: str, step_count: int) -> None:
        """Record that the operation rolls back from now on; *step_count* steps are undone."""
        started = operation_pb2.RollbackStarted(cause=cause, step_count=step_count)
        await self._write(journal_pb2.JournalWrite(rollback=True, cause=cause), [started])
        self.progress.rollback_cause = cause
        self.progress.is_undoing = True
        reach("after_rollback")

    async def finish(
        self,
        change: WriteRecord | RemoveStack | None,
        finished: operation_pb2.Finished,
        blocked: Sequence[BlockedStep] = (),
        seen_token: int = 0,
    ) -> Orphans:
        """
        End the operation, and publish it.

        Args:
            change: The change of the record; None: it stays as it is.
            finished: The last event.
            blocked: The blocked steps.
            seen_token: As for ``Lease.finish``.

        Returns:
            Entries that *change* removes and that have to stay in the record; if there are any, nothing has ended.
        """
        reach("before_finish")
        async with self._turn:
            if self._waiting:
                self._entries.append(self._entry(journal_pb2.JournalWrite()))
                self._waiting.clear()
            start, writes, events = self._stamped(self._entries, finished)
            last = events[-1]
            ended = await self._lease.finish(
                change,
                finished.state,
                last,
                blocked=blocked,
                seen_token=seen_token,
                start=start,
                writes=writes,
            )
            self._refuse_kept_back(list(map(refusal_from_pb, ended.refused)))
            keys, labels = map(key_from_pb, ended.orphaned), map(use_from_pb, ended.orphaned_labels)
            if orphans := Orphans(frozenset(keys), frozenset(labels)):
                return orphans
            reach("after_finish")
            last.finished.generation = ended.generation if finished.stack_id else 0
            await self._stored(events)
            return NO_ORPHANS

    async def _fold(
        self,
        records: Sequence[StepRecord],
        unpublished: Iterable[StepRecord],
        events: Sequence[Event] = (),
        outcomes: Mapping[int, Outcome] | None = None,
        claims: Sequence[Claim] = (),
        released: Sequence[Claim] = (),
        may_wait: bool = False,
    ) -> list[Refusal]:
        """
        Store *events* and the *unpublished* records, with the next write if they *may_wait*, and fold *records*.

        Returns:
            The *claims* that are refused because of another stack; if there are any, nothing is stored.
        """
        self.progress.check(records)
        write = journal_pb2.JournalWrite(
            steps=map(step_record_fields, unpublished),
            claims=map(claim_to_pb, claims),
            released=map(claim_to_pb, released),
        )
        refusals = await self._write(write, events, records, may_wait)
        if not refusals:
            self.progress.fold(records, outcomes)
        return refusals

    def _claims_of(self, records: Iterable[StepRecord], direction: Direction) -> list[Claim]:
        """Claims on the resources that creations made, by the *records* of steps or inverses that ended."""
        ends = (StepState.DONE, StepState.KEPT) if direction is Direction.DO else (StepState.UNDONE,)
        effects = [
            (self._effect(record.step, direction), record.resource_id) for record in records if record.state in ends
        ]
        return [
            Claim(effect.number, effect.step.key, ClaimedResource(effect.step.key.kind, resource_id))
            for effect, resource_id in effects
            if effect.makes and resource_id
        ]

    def _claims_of_plan(self) -> list[Claim]:
        plan = self.progress.plan
        return [*adopted_claims(plan.adoptions, self._traits), *used_claims(plan.uses), *taken_claims(plan.record)]

    def _effect(self, step: int, direction: Direction) -> AnyEffect:
        effect = self.progress.effects[step]
        return effect if direction is Direction.DO else inverse_of(effect)

    async def _write(
        self,
        write: journal_pb2.JournalWrite,
        events: Sequence[Event] = (),
        records: Sequence[StepRecord] = (),
        may_wait: bool = False,
    ) -> list[Refusal]:
        async with self._turn:
            entry = self._entry(write, events, records)
            if may_wait:
                self._entries.append(entry)
            elif refusals := await self._store([entry]):
                return refusals
            self._waiting.clear()
            return []

    def _entry(
        self, write: journal_pb2.JournalWrite, events: Sequence[Event] = (), records: Sequence[StepRecord] = ()
    ) -> _Entry:
        write.done_count = self.progress.done_count(records)
        return _Entry(write, (*self._waiting, *events))

    async def _store(self, entries: Sequence[_Entry]) -> list[Refusal]:
        """Store *entries* after those that are kept back; returns the refused claims of *entries*."""
        start, writes, events = self._stamped([*self._entries, *entries])
        refusals = await self._lease.advance(writes, start)
        if refusals:
            self._refuse_kept_back(refusals)
            return refusals
        await self._stored(events)
        return []

    def _stamped(
        self, entries: Sequence[_Entry], *more: Event
    ) -> tuple[journal_pb2.Start | None, list[journal_pb2.JournalWrite], list[operation_pb2.OperationEvent]]:
        """The start, if the operation has not started, the writes of *entries*, and all events, *more* at the end."""
        start = self._new_plan and _start(self._new_plan, self._claims_of_plan())
        first = [start.accepted.accepted] if start else []
        events = self._feed.stamp(*first, *(event for entry in entries for event in entry.events), *more)
        following = iter(events)
        if start:
            start.accepted.CopyFrom(next(following))
        for entry in entries:
            del entry.write.events[:]
            entry.write.events.extend(islice(following, len(entry.events)))
        return start, [entry.write for entry in entries], events

    async def _stored(self, events: Sequence[operation_pb2.OperationEvent]) -> None:
        """Publish *events*, which are stored with everything that was kept back."""
        has_started, self._new_plan = self.has_started, None
        self._entries.clear()
        self._kept_back = None
        if not has_started:
            reach("after_start")
        await self._feed.publish(*events)

    def _refuse_kept_back(self, refusals: Sequence[Refusal]) -> None:
        """
        Drop the outcomes that are kept back if *refusals* concern them.

        Raises:
            OutcomeRefused: Has the dropped outcomes, to be recorded before the next move; the refused ones are now
                unknown.
        """
        claims = {claim_from_pb(claim, "claims") for entry in self._entries for claim in entry.write.claims}
        refused = [each for each in refusals if each.claim in claims]
        if refused and self._kept_back:
            (outcomes, direction, before), self._kept_back = self._kept_back, None
            self._entries.clear()
            self.progress.return_to(before)
            raise OutcomeRefused(_with_unknown(outcomes, refused), direction)


def _with_unknown(outcomes: Mapping[int, Outcome], refusals: Sequence[Refusal]) -> Outcomes:
    """*outcomes*; an outcome is unknown if the claim on its new resource is refused."""
    unknown = {each.claim.step: Unknown(f"the platform reports a new resource, but {each}", True) for each in refusals}
    return {**outcomes, **unknown}


def _start(plan: OperationPlan, claims: Sequence[Claim]) -> journal_pb2.Start:
    """The write that starts an operation with *plan* and its *claims*."""
    header = plan.header
    accepted = operation_pb2.Accepted(plan_id=header.id, digest=header.digest, counts=header.counts)
    start = journal_pb2.Start(accepted=operation_pb2.OperationEvent(accepted=accepted), claims=map(claim_to_pb, claims))
    if not plan.is_stored:
        parts = (plan_pb2.PlanPart(remarks=part) for part in cut(plan.body.remarks))
        stored = [stored_part(REMARKS, part, part) for part in parts]
        idle_plan = journal_pb2.NewPlan(header=header, parts=stored, baselines_digest=plan.baselines_digest)
        start.idle_plan.CopyFrom(idle_plan)
    else:
        start.plan_id = header.id
    return start


def _ends(record: StepRecord, direction: Direction) -> bool:
    """Whether a decided step, or its inverse, ends done; a step whose inverse is sent again has ended before."""
    return direction is Direction.DO or record.state is StepState.UNDONE
