"""Runs a planned operation to its end: applied or rolled back, and recorded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pkger.driver.v1 import driver_pb2
from pkger.model.v1 import operation_pb2
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from applier_svc.execution.context import ExecutionContext
from applier_svc.execution.executor import Executor
from applier_svc.execution.journal_protocol import OutcomeRefused
from applier_svc.execution.outcome_lookup import OutcomeLookup
from applier_svc.execution.prober import UNREADABLE, Prober
from applier_svc.execution.retries import repeated, stop_after
from applier_svc.execution.runner import End, Runner
from applier_svc.execution.secrets import Secrets
from applier_svc.execution.sender import Sender
from applier_svc.execution.timeouts import Timeouts
from applier_svc.operation.journal import Journal
from applier_svc.operation.lease import Lease
from services.core.errors import ResourceOwned, ServiceUnavailable, StackMoved, TokenStale
from services.core.model import InventoryEntry, PlatformTraits
from services.engine.assumptions import assumed_resources, broken_assumptions
from services.engine.conclusion import NO_ORPHANS, Conclusion, Orphans, needs_record
from services.engine.decisions import StepDecision, blocked_steps
from services.engine.fencing_tokens import token_of, token_problem
from services.engine.late_writes import LateWrite, kinds_to_compare, late_writes, writes_secrets
from services.engine.operation import Direction, OperationState
from services.engine.outcome import Outcome, Unknown
from services.engine.scheduler import Block, Finish
from services.engine.stale_plan import problem_of
from services.rpc.client import Peer
from services.rpc.convert.operations import blocked_step_from_pb, finished_to_pb, late_writes_to_pb
from services.rpc.convert.plans import KINDS

_RESTORED = (
    "the store was restored from a backup: the platform has seen token {} of {}, which the store does not know; "
    "nothing was sent, recover the operation to continue"
)

_CONSENT_BEFORE_SENDING = "the store was restored from a backup, and nothing was sent"

_OUTDATED = "the platform changed while the plan was made; nothing was sent, plan again. What changed: {}"

_REFUSALS = (ResourceOwned, StackMoved)
"""Errors of a store that refuses a record."""


@dataclass(frozen=True, slots=True)
class OperationRun:
    """
    An operation that has its plan.

    Attributes:
        operation: The operation as it was when this applier began or claimed it.
        lease: Its lease.
        journal: Its journal.
        secrets: Its secrets.
        taken_over: When this applier claimed it, by ``loop_time``; None: it began here.
    """

    operation: operation_pb2.Operation
    lease: Lease
    journal: Journal
    secrets: Secrets
    taken_over: float | None = None

    @property
    def has_consent(self) -> bool:
        """Whether it was blocked on a restored store, so that it was resumed by a request to continue."""
        return self.operation.blocked_reason == operation_pb2.BLOCKED_REASON_STORE_RESTORED


@dataclass(frozen=True, slots=True)
class PlatformContext:
    """The services that an operation works with: the driver of its platform, and the store, which knows the owners."""

    driver: Peer
    traits: PlatformTraits
    store: Peer
    timeouts: Timeouts


async def complete(
    work: OperationRun, place: PlatformContext, is_cancelled: Callable[[], bool], decisions: Sequence[StepDecision] = ()
) -> None:
    """
    Run the rest of the plan, or undo its done steps, and record the result.

    Args:
        work: The operation.
        place: Its driver and store.
        is_cancelled: Whether this applier was asked to cancel it.
        decisions: The decisions for the steps that block it.

    Raises:
        PkgerError: It was interrupted; the next holder of its lease resumes it.
    """
    lease, journal, secrets = work.lease, work.journal, work.secrets
    target = journal.progress.plan.target
    prober = Prober(place.driver, place.store, place.traits, target, place.timeouts, secrets.masked)
    sender = Sender(place.driver, place.traits, target.org, lease, place.timeouts, secrets)
    lookup = OutcomeLookup(prober, sender, journal, place.traits, place.timeouts, work.taken_over)
    context = ExecutionContext(lease.operation, place.traits, sender, lookup, journal, secrets, place.timeouts)
    runner = Runner(context, Executor(context, prober), lambda: is_cancelled() or lease.cancel_requested)
    end = await _end_before_sending(work, place, sender, runner) or await _end_outdated(work, prober, runner)
    if work.has_consent and not end:
        await runner.consent()
    if decisions and not end:
        await runner.decide(decisions, [blocked_step_from_pb(each) for each in work.operation.blocked_steps])
    try:
        end = end or await runner.run()
    except TokenStale as error:
        end = await _end_refused(work, place, runner, error)
    try:
        await _finish(work, place, end, prober, lookup)
    except OutcomeRefused as error:
        await journal.record(error.outcomes, error.direction)
        await _finish(work, place, await runner.run(), prober, lookup)
    except _REFUSALS as error:
        if end.state is not OperationState.SUCCEEDED:
            raise
        end = await runner.run(cause=f"the outcome could not be recorded: {error}")
        await _finish(work, place, end, prober, lookup)


async def _end_before_sending(work: OperationRun, place: PlatformContext, sender: Sender, runner: Runner) -> End | None:
    """
    Show the token of the operation before anything is looked up or sent (docs/reference/engine.md, "Restored stores").

    Returns:
        The end of the operation, if nothing may be sent; None: it continues.

    Raises:
        LeaseLost: Another applier runs it.
    """
    lease, progress = work.lease, work.journal.progress
    is_resumed = work.taken_over is not None
    if place.traits.fences and progress.plan.steps and (is_resumed or not lease.is_new):
        try:
            seen = await _show_token(sender, place.timeouts, until_resolved=is_resumed)
            if progress.was_sent and not seen.token:
                # Either no step has arrived, or the platform forgets tokens: then it forgets this one, too.
                await lease.raise_token()
                await _show_token(sender, place.timeouts, until_resolved=True)
            seen_token, seen_by = seen.token, seen.operation_id
        except ServiceUnavailable as error:
            return await _end_unanswered(work, runner, str(error))
        except TokenStale as error:
            seen_token, seen_by = await _newest(lease, error), ""
        if end := await _end_restored(work, place, runner, seen_token, seen_by):
            return end
    if work.has_consent and not progress.was_sent:
        return await runner.run(cause=_CONSENT_BEFORE_SENDING)
    return None


async def _end_refused(work: OperationRun, place: PlatformContext, runner: Runner, error: TokenStale) -> End:
    """
    The end of an operation whose token the platform refuses although it does not say that it fences.

    Raises:
        TokenStale: The next attempt may go on: the platform says that it fences, so it is shown the next token first,
            or it has seen no token above the refused one.
        LeaseLost: Another applier runs the operation.
    """
    end = None
    if not place.traits.fences and (newest := await _newest(work.lease, error)) > work.lease.token:
        end = await _end_restored(work, place, runner, newest)
    if end is None:
        raise error
    return end


async def _newest(lease: Lease, error: TokenStale) -> int:
    """
    The token for which the platform refuses that of *lease*, as *error* has it.

    Either another applier has claimed the operation, as the store confirms, or the store was restored.

    Raises:
        LeaseLost: Another applier has claimed it.
        ServiceUnavailable: The store did not answer while the lease lasted.
    """
    await lease.confirm()
    newest = token_of(error.metadata.get("newest", ""))
    return lease.token + 1 if newest is None else newest


async def _end_restored(
    work: OperationRun, place: PlatformContext, runner: Runner, seen_token: int, seen_by: str = ""
) -> End | None:
    """
    The end of an operation whose platform has seen a token that the store does not know, or that cannot be.

    Args:
        work: The operation.
        place: Its driver and store.
        runner: Its runner.
        seen_token: The highest token that the platform has seen before.
        seen_by: The operation with that token; empty: the platform did not say.

    Returns:
        The end; None: the operation continues.
    """
    lease, before = work.lease, work.journal.progress.rollback_cause
    if problem := token_problem(lease.stack.id, seen_token):
        return await _end_unanswered(work, runner, str(_faulty_answer(place.driver, problem)))
    if not await _is_newer(work, seen_token, seen_by):
        return None
    cause = _RESTORED.format(seen_token, seen_by or "an operation")
    return Block(f"{cause}; before: {before}" if before else cause, seen_token=seen_token)


async def _is_newer(work: OperationRun, seen_token: int, seen_by: str) -> bool:
    """
    Whether a platform that has seen the token *seen_token*, of the operation *seen_by*, is newer than the store.

    Not every operation shows its token: the last one of a restored store may be higher than those that it lacks.

    Raises:
        ServiceUnavailable: The store did not answer while the lease lasted.
    """
    lease = work.lease
    if work.has_consent:
        return seen_token > lease.token
    is_of_another = seen_by not in ("", lease.operation)
    return seen_token > lease.last_token or (
        seen_token > lease.shown_token and is_of_another and not await lease.knows(seen_by)
    )


async def _end_outdated(work: OperationRun, prober: Prober, runner: Runner) -> End | None:
    """
    Read again what the plan relies on without a step for it (docs/reference/engine.md, "Claims").

    Another operation may have changed it between the plan and the claims, and ended. From the claims on, none can.

    Returns:
        The end of the operation, if anything is missing or cannot be read; None: it continues.
    """
    progress = work.journal.progress
    relied = [] if progress.was_sent or progress.rollback_cause else assumed_resources(progress.plan)
    if not relied:
        return None
    # The claims of the plan are stored with the start.
    await work.journal.flush()
    live = await prober.read_before(relied)
    if isinstance(live, str):
        return await _end_unanswered(work, runner, live)
    parts = broken_assumptions(progress.plan, live)
    return await runner.run(cause=_OUTDATED.format(problem_of(parts))) if parts else None


async def _show_token(sender: Sender, timeouts: Timeouts, until_resolved: bool) -> driver_pb2.Fence:
    """Show the token with retries; the result of ``Sender.show_token``."""
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(ServiceUnavailable),
        wait=timeouts.between_attempts,
        stop=stop_after(timeouts.resolution) if until_resolved else stop_after_attempt(timeouts.attempts),
        reraise=True,
    )
    return await repeated(retrying, sender.show_token)


def _faulty_answer(driver: Peer, problem: str) -> ServiceUnavailable:
    """The error of a driver that answers, but with what cannot be."""
    return ServiceUnavailable(driver.name, driver.address, problem, driver.platform, answered=True)


async def _end_unanswered(work: OperationRun, runner: Runner, problem: str) -> End:
    """
    End an operation whose platform does not answer, or not as it must: the outcomes of steps that were sent before are
    unknown.
    """
    progress = work.journal.progress
    if work.taken_over is None:
        return await runner.run(cause=problem)
    for direction in Direction:
        unknown: dict[int, Outcome] = {effect.number: Unknown(problem) for effect in progress.open(direction)}
        if unknown:
            await work.journal.record(unknown, direction)
    return Block(problem)


async def _finish(work: OperationRun, place: PlatformContext, end: End, prober: Prober, lookup: OutcomeLookup) -> None:
    """Record and publish the end of an operation, after its late effects."""
    conclusion = await _concluded(work, end)
    changes = conclusion.changes
    if isinstance(end, Finish) and lookup.may_be_late:
        await _publish_late_writes(work, place, changes.entries, prober)
    blocked = blocked_steps(conclusion.progress) if isinstance(end, Block) else ()
    seen_token = end.seen_token if isinstance(end, Block) else 0
    orphans = NO_ORPHANS
    while True:
        finished = finished_to_pb(conclusion, conclusion.has_stack(changes))
        left_alone = await work.journal.finish(conclusion.change(changes), finished, blocked, seen_token)
        if not left_alone:
            return
        orphans |= left_alone
        conclusion = await _concluded(work, end, orphans)
        changes = conclusion.changes


async def _concluded(work: OperationRun, end: End, orphans: Orphans = NO_ORPHANS) -> Conclusion:
    """The record of the operation; the inventory of the stack is read only if the record depends on it."""
    lease, progress = work.lease, work.journal.progress
    return Conclusion(
        progress,
        end,
        KINDS.member(work.operation.kind),
        lease.stack.id,
        is_transient=lease.is_transient,
        is_pending=lease.is_pending,
        recorded=await lease.recorded() if orphans or needs_record(end) else (),
        orphans=orphans,
    )


async def _publish_late_writes(
    work: OperationRun, place: PlatformContext, entries: Sequence[InventoryEntry], prober: Prober
) -> None:
    """Publish the late effects of the operation (docs/reference/engine.md, "Recovery")."""
    progress, problem = work.journal.progress, ""
    writes: list[LateWrite] = []
    try:
        live, owned = await prober.live_and_owned(
            kinds_to_compare(progress, place.traits), progress.ids.all_resources()
        )
        secrets = await prober.secret_keys() if writes_secrets(progress) else frozenset[str]()
        owned |= {(entry.key.kind, entry.resource_id) for entry in entries} | progress.ids.all_resources()
        writes = late_writes(progress, live, owned, place.traits, secrets)
    except UNREADABLE as error:
        problem = f"late effects could not be looked up: {work.secrets.masked(str(error))}"
    if writes or problem:
        await work.journal.publish(*late_writes_to_pb(writes, problem))
