"""The progress of an operation: the fold of its step records, the same while it runs and when it is resumed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from services.core.model import Plan, ResourceKey
from services.engine.effects import AnyEffect, effect_of, inverse_of
from services.engine.effects.effect import Sending
from services.engine.expectation import Expectation
from services.engine.ids import ResourceIds
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.step_state import (
    IN_EFFECT,
    OF_UNDO,
    OPEN,
    STAYS,
    StepRecord,
    StepState,
    ended,
    may_follow,
    retracted,
    sent,
)

_TOOK_EFFECT = IN_EFFECT | {StepState.UNDONE}

_NOT_DONE = frozenset({StepState.FAILED, StepState.UNKNOWN, StepState.SKIPPED, StepState.GIVEN_UP})
"""The final or open states of a step that did not take effect, as far as is known."""


class Progress:
    """
    The known states of the steps of one operation.

    Attributes:
        plan: Its plan.
        effects: The effect of each step, by its number.
        ids: The resource of each key now.
        sealed: Whether the operation passed the seal: nothing is undone after it, whatever fails
            (docs/reference/engine.md, "Steps and stages").
        rollback_cause: Why the operation rolls back; empty while it goes forward.
        is_undoing: Whether this run has begun to roll back.
        has_retried_creations: Whether this run has sent the creations with an idempotency key and no outcome again.
        cause: Why the operation has to roll back, once certain: the first failure, or why the record was refused.
    """

    def __init__(self, plan: Plan, sealed: bool = False, rollback_cause: str = "") -> None:
        """Start with all steps planned."""
        self.plan = plan
        self.effects: tuple[AnyEffect, ...] = tuple(map(effect_of, plan.steps))
        self.ids = ResourceIds(plan)
        self.sealed = sealed
        self.rollback_cause = rollback_cause
        self.is_undoing = False
        self.has_retried_creations = False
        self.cause = ""
        self._records: dict[int, StepRecord] = {}
        self._done_count = 0
        self._resources: dict[int, str] = {}
        # The content of each written resource: it may differ from the plan.
        self._last_writes: dict[ResourceKey, Expectation] = {}
        self._unknown: dict[tuple[int, Direction], Unknown] = {}
        self._open: dict[int, Direction] = {}
        self._not_done: set[int] = set()
        # Steps that an earlier applier ended, and that are retried.
        self._again: set[int] = set()
        # Secrets that an earlier applier wrote: another writer may have overwritten them since.
        self._doubtful_secrets: set[int] = set()

    def fold(self, records: Iterable[StepRecord], outcomes: Mapping[int, Outcome] | None = None) -> None:
        """
        Apply *records*.

        Args:
            records: The new records, at most one for a step.
            outcomes: Details of unknown outcomes, which records do not have.

        Raises:
            ValueError: As ``check``.
        """
        for record in records:
            self.check([record])
            self._know(record)
            if record.state in OPEN:
                self._open[record.step] = _direction(record.state)
            outcome = outcomes.get(record.step) if outcomes else None
            if isinstance(outcome, Unknown):
                self._unknown[record.step, _direction(record.state)] = outcome

    def state(self, step: int) -> StepState:
        """The state of a step."""
        return self._records[step].state if step in self._records else StepState.PLANNED

    def outcome(self, step: int) -> Outcome | None:
        """The outcome of a step; None while it is open, and for a step that was not sent."""
        record = self._records.get(step)
        if record is None or step in self._again or self._open.get(step) is Direction.DO:
            return Done(self._resources.get(step, "")) if self.took_effect(step) else None
        match record.state:
            case StepState.FAILED:
                return Failed(record.message, record.reason)
            case StepState.UNKNOWN:
                return self._unknown.get((step, Direction.DO)) or Unknown(record.message)
            case StepState.SKIPPED:
                return Skipped(record.message)
            case StepState.GIVEN_UP:
                return GivenUp(record.message)
            case state:
                return Done(self._resources.get(step, "")) if state in _TOOK_EFFECT else None

    def undo_outcome(self, step: int) -> Outcome | None:
        """The outcome of the undo of a step; None while it is open, and before it begins."""
        record = self._records.get(step)
        if record is None or step in self._again or self._open.get(step) is Direction.UNDO:
            return None
        match record.state:
            case StepState.UNDONE:
                return Done(record.resource_id)
            case StepState.UNDO_FAILED:
                return Failed(record.message, record.reason)
            case StepState.UNDO_UNKNOWN:
                return self._unknown.get((step, Direction.UNDO)) or Unknown(record.message)
            case _:
                return None

    def open(self, direction: Direction) -> list[AnyEffect]:
        """The steps, or their inverses, that may have been sent and were not looked up yet, by number."""
        effects = [self.effects[step] for step in sorted(self._open) if self._open[step] is direction]
        return effects if direction is Direction.DO else [inverse_of(effect) for effect in effects]

    def not_done(self) -> list[tuple[AnyEffect, Outcome]]:
        """The steps that ended and are not done, with their outcomes, by number."""
        ended = ((self.effects[step], self.outcome(step)) for step in sorted(self._not_done))
        return [(effect, outcome) for effect, outcome in ended if outcome is not None]

    @property
    def was_sent(self) -> bool:
        """Whether any step, or its inverse, may have had an effect."""
        return any(record.state not in (StepState.PLANNED, StepState.SKIPPED) for record in self._records.values())

    def was_retracted(self, step: int) -> bool:
        """Whether a step was sent before, and had no effect as far as a lookup could see."""
        return step in self._records and self.state(step) is StepState.PLANNED

    def is_pending(self, step: int) -> bool:
        """Whether a step is still to be sent, or to be sent again because only a response shows its outcome."""
        state = self.state(step)
        # Most steps are done, or not sent yet: for these, no outcome is made.
        return state is StepState.PLANNED or (state not in _TOOK_EFFECT and self.outcome(step) is None)

    def took_effect(self, step: int) -> bool:
        """Whether a step certainly took effect."""
        return self.state(step) in _TOOK_EFFECT

    def was_undone(self, step: int) -> bool:
        """Whether a step was certainly undone."""
        return self.state(step) is StepState.UNDONE

    def stands(self, step: int) -> bool:
        """Whether a step is in effect, as far as is known."""
        return self.state(step) in IN_EFFECT

    def stays(self, step: int) -> bool:
        """Whether a step is in effect and never undone, by a decision."""
        return self.state(step) in STAYS

    def is_kept(self, step: int) -> bool:
        """Whether an existing resource counts as the result of a step, by a decision."""
        return self.state(step) is StepState.KEPT

    def is_certainly_ours(self, step: int) -> bool:
        """Whether no other writer can have written the secret of a step since; True for steps without a secret."""
        return step not in self._doubtful_secrets

    def is_unresolved(self, step: int, direction: Direction) -> bool:
        """Whether a step, or its inverse, was sent by this or an earlier applier and its outcome is open or unknown."""
        ended = self.outcome(step) if direction is Direction.DO else self.undo_outcome(step)
        return self._open.get(step) is direction or isinstance(ended, Unknown)

    def held_after(self, step: int) -> str:
        """The spec of the resource after a step; empty for a step without a spec."""
        spec, record = self.effects[step].step.new_spec, self._records.get(step)
        return (record and record.observed) or spec.text if spec else ""

    def resource(self, step: int) -> str:
        """Id of the resource that a step is about; empty where there is none."""
        return self._resources[step] if step in self._resources else self.effects[step].target(self.ids)

    def unresolved(self) -> list[AnyEffect]:
        """The steps that were sent and whose outcome is open or unknown, by number."""
        steps = sorted(self._not_done | self._open.keys())
        return [self.effects[step] for step in steps if self.is_unresolved(step, Direction.DO)]

    def before_ids(self, step: int) -> tuple[str, ...]:
        """Ids of the resources of its kind and display name that existed before a creation was first sent."""
        return self._records[step].before_ids if step in self._records else ()

    def sending(self, effect: AnyEffect) -> Sending:
        """The mutation that is sent now for *effect*, a step or its inverse."""
        sending = effect.sending(self.ids, self.before_ids(effect.number))
        record = self._records.get(effect.number)
        if not effect.expects or effect.step.old_spec is None or (record and record.is_forced):
            return sending
        last_write = self._last_writes.get((effect.step.key.kind, sending.resource_id))
        expected = last_write or Expectation(effect.step.old_spec.text, sending.old_references)
        return replace(sending, expected=expected)

    def intent(self, step: int, direction: Direction, before_ids: tuple[str, ...] = ()) -> StepRecord:
        """The record of a step, or inverse, that is about to be sent; arguments as for ``step_state.sent``."""
        return sent(self.record(step), direction, before_ids)

    def retracted(self, step: int, direction: Direction) -> StepRecord:
        """The record of a step that was sent and certainly had no effect: it returns to the state before."""
        return retracted(self.record(step), direction)

    def ended(self, step: int, outcome: Outcome, direction: Direction) -> StepRecord:
        """The record of a step, or its inverse, that ended with *outcome*."""
        return ended(self.record(step), outcome, direction)

    def record(self, step: int) -> StepRecord:
        """The latest record of a step; for a step that was not sent, a record in the state PLANNED."""
        return self._records.get(step) or StepRecord(step, StepState.PLANNED)

    def return_to(self, records: Iterable[StepRecord]) -> None:
        """Return to earlier *records* of some steps; the others are as another applier would recover them."""
        before = {**self._records, **{record.step: record for record in records}}
        fresh = recovered(self.plan, before.values(), self.sealed, self.rollback_cause)
        fresh.cause, fresh.is_undoing = self.cause, self.is_undoing
        fresh.has_retried_creations = self.has_retried_creations
        vars(self).update(vars(fresh))

    def done_count(self, records: Iterable[StepRecord] = ()) -> int:
        """Number of steps in effect after *records*."""
        news = ((record.state in IN_EFFECT) - self.stands(record.step) for record in records)
        return self._done_count + sum(news)

    def check(self, records: Iterable[StepRecord]) -> None:
        """
        Check that each of *records* may be the next of its step.

        Raises:
            ValueError: The table of ``step_state`` has no such transition.
        """
        for record in records:
            if not may_follow(before := self.state(record.step), record.state):
                raise ValueError(f"step {record.step} was {before} and cannot be {record.state}")

    def _know(self, record: StepRecord) -> None:
        step, effect = record.step, self.effects[record.step]
        is_news = not self.took_effect(step)
        self._done_count += (record.state in IN_EFFECT) - self.stands(step)
        self._records[step] = record
        self._open.pop(step, None)
        self._again.discard(step)
        for direction in Direction if self._unknown else ():
            self._unknown.pop((step, direction), None)
        # Kept as a set: it is read after each stage, and is small even for a large plan.
        (self._not_done.add if record.state in _NOT_DONE else self._not_done.discard)(step)
        if record.state in (StepState.DONE, StepState.KEPT):
            self._resources[step] = record.resource_id
        if record.state in _TOOK_EFFECT:
            # A secret with an unknown outcome gets its key only from the record of its undo.
            self._resources[step] = self._resources.get(step) or record.resource_id
            if is_news:
                effect.learn(self.ids, self._resources[step])
                self._hold(effect, record)
        if record.state is StepState.UNDONE:
            inverse = inverse_of(effect)
            inverse.learn(self.ids, record.resource_id)
            self._hold(inverse, record)

    def _hold(self, effect: AnyEffect, record: StepRecord) -> None:
        """Store the content of a resource after *effect*, which ended with *record*."""
        spec = effect.step.new_spec
        if spec and not effect.links and record.state is not StepState.KEPT:
            text = record.observed or spec.text
            references = self.ids.references(effect.step.references)
            self._last_writes[effect.step.key.kind, record.resource_id] = Expectation(text, references)


def recovered(plan: Plan, records: Iterable[StepRecord], sealed: bool, rollback_cause: str) -> Progress:
    """
    The progress after the records of an earlier applier.

    It differs from the progress of that applier in three points. Unknown outcomes are open again, as the platform may
    show them now. Failed undos are retried. Steps that were skipped because the operation stopped are planned.
    """
    progress = Progress(plan, sealed, rollback_cause)
    for record in records:
        progress._know(record)
        if record.state is StepState.DONE and progress.effects[record.step].is_of_secret:
            progress._doubtful_secrets.add(record.step)
        match record.state:
            case StepState.UNKNOWN if progress.effects[record.step].is_of_secret:
                # The platform does not show the value of a secret, and this applier does not have it.
                pass
            case StepState.INTENT | StepState.UNKNOWN | StepState.UNDO_INTENT | StepState.UNDO_UNKNOWN:
                progress._open[record.step] = _direction(record.state)
            case StepState.UNDO_FAILED | StepState.SKIPPED:
                progress._again.add(record.step)
    # Undos run in reverse order: of two steps about one key the inverse of the first one counts.
    for effect in reversed(progress.effects):
        if progress.was_undone(effect.number):
            record, inverse = progress._records[effect.number], inverse_of(effect)
            inverse.learn(progress.ids, record.resource_id)
            progress._hold(inverse, record)
    return progress


def _direction(state: StepState) -> Direction:
    return Direction.UNDO if state in OF_UNDO else Direction.DO
