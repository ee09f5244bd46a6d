"""Outcomes of the effects of a batch whose claims are refused (docs/reference/engine.md, "Claims")."""

from collections.abc import Mapping

from applier_svc.execution.context import ExecutionContext
from applier_svc.execution.sender import retry_delay
from services.engine.claims import Refusal
from services.engine.effects import AnyEffect
from services.engine.operation import Direction
from services.engine.outcome import Failed, Outcome, Outcomes, RejectionReason, Unknown
from services.rpc.call import loop_time


class RefusedClaims:
    """The claims of one batch that were refused."""

    def __init__(self, context: ExecutionContext, direction: Direction, effects: Mapping[int, AnyEffect]) -> None:
        """*effects*: The effects of the batch, by number."""
        self._context = context
        self._direction = direction
        self._effects = effects
        self._seen: set[int] = set()
        # When an effect stops waiting for a claim of another stack, by its number.
        self._give_up_at: dict[int, float] = {}

    async def outcomes(self, refused: Mapping[int, Refusal]) -> Outcomes:
        """
        The outcomes of the effects whose claims were refused, by number.

        Each fails, or waits if the other stack releases its claim soon. New waits are published.
        """
        outcomes_of_refused = {step: self._outcome(self._effects[step], refusal) for step, refusal in refused.items()}
        new = [refused[step] for step in sorted(refused.keys() & self._give_up_at.keys() - self._seen)]
        self._seen |= refused.keys()
        if new:
            await self._context.journal.wait(new, self._direction)
        return outcomes_of_refused

    def met(self, effect: AnyEffect) -> bool:
        """Whether a claim of *effect* was refused before."""
        return effect.number in self._seen

    def _outcome(self, effect: AnyEffect, refusal: Refusal) -> Outcome:
        context, step, now = self._context, effect.number, loop_time()
        waits = effect.awaits_claims(context.traits)
        is_in_time = waits and now < self._give_up_at.setdefault(step, now + context.timeouts.lease)
        if context.journal.progress.is_unresolved(step, self._direction):
            return Unknown(f"it was sent before without a response, and cannot be sent again: {refusal}")
        return Failed(str(refusal), refusal.reason, context.timeouts.watch if is_in_time else None)


def awaits_claim(outcome: Outcome | None) -> bool:
    """Whether an effect with *outcome* waits for a claim of another stack, and not for the platform."""
    is_refused = isinstance(outcome, Failed) and outcome.reason is RejectionReason.RESOURCE_OWNED
    return is_refused and retry_delay(outcome) is not None
