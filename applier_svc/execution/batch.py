"""One batch: sent, retried where it gets no response, looked up, until the journal has every outcome."""

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from applier_svc.execution.claim_outcomes import RefusedClaims, awaits_claim
from applier_svc.execution.context import ExecutionContext
from applier_svc.execution.prober import IdsByName
from applier_svc.execution.retries import repeated
from applier_svc.execution.send_mode import SendMode
from applier_svc.execution.sender import retry_delay
from applier_svc.failpoints import reach
from services.core.errors import PkgerError
from services.engine.claims import Refusal
from services.engine.effects import AnyEffect, Create, PutSecret
from services.engine.effects.effect import Sending
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, Outcome, Outcomes, RejectionReason, Skipped, Unknown
from services.rpc.call import loop_time

log = logging.getLogger("pkger.applier")

_NO_EFFECT = "the platform sent no response, and the step had no effect"


class Batch:
    """Effects that are sent together."""

    def __init__(
        self,
        context: ExecutionContext,
        order: SendMode,
        effects: Sequence[AnyEffect],
        before: IdsByName | Failed,
        relist: Callable[[Sequence[AnyEffect]], Awaitable[IdsByName | Failed]],
        is_last: bool,
    ) -> None:
        """
        Prepare to send *effects*.

        Args:
            context: The connection to the platform.
            order: How the effects are sent.
            effects: The effects of the batch.
            before: Ids of the resources of the kinds whose creations may have to be searched for, or why the resources
                cannot be listed.
            relist: Lists the resources of the kinds of some effects again.
            is_last: Whether no other batch runs at the same time, or follows.
        """
        self._context = context
        self._journal = context.journal
        self._progress = context.journal.progress
        self._order = order
        self._effects = {effect.number: effect for effect in effects}
        self._before = before
        self._relist = relist
        self._is_last = is_last
        self._claims = RefusedClaims(context, order.direction, self._effects)
        self._waiting = list(effects)
        self._intended: set[int] = set()
        # Retracted steps (sent before, no effect found), and the retracted steps whose name was taken on the retry.
        self._retracted = {effect.number for effect in effects if self._progress.was_retracted(effect.number)}
        self._taken: set[int] = set()
        self._outcomes: Outcomes = {}
        self._attempts = 0
        self._started = loop_time()

    async def run(self) -> None:
        """
        Send the effects, retry those without an outcome while there is time, and record the rest as failed.

        Raises:
            PkgerError: Nothing more may be sent, or the journal cannot be written.
        """
        retrying = AsyncRetrying(
            retry=retry_if_result(lambda again: again is not None),
            wait=self._wait,
            stop=self._is_over,
            retry_error_callback=lambda state: None,
        )
        await repeated(retrying, self._attempt)
        if self._outcomes:
            self._waiting = await self._conclude()
        await self._fail(self._waiting)

    async def _attempt(self) -> float | None:
        """
        Send the waiting effects.

        Returns:
            The shortest pause in seconds before the next attempt that the platform asks for; 0: it asks for none.
            None: no effect is to be sent again.
        """
        if self._order.is_stopped():
            self._skip()
        await self._send([each for each in self._waiting if self._can_be_sent(each)])
        throttled = [each for each in self._waiting if self._is_worth_waiting_for(each)]
        again = [each for each in self._waiting if self._is_worth_waiting_for(each) or self._is_worth_repeating(each)]
        if again:
            self._waiting = again
            self._attempts += not throttled
            if any(awaits_claim(self._outcomes.get(each.number)) for each in again):
                await self._record_ended()
            return max((retry_delay(self._outcomes[each.number]) or 0.0 for each in throttled), default=0.0)
        failed, traits = await self._conclude(), self._context.traits
        self._waiting = [effect for effect in failed if not effect.is_repeatable(traits)]
        self._attempts += 1
        # Repeatable effects were already retried as often as the timeouts allow.
        await self._fail([effect for effect in failed if effect.is_repeatable(traits)])
        return 0.0 if self._waiting else None

    def _skip(self) -> None:
        """Skip the effects that were not sent yet."""
        problem = "the operation was stopped before this step"
        unsent = {effect.number for effect in self._waiting if not self._is_unresolved(effect)}
        self._outcomes |= dict.fromkeys(sorted(unsent), Skipped(problem))
        self._waiting = [effect for effect in self._waiting if effect.number not in unsent]

    def _can_be_sent(self, effect: AnyEffect) -> bool:
        """Whether *effect* can be sent; if not, record why as its outcome."""
        problem = self._obstacle(effect)
        if problem is None:
            return True
        if isinstance(problem, Failed) and self._is_unresolved(effect):
            problem = Unknown("it was sent before without a response, and cannot be sent again")
        self._outcomes[effect.number] = problem
        return False

    def _obstacle(self, effect: AnyEffect) -> Outcome | None:
        ids = self._progress.ids
        if not effect.is_possible(ids):
            # The resource to remove is gone already: another step may have removed it after this undo first failed.
            is_gone = effect.removes
            missing = Failed("a resource that it needs does not exist", RejectionReason.NOT_FOUND)
            return Done(effect.target(ids)) if is_gone else missing
        if isinstance(effect, Create) and (there := effect.in_its_place(ids)):
            problem = f"it replaces {effect.step.key.kind} {there}, which still exists"
            return Failed(problem, RejectionReason.NAME_TAKEN)
        if isinstance(self._before, Failed) and effect.is_searched_for(self._context.traits):
            return self._before
        return None

    async def _send(self, effects: Sequence[AnyEffect]) -> None:
        if not effects:
            return
        sendings = {effect.number: self._progress.sending(effect) for effect in effects}
        sent_before = {effect.number for effect in effects if self._is_unresolved(effect)}
        fresh = [effect for effect in effects if effect.number not in self._intended]
        await self._intend(fresh)
        now_sent = self._intended - sent_before
        if sent_first := [effect for effect in fresh if effect.number in now_sent]:
            await self._refuse_known_secrets(sent_first)
        answers = await self._answers([effect for effect in effects if effect.number in self._intended], sendings)
        for step, answer in answers.items():
            never_answered = Unknown("it was sent before without a response") if step in sent_before else None
            earlier = self._outcomes.get(step, never_answered)
            self._outcomes[step] = _with_earlier(earlier, self._reconsidered(step, answer))
        reach(f"after_{self._order.place}send")

    async def _intend(self, effects: Sequence[AnyEffect]) -> None:
        """Write the intents of *effects*, except of those whose claims are refused."""
        await self._relist_after_waiting(effects)
        refused: dict[int, Refusal] = {}
        while effects:
            steps = [effect.number for effect in effects]
            there = {effect.number: self._before_ids(effect) for effect in effects}
            before_ids = {step: ids for step, ids in there.items() if ids}
            refusals = await self._journal.intend(steps, self._order.direction, before_ids)
            if not refusals:
                self._intended.update(steps)
                reach(f"after_{self._order.place}intent")
                break
            refused |= {refusal.claim.step: refusal for refusal in refusals}
            effects = [effect for effect in effects if effect.number not in refused]
        self._outcomes |= await self._claims.outcomes(refused)

    async def _refuse_known_secrets(self, effects: Sequence[AnyEffect]) -> None:
        """Fail the creations of secrets that exist by now, because another writer made them since the plan."""
        new = [effect for effect in effects if isinstance(effect, PutSecret) and not effect.overwrites]
        if not new or self._order.direction is Direction.UNDO:
            return
        live_keys = await self._context.lookup.secret_keys()
        for effect in new:
            if isinstance(live_keys, Failed) or effect.step.key.name in live_keys:
                changed = Failed("another writer has written it since the plan was made", RejectionReason.CHANGED)
                self._outcomes[effect.number] = live_keys if isinstance(live_keys, Failed) else changed
                self._intended.discard(effect.number)

    async def _relist_after_waiting(self, effects: Sequence[AnyEffect]) -> None:
        """List the resources again: the stack that held a claim on a name may have created a resource of that name."""
        waited = [each for each in effects if self._claims.met(each)]
        if any(each.is_searched_for(self._context.traits) for each in waited):
            self._before = await self._relist(effects)

    def _before_ids(self, effect: AnyEffect) -> tuple[str, ...]:
        """Ids of the resources that have the kind and display name of a searched creation before it is sent."""
        spec, traits = effect.step.new_spec, self._context.traits
        if isinstance(self._before, Failed) or spec is None or not effect.is_searched_for(traits):
            return ()
        return self._before.get(traits.compared(effect.step.key.kind, spec), ())

    async def _answers(self, effects: Sequence[AnyEffect], sendings: Mapping[int, Sending]) -> Outcomes:
        if not effects:
            return {}
        context = self._context
        key = f"{context.operation}/{{}}/{self._order.direction.lower()}"
        try:
            return await context.sender.send(effects, sendings, key)
        except PkgerError:
            raise
        except Exception as error:
            trace = context.secrets.masked(traceback.format_exc())
            log.error("batch interrupted by a defect", extra={"operation_id": context.operation, "trace": trace})  # noqa: TRY400
            context.sender.mark_unanswered()
            problem = context.secrets.masked(repr(error))
            return {effect.number: Unknown(f"a defect of the applier: {problem}") for effect in effects}

    def _reconsidered(self, step: int, answer: Outcome) -> Outcome:
        """
        *answer*, unless it contradicts the earlier conclusion that the step had no effect: then the outcome is unknown.
        """
        effect = self._effects[step]
        is_taken = effect.makes and isinstance(answer, Failed) and answer.reason is RejectionReason.NAME_TAKEN
        if not is_taken or step not in self._retracted or effect.is_resolved_by_retry(self._context.traits):
            return answer
        self._taken.add(step)
        return Unknown("it was sent before without a response; sent again: its name is taken")

    async def _conclude(self) -> list[AnyEffect]:
        """Record the known outcomes and look up the unknown ones; returns the effects that certainly had no effect."""
        outcomes, self._outcomes = self._outcomes, {}
        if self._order.direction is Direction.UNDO:
            lacking = [self._effects[step] for step, outcome in outcomes.items() if _is_not_found(outcome)]
            outcomes |= await self._context.lookup.already_undone(lacking)
        await self._journal.record(outcomes, self._order.direction, may_wait=self._is_last)
        reach(f"after_{self._order.place}record")
        unknown = [self._effects[step] for step, outcome in outcomes.items() if isinstance(outcome, Unknown)]
        failed = await self._context.lookup.look_up(unknown, self._order.direction, self._taken)
        numbers = {effect.number for effect in failed}
        self._retracted |= numbers
        self._intended -= numbers
        return failed

    async def _record_ended(self) -> None:
        """
        Record the certain outcomes of the effects that do not wait, because the stack whose claim the others wait for
        may itself wait for one of these effects.
        """
        waiting = {effect.number for effect in self._waiting}
        ended = {
            step: outcome
            for step, outcome in self._outcomes.items()
            if step not in waiting and not isinstance(outcome, Unknown)
        }
        self._outcomes = {step: outcome for step, outcome in self._outcomes.items() if step not in ended}
        if ended:
            await self._journal.record(ended, self._order.direction)

    async def _fail(self, effects: Sequence[AnyEffect]) -> None:
        """Record *effects* as failed: every attempt to send them had no effect."""
        if effects:
            outcomes: Outcomes = {effect.number: Failed(_NO_EFFECT) for effect in effects}
            await self._journal.record(outcomes, self._order.direction)

    def _is_unresolved(self, effect: AnyEffect) -> bool:
        return self._progress.is_unresolved(effect.number, self._order.direction)

    def _is_worth_repeating(self, effect: AnyEffect) -> bool:
        """Whether the outcome of *effect* is unknown and it may be sent again."""
        is_unknown = isinstance(self._outcomes.get(effect.number), Unknown)
        return is_unknown and effect.number in self._intended and effect.is_repeatable(self._context.traits)

    def _is_worth_waiting_for(self, effect: AnyEffect) -> bool:
        """Whether *effect* is asked to wait, and may be sent again after that."""
        outcome = self._outcomes.get(effect.number)
        may_repeat = isinstance(outcome, Failed) or effect.is_repeatable(self._context.traits)
        return may_repeat and retry_delay(outcome) is not None

    def _wait(self, state: RetryCallState) -> float:
        retry_after: float = state.outcome.result() if state.outcome else 0.0
        return max(retry_after, self._context.timeouts.between_attempts(state))

    def _is_over(self, state: RetryCallState) -> bool:
        """Whether there is no time for another attempt: each cause of waiting has its own limit."""
        timeouts, until_resolved = self._context.timeouts, self._order.until_resolved
        if any(awaits_claim(self._outcomes.get(effect.number)) for effect in self._waiting):
            return False
        if any(self._is_worth_waiting_for(effect) for effect in self._waiting):
            return not self._context.affords(state.upcoming_sleep, until_resolved)
        if until_resolved:
            return loop_time() - self._started >= timeouts.resolution
        return self._attempts >= timeouts.attempts


def _with_earlier(earlier: Outcome | None, answer: Outcome) -> Outcome:
    """
    The outcome of a step that was sent before, after its latest *answer*.

    A rejection of the mutation itself proves that the earlier request had no effect: otherwise the mutation counts as
    done (driver.proto). A rejection without a reason, as for expired credentials, proves nothing about the earlier
    request. Neither does CHANGED: another writer may have changed the resource after that request.
    """
    match earlier, answer:
        case Unknown(), Done(resource_id):
            # The observed spec may be an edit of the resource that the earlier request made: drop it.
            return Done(resource_id)
        case Unknown(before), Failed(now, None | RejectionReason.CHANGED, retry_after):
            return Unknown(f"{before}; sent again: {now}", retry_after=retry_after)
        case _:
            return answer


def _is_not_found(outcome: Outcome) -> bool:
    """Whether a resource that the effect needs does not exist."""
    return isinstance(outcome, Failed) and outcome.reason is RejectionReason.NOT_FOUND
