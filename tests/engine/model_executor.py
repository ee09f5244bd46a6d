"""Sends effects as ``applier_svc/execution`` does: an intent first, then the outcome, with retries."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.core.model import Resource
from services.engine.batches import batches, rounds
from services.engine.effects import AnyEffect, Create
from services.engine.operation import Direction
from services.engine.outcome import (
    Done,
    Failed,
    Finding,
    NoEffect,
    Outcome,
    Outcomes,
    RejectionReason,
    Skipped,
    Unknown,
)
from services.engine.progress import Progress
from services.engine.step_life import StepRecord
from tests.engine.model_platform import Line
from tests.engine.model_store import Store

Points = Generator[str, None, None]
"""The points at which a process could die, each named for the event before it."""

ATTEMPTS, ATTEMPTS_UNTIL_RESOLVED, THROTTLED_ATTEMPTS = 2, 3, 2
"""Number of attempts for a mutation, for one that needs an outcome, and of more attempts when throttled."""


@dataclass(frozen=True)
class Order:
    """
    How effects are sent.

    Attributes:
        direction: Whether they are steps of the plan or inverses.
        until_resolved: Whether the operation needs the outcomes to continue.
        is_stoppable: Whether unsent steps are skipped after a cancellation.
    """

    direction: Direction
    until_resolved: bool = False
    is_stoppable: bool = False


class Executor:
    """
    Sends the effects of one operation.

    Attributes:
        progress: The progress of the operation.
        secrets: The values of its secrets, by key.
    """

    def __init__(self, store: Store, line: Line, progress: Progress, secrets: Mapping[str, str]) -> None:
        self.store = store
        self.line = line
        self.traits = line.platform.traits
        self.progress = progress
        self.secrets = secrets

    def journal(self, records: Iterable[StepRecord], outcomes: Mapping[int, Outcome] | None = None) -> Points:
        """Write *records* to the journal, and fold them into the progress."""
        if written := list(records):
            self.store.write(written)
            self.progress.fold(written, outcomes)
            yield "journaled"

    def record(self, outcomes: Mapping[int, Outcome], direction: Direction) -> Points:
        """Write the outcomes of steps to the journal."""
        ended = [self.progress.ended(step, outcome, direction) for step, outcome in outcomes.items()]
        yield from self.journal(ended, outcomes)

    def send(self, effects: Sequence[AnyEffect], order: Order) -> Points:
        """Send *effects*, until the journal has an outcome of each."""
        before = [*self.line.platform.live.values()]
        for turn in rounds(effects):
            for batch in batches(turn, self.traits.max_batch_size):
                yield from _Batch(self, batch, order, before).run()

    def look_up(self, effects: Sequence[AnyEffect], direction: Direction) -> Generator[str, None, list[AnyEffect]]:
        """
        Look up the outcomes of *effects*, which got no response.

        Effects with an idempotency key are skipped; resending them is safe and returns the outcome.

        Returns:
            The effects that certainly had no effect.
        """
        found = self._findings([effect for effect in effects if not effect.is_resolved_by_retry(self.traits)])
        failed = [effect for effect in effects if isinstance(found.get(effect.number), NoEffect)]
        yield from self.journal(self.progress.retracted(effect.number, direction) for effect in failed)
        outcomes = {step: finding for step, finding in found.items() if not isinstance(finding, NoEffect)}
        yield from self.record(outcomes, direction)
        return failed

    def _findings(self, effects: Sequence[AnyEffect]) -> dict[int, Finding]:
        ids, live = self.progress.ids, self.line.platform.live
        owned = ids.known() | {(entry.key.kind, entry.resource_id) for entry in self.store.record.resources}
        found: dict[int, Finding] = {}
        for effect in effects:
            kind, sending = effect.step.key.kind, effect.sending(ids, self.progress.before_ids(effect.number))
            if isinstance(effect, Create):
                of_kind = [resource for resource in live.values() if resource.kind == kind]
                taken = {resource_id for owned_kind, resource_id in owned if owned_kind == kind}
                finding = effect.finding_among(sending, of_kind, taken, self.traits.kinds[kind])
                # One resource is the result of one creation only.
                owned |= {(kind, finding.resource_id)} if isinstance(finding, Done) else set()
            else:
                finding = effect.finding(sending, live.get(sending.resource_id), self.traits.kinds[kind])
            found[effect.number] = finding
        return found


class _Batch:
    """Effects that are sent together."""

    def __init__(
        self, executor: Executor, effects: Sequence[AnyEffect], order: Order, before: Sequence[Resource]
    ) -> None:
        """*before* are the resources of the platform before the first effect was sent."""
        self._executor = executor
        self._progress = executor.progress
        self._traits = executor.traits
        self._order = order
        self._before = before
        self._effects = {effect.number: effect for effect in effects}
        self._waiting = list(effects)
        self._intended: set[int] = set()
        self._outcomes: Outcomes = {}

    def run(self) -> Points:
        """Send the batch, retry what is left of it, and journal the effects that failed."""
        attempts, waits = ATTEMPTS_UNTIL_RESOLVED if self._order.until_resolved else ATTEMPTS, THROTTLED_ATTEMPTS
        while attempts and waits:
            if self._order.is_stoppable and self._executor.store.cancel_requested and not self._progress.sealed:
                self._skip()
            yield from self._send([effect for effect in self._waiting if self._can_be_sent(effect)])
            busy = [effect for effect in self._waiting if self._is_busy(effect)]
            lost = [effect for effect in self._waiting if effect not in busy and self._is_lost(effect)]
            if busy or lost:
                self._waiting = busy + lost
            else:
                failed = yield from self._conclude()
                self._waiting = [effect for effect in failed if not effect.is_repeatable(self._traits)]
                # Repeatable effects used up their attempts already.
                yield from self._give_up([effect for effect in failed if effect not in self._waiting])
            if not self._waiting:
                return
            attempts, waits = (attempts, waits - 1) if busy else (attempts - 1, waits)
        if self._outcomes:
            self._waiting = yield from self._conclude()
        yield from self._give_up(self._waiting)

    def _skip(self) -> None:
        unsent = [effect for effect in self._waiting if not self._is_unresolved(effect)]
        self._outcomes |= {effect.number: Skipped("the operation was stopped") for effect in unsent}
        self._waiting = [effect for effect in self._waiting if effect not in unsent]

    def _can_be_sent(self, effect: AnyEffect) -> bool:
        """Whether all resources that *effect* needs exist; if not, it ends here."""
        is_possible = effect.is_possible(self._progress.ids)
        is_in_the_way = isinstance(effect, Create) and bool(effect.in_its_place(self._progress.ids))
        if is_possible and not is_in_the_way:
            return True
        if effect.removes:
            # The resource to remove is gone.
            self._outcomes[effect.number] = Done(effect.target(self._progress.ids))
        elif self._is_unresolved(effect):
            self._outcomes[effect.number] = Unknown("it was sent before, and cannot be sent again")
        else:
            self._outcomes[effect.number] = Failed("what it needs does not exist", RejectionReason.NOT_FOUND)
        return False

    def _send(self, effects: Sequence[AnyEffect]) -> Points:
        executor, direction = self._executor, self._order.direction
        sendings = {effect.number: effect.sending(self._progress.ids) for effect in effects}
        sent_before = [effect.number for effect in effects if self._is_unresolved(effect)]
        intended = [effect for effect in effects if effect.number not in self._intended]
        yield from executor.journal(
            self._progress.intent(each.number, direction, self._before_ids(each)) for each in intended
        )
        self._intended |= sendings.keys()
        for effect in effects:
            executor.store.demand_intent(effect, direction)
            value = executor.secrets.get(effect.step.key.name, "")
            answer = executor.line.send(effect, sendings[effect.number], direction, value)
            earlier = Unknown("it was sent before, and not answered") if effect.number in sent_before else None
            self._outcomes[effect.number] = _with_earlier(self._outcomes.get(effect.number, earlier), answer)
            yield "sent"

    def _before_ids(self, effect: AnyEffect) -> tuple[str, ...]:
        """Ids with the kind and name of a creation that may be searched for, before it is sent; else none."""
        if not effect.is_searched_for(self._traits) or effect.step.new_spec is None:
            return ()
        kind, compared = effect.step.key.kind, self._traits.compared
        name = compared(kind, effect.step.new_spec)
        return tuple(each.id for each in self._before if each.kind == kind and compared(kind, each.spec) == name)

    def _conclude(self) -> Generator[str, None, list[AnyEffect]]:
        """Journal the outcomes, and look up unknown ones. Returns the effects that certainly had no effect."""
        outcomes, self._outcomes = self._outcomes, {}
        yield from self._executor.record(outcomes, self._order.direction)
        doubtful = [self._effects[step] for step, outcome in outcomes.items() if isinstance(outcome, Unknown)]
        failed = yield from self._executor.look_up(doubtful, self._order.direction)
        self._intended -= {effect.number for effect in failed}
        return failed

    def _give_up(self, effects: Sequence[AnyEffect]) -> Points:
        failed: Outcomes = {effect.number: Failed("no response, and no effect") for effect in effects}
        yield from self._executor.record(failed, self._order.direction)

    def _is_unresolved(self, effect: AnyEffect) -> bool:
        return self._progress.is_unresolved(effect.number, self._order.direction)

    def _is_lost(self, effect: AnyEffect) -> bool:
        """Whether the outcome of *effect* is unknown, and it may be sent again."""
        is_unknown = isinstance(self._outcomes.get(effect.number), Unknown)
        return is_unknown and effect.number in self._intended and effect.is_repeatable(self._traits)

    def _is_busy(self, effect: AnyEffect) -> bool:
        """Whether the platform throttles *effect*, and it may be sent again."""
        outcome = self._outcomes.get(effect.number)
        if not isinstance(outcome, Failed | Unknown) or outcome.retry_after is None:
            return False
        return isinstance(outcome, Failed) or effect.is_repeatable(self._traits)


def _with_earlier(earlier: Outcome | None, answer: Outcome) -> Outcome:
    """
    The outcome of a step that was sent before, after another *answer*.

    A failure without a reason does not determine the outcome of the earlier mutation.
    """
    match earlier, answer:
        case Unknown(before), Failed(now, None, retry_after):
            return Unknown(f"{before}; sent again: {now}", retry_after=retry_after)
        case _:
            return answer
