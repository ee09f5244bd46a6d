"""Brings an operation that has its plan to its end: run, or taken back, and recorded."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pkger.applier.v1 import applier_pb2
from pkger.model.v1 import operation_pb2

from applier_svc.deciding import blocked_steps, records_of
from applier_svc.effects import Effects
from applier_svc.ending import Ending
from applier_svc.ids import Ids
from applier_svc.inventory import after_success, after_undo
from applier_svc.journal import Journal
from applier_svc.late_effects import kinds_touched, late_effects
from applier_svc.lease import Lease
from applier_svc.outcomes import Direction, Done
from applier_svc.patience import Patience
from applier_svc.resolver import UNREADABLE, Resolver
from applier_svc.run import Run
from applier_svc.secrets import Secrets
from applier_svc.sender import Sender
from services.core.errors import ResourceOwned, StackMoved
from services.core.model import InventoryEntry, Plan, PlatformTraits
from services.rpc.client import Peer

_REFUSALS = (ResourceOwned, StackMoved)
"""Why a store that answers does not take a record."""


@dataclass(frozen=True, slots=True)
class Work:
    """
    An operation that has its plan.

    Attributes:
        operation: The operation, as it was when this applier began it or took it over.
        plan: Its plan.
        ids: Which resource each key means.
        lease: The right to work on it.
        journal: What is known of its steps, and where more is written.
        secrets: What it was given.
        taken_over: When it was taken over, by the clock of the patience; None: it began here.
    """

    operation: operation_pb2.Operation
    plan: Plan
    ids: Ids
    lease: Lease
    journal: Journal
    secrets: Secrets
    taken_over: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where the work is done: a platform by its driver, and the store, which knows who owns what is there."""

    driver: Peer
    traits: PlatformTraits
    store: Peer
    patience: Patience


async def carry_out(
    work: Work, place: Place, is_cancelled: Callable[[], bool], decisions: Sequence[applier_pb2.StepDecision] = ()
) -> None:
    """
    Do what is left of the plan, or take back what was done, and record what came of it.

    Args:
        work: The operation.
        place: Where.
        is_cancelled: Whether somebody here wants it to turn back.
        decisions: What is decided for the steps that block it.

    Raises:
        PkgerError: It was cut off; whoever gets its lease carries it on.
    """
    plan, ids, lease, journal, secrets = work.plan, work.ids, work.lease, work.journal, work.secrets
    resolver = Resolver(place.driver, place.store, place.traits, plan.target, place.patience, secrets.masked)
    sender = Sender(place.driver, place.traits, plan.target.org, lease, place.patience, secrets)
    effects = Effects(
        sender, place.traits, lease.operation, ids, journal, place.patience, resolver, secrets, work.taken_over
    )
    run = Run(plan, place.traits, effects, journal, lambda: is_cancelled() or lease.cancel_requested)
    try:
        if decisions:
            await _decide(run, decisions, work)
        result = await run.run()
    except BaseException:
        # Whatever cut it off: the sooner somebody can carry it on, the better.
        await lease.drop()
        await lease.let_go()
        raise
    ending = Ending(plan, lease.stack, lease.is_transient, lease.is_pending, work.operation.kind)
    if result.state == operation_pb2.OPERATION_STATE_SUCCEEDED:
        entries = after_success(plan, lease.stack, ids, result.leftovers, journal.progress.kept)
        if effects.may_be_late:
            await _tell_late_effects(work, place, entries, resolver)
        try:
            await journal.finish(ending.outcome(entries), ending.told(entries, result))
        except _REFUSALS as error:
            result = await run.take_back(f"the outcome could not be recorded: {error}")
        else:
            return
    if result.state == operation_pb2.OPERATION_STATE_BLOCKED:
        # The record stays as it is until somebody has looked: the journal says what is different.
        blocked = blocked_steps(plan, journal.progress)
        await journal.finish(None, ending.told(lease.stack.resources, result), blocked)
        return
    entries = after_undo(plan, lease.stack, ids, journal.progress)
    if effects.may_be_late:
        await _tell_late_effects(work, place, entries, resolver)
    await journal.finish(ending.record(entries), ending.told(entries, result))


async def _tell_late_effects(work: Work, place: Place, entries: Sequence[InventoryEntry], resolver: Resolver) -> None:
    """Wait once more, and tell what took effect meanwhile: it may not have been waited for (engine.md 5)."""
    await asyncio.sleep(place.patience.settle)
    late = operation_pb2.LateEffects()
    try:
        live, owned = await resolver.live_and_owned(kinds_touched(work.plan))
        held = await resolver.secret_keys() if any(step.is_secret for step in work.plan.steps) else frozenset[str]()
    except UNREADABLE as error:
        late.problem = f"nobody could look what took effect late: {work.secrets.masked(str(error))}"
    else:
        owned |= {(entry.key.kind, entry.remote_id) for entry in entries}
        late.effects.extend(late_effects(work.plan, work.journal.progress, work.ids, live, owned, place.traits, held))
    if late.effects or late.problem:
        await work.journal.tell(late)


async def _decide(run: Run, decisions: Sequence[applier_pb2.StepDecision], work: Work) -> None:
    blocked = work.operation.blocked_steps
    known = [work.journal.progress.done.get(step.number) for step in work.plan.steps]
    targets = [
        outcome.remote_id if isinstance(outcome, Done) else work.ids.of_resource(step)
        for step, outcome in zip(work.plan.steps, known, strict=True)
    ]
    # An operation is blocked in the direction in which it went.
    is_undo = blocked[0].direction == operation_pb2.DIRECTION_UNDO
    direction = Direction.UNDO if is_undo else Direction.DO
    await run.decide(records_of(decisions, blocked, targets), direction, work.ids)
