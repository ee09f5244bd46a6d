"""How far an operation is: the fold of the records of its steps, the same while it runs and when it is carried on."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from services.core.model import Plan, ResourceKey
from services.engine.effects import AnyEffect, effect_of, inverse_of
from services.engine.effects.effect import Sending
from services.engine.expectation import Expectation
from services.engine.ids import Ids
from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, Skipped, Unknown
from services.engine.step_life import (
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
"""How a step ended that did not take effect, as far as is known."""


class Progress:
    """
    What is known of the steps of one operation.

    Attributes:
        plan: Its plan.
        effects: What each step does, by its number.
        ids: Which resource each key means now.
        sealed: Whether it went past the point of no return: what was done stays, whatever fails (engine.md 3).
        rollback_cause: Why the operation takes back what it did; empty while it goes forward.
        is_undoing: Whether this run of it has begun to do so.
        has_retried_creations: Whether this run sent those creations again of which the platform remembers whether it made them.
        cause: Why it is to turn back, once that is certain: what failed first, or why the record was not taken.
    """

    def __init__(self, plan: Plan, sealed: bool = False, rollback_cause: str = "") -> None:
        """Nothing is known of any step."""
        self.plan = plan
        self.effects: tuple[AnyEffect, ...] = tuple(map(effect_of, plan.steps))
        self.ids = Ids(plan)
        self.sealed = sealed
        self.rollback_cause = rollback_cause
        self.is_undoing = False
        self.has_retried_creations = False
        self.cause = ""
        self._records: dict[int, StepRecord] = {}
        self._done_count = 0
        self._resources: dict[int, str] = {}
        # What each resource holds that was written: it may be something else than the plan says.
        self._held: dict[ResourceKey, Expectation] = {}
        self._unknown: dict[tuple[int, Direction], Unknown] = {}
        self._open: dict[int, Direction] = {}
        self._not_done: set[int] = set()
        # What an applier before this one ended, and is tried again.
        self._again: set[int] = set()
        # Secrets that an applier before this one wrote: somebody else may have written them since.
        self._doubtful_secrets: set[int] = set()

    def fold(self, records: Iterable[StepRecord], outcomes: Mapping[int, Outcome] | None = None) -> None:
        """
        Know what *records* say.

        Args:
            records: One for each step of which there is something new.
            outcomes: What is known besides of steps whose outcome nobody knows.

        Raises:
            ValueError: As ``check``.
        """
        for record in records:
            self.check([record])
            self._know(record)
            if record.state in OPEN:
                self._open[record.step] = _direction(record.state)
            found = outcomes.get(record.step) if outcomes else None
            if isinstance(found, Unknown):
                self._unknown[record.step, _direction(record.state)] = found

    def state(self, step: int) -> StepState:
        """How far a step is."""
        return self._records[step].state if step in self._records else StepState.PLANNED

    def outcome(self, step: int) -> Outcome | None:
        """How a step ended; None while that is open, and of one that was not sent."""
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
        """How the undo of a step ended; None while that is open, and of one that was not begun."""
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
        """The steps, or their inverses, that may have been sent and of which nobody looked what became, by number."""
        found = [self.effects[step] for step in sorted(self._open) if self._open[step] is direction]
        return found if direction is Direction.DO else [inverse_of(effect) for effect in found]

    def not_done(self) -> list[tuple[AnyEffect, Outcome]]:
        """The steps that ended and are not done, with their outcomes, by number."""
        ended = ((self.effects[step], self.outcome(step)) for step in sorted(self._not_done))
        return [(effect, outcome) for effect, outcome in ended if outcome is not None]

    @property
    def was_sent(self) -> bool:
        """Whether any step, or its inverse, was sent and not certainly without effect."""
        return any(record.state not in (StepState.PLANNED, StepState.SKIPPED) for record in self._records.values())

    def was_retracted(self, step: int) -> bool:
        """Whether a step was sent before, and did not happen, as far as could be seen."""
        return step in self._records and self.state(step) is StepState.PLANNED

    def is_pending(self, step: int) -> bool:
        """Whether a step is still to be sent, or to be sent again as only the answer shows what became of it."""
        return self.state(step) is StepState.PLANNED or self.outcome(step) is None

    def took_effect(self, step: int) -> bool:
        """Whether a step was certainly carried out."""
        return self.state(step) in _TOOK_EFFECT

    def was_undone(self, step: int) -> bool:
        """Whether a step was certainly taken back."""
        return self.state(step) is StepState.UNDONE

    def stands(self, step: int) -> bool:
        """Whether a step is in effect, as far as is known."""
        return self.state(step) in IN_EFFECT

    def stays(self, step: int) -> bool:
        """Whether a step is in effect and is never taken back, as somebody decided so."""
        return self.state(step) in STAYS

    def is_kept(self, step: int) -> bool:
        """Whether what was there counts as what comes of a step, as somebody decided so."""
        return self.state(step) is StepState.KEPT

    def is_certainly_ours(self, step: int) -> bool:
        """Whether nobody can have written the secret of a step since; true of what is no secret."""
        return step not in self._doubtful_secrets

    def is_unresolved(self, step: int, direction: Direction) -> bool:
        """Whether a step, or its inverse, was sent before, by whomever, and nobody knows what came of it."""
        ended = self.outcome(step) if direction is Direction.DO else self.undo_outcome(step)
        return self._open.get(step) is direction or isinstance(ended, Unknown)

    def held_after(self, step: int) -> str:
        """The spec that the resource of a step had after it; empty where the step says nothing of a spec."""
        spec, record = self.effects[step].step.new_spec, self._records.get(step)
        return (record and record.observed) or spec.text if spec else ""

    def resource(self, step: int) -> str:
        """Id of the resource that a step is about; empty where there is none."""
        return self._resources[step] if step in self._resources else self.effects[step].target(self.ids)

    def unresolved(self) -> list[AnyEffect]:
        """The steps that were sent and of which nobody knows what came, by number."""
        steps = sorted(self._not_done | self._open.keys())
        return [self.effects[step] for step in steps if self.is_unresolved(step, Direction.DO)]

    def before_ids(self, step: int) -> tuple[str, ...]:
        """What was there before a creation was first sent: ids of resources of its kind and display name."""
        return self._records[step].before_ids if step in self._records else ()

    def sending(self, effect: AnyEffect) -> Sending:
        """What is sent for *effect*, a step or its inverse, now."""
        sending = effect.sending(self.ids, self.before_ids(effect.number))
        record = self._records.get(effect.number)
        if not effect.expects or effect.step.old_spec is None or (record and record.is_forced):
            return sending
        held = self._held.get((effect.step.key.kind, sending.resource_id))
        expected = held or Expectation(effect.step.old_spec.text, sending.old_references)
        return replace(sending, expected=expected)

    def intent(self, step: int, direction: Direction, before_ids: tuple[str, ...] = ()) -> StepRecord:
        """The record of a step that is about to be sent, or whose inverse is; the rest is as for ``step_life.sent``."""
        return sent(self._record(step), direction, before_ids)

    def retracted(self, step: int, direction: Direction) -> StepRecord:
        """The record of a step that was sent and certainly had no effect: it is where it was before."""
        return retracted(self._record(step), direction)

    def ended(self, step: int, outcome: Outcome, direction: Direction) -> StepRecord:
        """The record of a step, or its inverse, that ended with *outcome*."""
        return ended(self._record(step), outcome, direction)

    def done_count(self, records: Iterable[StepRecord] = ()) -> int:
        """How many steps are in effect once *records* are known."""
        news = ((record.state in IN_EFFECT) - self.stands(record.step) for record in records)
        return self._done_count + sum(news)

    def check(self, records: Iterable[StepRecord]) -> None:
        """
        See to it that each of *records* can be known next.

        Raises:
            ValueError: A step cannot be so: the table of ``step_life`` does not lead there.
        """
        for record in records:
            if not may_follow(before := self.state(record.step), record.state):
                raise ValueError(f"step {record.step} was {before} and cannot be {record.state}")

    def _record(self, step: int) -> StepRecord:
        return self._records.get(step) or StepRecord(step, StepState.PLANNED)

    def _know(self, record: StepRecord) -> None:
        step, effect = record.step, self.effects[record.step]
        is_news = not self.took_effect(step)
        self._done_count += (record.state in IN_EFFECT) - self.stands(step)
        self._records[step] = record
        self._open.pop(step, None)
        self._again.discard(step)
        for direction in Direction if self._unknown else ():
            self._unknown.pop((step, direction), None)
        # A large plan mostly goes well, and is asked for what did not after each stage.
        (self._not_done.add if record.state in _NOT_DONE else self._not_done.discard)(step)
        if record.state in (StepState.DONE, StepState.KEPT):
            self._resources[step] = record.resource_id
        if record.state in _TOOK_EFFECT:
            # The undo of a secret that nobody knows to be written names its key at its end only.
            self._resources[step] = self._resources.get(step) or record.resource_id
            if is_news:
                effect.learn(self.ids, self._resources[step])
                self._hold(effect, record)
        if record.state is StepState.UNDONE:
            inverse = inverse_of(effect)
            inverse.learn(self.ids, record.resource_id)
            self._hold(inverse, record)

    def _hold(self, effect: AnyEffect, record: StepRecord) -> None:
        """Know what a resource holds after *effect*, of which *record* says how it ended."""
        spec = effect.step.new_spec
        if spec and not effect.links and record.state is not StepState.KEPT:
            text = record.observed or spec.text
            references = self.ids.references(effect.step.references)
            self._held[effect.step.key.kind, record.resource_id] = Expectation(text, references)


def recovered(plan: Plan, records: Collection[StepRecord], sealed: bool, rollback_cause: str) -> Progress:
    """
    What an applier before this one wrote down.

    It differs from what that one knew in this: what got no answer is open again, whoever sent it, as the platform may
    tell by now; what could not be taken back is tried again; and what was not sent, as the operation stopped, is only
    planned.
    """
    progress = Progress(plan, sealed, rollback_cause)
    for record in records:
        progress._know(record)
        if record.state is StepState.DONE and progress.effects[record.step].is_of_secret:
            progress._doubtful_secrets.add(record.step)
        match record.state:
            case StepState.UNKNOWN if progress.effects[record.step].is_of_secret:
                # Nothing on the platform tells more, and its value is gone.
                pass
            case StepState.INTENT | StepState.UNKNOWN | StepState.UNDO_INTENT | StepState.UNDO_UNKNOWN:
                progress._open[record.step] = _direction(record.state)
            case StepState.UNDO_FAILED | StepState.SKIPPED:
                progress._again.add(record.step)
    # What was taken back was so in reverse order: of two steps about one key the inverse of the first one counts.
    for effect in reversed(progress.effects):
        if progress.was_undone(effect.number):
            record, inverse = progress._records[effect.number], inverse_of(effect)
            inverse.learn(progress.ids, record.resource_id)
            progress._hold(inverse, record)
    return progress


def _direction(state: StepState) -> Direction:
    return Direction.UNDO if state in OF_UNDO else Direction.DO
