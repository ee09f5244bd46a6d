"""One batch on its way: sent, sent again where it gets no answer, looked up, until the journal knows all outcomes."""

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from applier_svc.execution.claims import RefusedClaims, awaits_claim
from applier_svc.execution.exchange import Exchange
from applier_svc.execution.order import Order
from applier_svc.execution.prober import IdsByName
from applier_svc.execution.retrying import repeated
from applier_svc.execution.sender import asked_wait
from applier_svc.failpoints import reach
from services.core.errors import PkgerError
from services.engine.claims import Refusal
from services.engine.effects import AnyEffect, Create, PutSecret
from services.engine.effects.effect import Sending
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, Outcome, Outcomes, RejectionReason, Skipped, Unknown
from services.rpc.call import loop_time

log = logging.getLogger("pkger.applier")

_NOT_HAPPENED = "the platform gave no answer, and it did not happen"


class Batch:
    """Effects that are sent together."""

    def __init__(
        self,
        exchange: Exchange,
        order: Order,
        effects: Sequence[AnyEffect],
        before: IdsByName | Failed,
        look_again: Callable[[Sequence[AnyEffect]], Awaitable[IdsByName | Failed]],
    ) -> None:
        """
        Take up *effects*.

        Args:
            exchange: The way to the platform.
            order: How they are sent.
            effects: What is sent.
            before: What is there of the kinds whose creations may have to be searched for, or why nobody knows.
            look_again: Tells the same of the kinds of some effects, by now.
        """
        self._exchange = exchange
        self._journal = exchange.journal
        self._progress = exchange.journal.progress
        self._order = order
        self._effects = {effect.number: effect for effect in effects}
        self._before = before
        self._look_again = look_again
        self._claims = RefusedClaims(exchange, order.direction, self._effects)
        self._waiting = list(effects)
        self._intended: set[int] = set()
        # What was sent before and did not happen, as far as could be seen; and what of that has a name that is taken.
        self._retracted = {effect.number for effect in effects if self._progress.was_retracted(effect.number)}
        self._taken: set[int] = set()
        self._outcomes: Outcomes = {}
        self._attempts = 0
        self._started = loop_time()

    async def run(self) -> None:
        """
        Send it, and what is left of it again, while there is time; then note what did not happen.

        Raises:
            PkgerError: Nothing more may be sent, or nothing can be noted.
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
        await self._give_up(self._waiting)

    async def _attempt(self) -> float | None:
        """
        Send what is waiting.

        Returns:
            After how many seconds at least what is still waiting may be sent again, as the platform asks; 0: it does
            not ask. None: nothing is worth sending again.
        """
        if self._order.is_stopped():
            self._skip()
        await self._send([each for each in self._waiting if self._can_be_sent(each)])
        busy = [each for each in self._waiting if self._is_worth_waiting_for(each)]
        again = [each for each in self._waiting if self._is_worth_waiting_for(each) or self._is_worth_repeating(each)]
        if again:
            self._waiting = again
            self._attempts += not busy
            if any(awaits_claim(self._outcomes.get(each.number)) for each in again):
                await self._note_ended()
            return max((asked_wait(self._outcomes[each.number]) or 0.0 for each in busy), default=0.0)
        failed, traits = await self._conclude(), self._exchange.traits
        self._waiting = [effect for effect in failed if not effect.is_repeatable(traits)]
        self._attempts += 1
        # Those that can be repeated were, as often as there was time.
        await self._give_up([effect for effect in failed if effect.is_repeatable(traits)])
        return 0.0 if self._waiting else None

    def _skip(self) -> None:
        """Leave out what was not sent yet."""
        problem = "the operation was stopped before this step"
        unsent = {effect.number for effect in self._waiting if not self._may_have_happened(effect)}
        self._outcomes |= dict.fromkeys(sorted(unsent), Skipped(problem))
        self._waiting = [effect for effect in self._waiting if effect.number not in unsent]

    def _can_be_sent(self, effect: AnyEffect) -> bool:
        """Whether *effect* can be sent; if not, it ends here."""
        problem = self._obstacle(effect)
        if problem is None:
            return True
        if isinstance(problem, Failed) and self._may_have_happened(effect):
            problem = Unknown("it was sent before, and cannot be sent again")
        self._outcomes[effect.number] = problem
        return False

    def _obstacle(self, effect: AnyEffect) -> Outcome | None:
        ids = self._progress.ids
        if not effect.is_possible(ids):
            # What is to go is gone: an undo that failed at first may find that others took it along.
            is_gone = effect.removes
            missing = Failed("what it needs does not exist", RejectionReason.NOT_FOUND)
            return Done(effect.target(ids)) if is_gone else missing
        if isinstance(effect, Create) and (there := effect.in_its_place(ids)):
            problem = f"it takes the place of {effect.step.key.kind} {there}, which is not gone"
            return Failed(problem, RejectionReason.NAME_TAKEN)
        if isinstance(self._before, Failed) and effect.is_searched_for(self._exchange.traits):
            return self._before
        return None

    async def _send(self, effects: Sequence[AnyEffect]) -> None:
        if not effects:
            return
        sendings = {effect.number: self._progress.sending(effect) for effect in effects}
        sent_before = {effect.number for effect in effects if self._may_have_happened(effect)}
        fresh = [effect for effect in effects if effect.number not in self._intended]
        await self._intend(fresh)
        now_sent = self._intended - sent_before
        if sent_first := [effect for effect in fresh if effect.number in now_sent]:
            await self._refuse_known_secrets(sent_first)
        answers = await self._answers([effect for effect in effects if effect.number in self._intended], sendings)
        for step, answer in answers.items():
            never_answered = Unknown("it was sent before, and not answered") if step in sent_before else None
            earlier = self._outcomes.get(step, never_answered)
            self._outcomes[step] = _with_earlier(earlier, self._questioned(step, answer))
        reach(f"after_{self._order.place}send")

    async def _intend(self, effects: Sequence[AnyEffect]) -> None:
        """Note that *effects* are about to be sent, but for those that need what another stack has."""
        await self._look_after_waiting(effects)
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
        """Let those of *effects* fail that are to make a secret which somebody has written since the plan was made."""
        new = [effect for effect in effects if isinstance(effect, PutSecret) and not effect.overwrites]
        if not new or self._order.direction is Direction.UNDO:
            return
        held = await self._exchange.inquiry.secret_keys()
        for effect in new:
            if isinstance(held, Failed) or effect.step.key.name in held:
                known = Failed("somebody else has written it since the plan was made", RejectionReason.CHANGED)
                self._outcomes[effect.number] = held if isinstance(held, Failed) else known
                self._intended.discard(effect.number)

    async def _look_after_waiting(self, effects: Sequence[AnyEffect]) -> None:
        """Look again at what is there: whoever had a name, and let go of it, has made something of that name."""
        waited = [each for each in effects if self._claims.met(each)]
        if any(each.is_searched_for(self._exchange.traits) for each in waited):
            self._before = await self._look_again(effects)

    def _before_ids(self, effect: AnyEffect) -> tuple[str, ...]:
        """Of a creation that may have to be searched for: what has its kind and display name before it is sent."""
        spec, traits = effect.step.new_spec, self._exchange.traits
        if isinstance(self._before, Failed) or spec is None or not effect.is_searched_for(traits):
            return ()
        return self._before.get(traits.compared(effect.step.key.kind, spec), ())

    async def _answers(self, effects: Sequence[AnyEffect], sendings: Mapping[int, Sending]) -> Outcomes:
        if not effects:
            return {}
        exchange = self._exchange
        key = f"{exchange.operation}/{{}}/{self._order.direction.lower()}"
        try:
            return await exchange.sender.send(effects, sendings, key)
        except PkgerError:
            raise
        except Exception as error:
            trace = exchange.secrets.masked(traceback.format_exc())
            log.error("batch cut off", extra={"operation": exchange.operation, "trace": trace})  # noqa: TRY400
            exchange.sender.note_unanswered()
            problem = exchange.secrets.masked(repr(error))
            return {effect.number: Unknown(f"a defect of the applier: {problem}") for effect in effects}

    def _questioned(self, step: int, answer: Outcome) -> Outcome:
        """*answer*, unless it gives the lie to what was concluded of an earlier sending: then that is open again."""
        effect = self._effects[step]
        is_taken = effect.makes and isinstance(answer, Failed) and answer.reason is RejectionReason.NAME_TAKEN
        if not is_taken or step not in self._retracted or effect.is_resolved_by_retry(self._exchange.traits):
            return answer
        self._taken.add(step)
        return Unknown("it was sent before, and not answered; sent again: its name is taken")

    async def _conclude(self) -> list[AnyEffect]:
        """Note what is known, and look what became of the rest; the effects that certainly did not happen."""
        outcomes, self._outcomes = self._outcomes, {}
        if self._order.direction is Direction.UNDO:
            lacking = [self._effects[step] for step, outcome in outcomes.items() if _lacks_something(outcome)]
            outcomes |= await self._exchange.inquiry.undone_by_others(lacking)
        await self._journal.record(outcomes, self._order.direction)
        reach(f"after_{self._order.place}record")
        doubtful = [self._effects[step] for step, outcome in outcomes.items() if isinstance(outcome, Unknown)]
        failed = await self._exchange.inquiry.look_up(doubtful, self._order.direction, self._taken)
        numbers = {effect.number for effect in failed}
        self._retracted |= numbers
        self._intended -= numbers
        return failed

    async def _note_ended(self) -> None:
        """Note what is certain of those that wait for nothing: whoever has what others wait for may wait for them."""
        waiting = {effect.number for effect in self._waiting}
        ended = {
            step: outcome
            for step, outcome in self._outcomes.items()
            if step not in waiting and not isinstance(outcome, Unknown)
        }
        self._outcomes = {step: outcome for step, outcome in self._outcomes.items() if step not in ended}
        if ended:
            await self._journal.record(ended, self._order.direction)

    async def _give_up(self, effects: Sequence[AnyEffect]) -> None:
        """Note *effects* as failed: they did not happen, however often they were sent."""
        if effects:
            outcomes: Outcomes = {effect.number: Failed(_NOT_HAPPENED) for effect in effects}
            await self._journal.record(outcomes, self._order.direction)

    def _may_have_happened(self, effect: AnyEffect) -> bool:
        return self._progress.is_unresolved(effect.number, self._order.direction)

    def _is_worth_repeating(self, effect: AnyEffect) -> bool:
        """Whether nobody knows what became of *effect*, and it may be sent again."""
        is_unknown = isinstance(self._outcomes.get(effect.number), Unknown)
        return is_unknown and effect.number in self._intended and effect.is_repeatable(self._exchange.traits)

    def _is_worth_waiting_for(self, effect: AnyEffect) -> bool:
        """Whether the platform asks for patience with *effect*, and it may be sent again."""
        outcome = self._outcomes.get(effect.number)
        may_repeat = isinstance(outcome, Failed) or effect.is_repeatable(self._exchange.traits)
        return may_repeat and asked_wait(outcome) is not None

    def _wait(self, state: RetryCallState) -> float:
        asked: float = state.outcome.result() if state.outcome else 0.0
        return max(asked, self._exchange.timeouts.between_attempts(state))

    def _is_over(self, state: RetryCallState) -> bool:
        """Whether there is no time for another attempt: each sort of waiting has its own."""
        timeouts, is_stubborn = self._exchange.timeouts, self._order.is_stubborn
        if any(awaits_claim(self._outcomes.get(effect.number)) for effect in self._waiting):
            return False
        if any(self._is_worth_waiting_for(effect) for effect in self._waiting):
            return not self._exchange.affords(state.upcoming_sleep, is_stubborn)
        if is_stubborn:
            return loop_time() - self._started >= timeouts.stubborn
        return self._attempts >= timeouts.attempts


def _with_earlier(earlier: Outcome | None, answer: Outcome) -> Outcome:
    """
    What *answer* says of a step that was sent before.

    A refusal of the mutation says that it never took effect, or it would count as done (driver.proto). A refusal for
    any other reason, such as credentials that ran out meanwhile, says nothing of what was sent before; nor does one
    that finds something else there, which somebody may have written since.
    """
    match earlier, answer:
        case Unknown(), Done(resource_id):
            # What is there now may be somebody's edit of what an earlier sending made.
            return Done(resource_id)
        case Unknown(before), Failed(now, None | RejectionReason.CHANGED, retry_after):
            return Unknown(f"{before}; sent again: {now}", retry_after=retry_after)
        case _:
            return answer


def _lacks_something(outcome: Outcome) -> bool:
    """Whether something that is needed is not there."""
    return isinstance(outcome, Failed) and outcome.reason is RejectionReason.NOT_FOUND
