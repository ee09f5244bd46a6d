"""How far an operation is: what is known of its steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pkger.stack.v1 import journal_pb2

from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, GivenUp, Outcome, Unknown
from applier_svc.undo import inverse
from services.core.model import Plan, Step


@dataclass(slots=True)
class Progress:
    """
    What is known of the steps of one operation.

    Attributes:
        done: How each step ended, by its number.
        undone: How the undo of each step ended, by its number.
        open: The steps with an intent and no outcome yet; of an applier before this one, also those without an answer.
        before_ids: What was there before a creation was first sent, by step number: ids of resources of its kind and
            display name. Only for those that have to be searched for.
        kept: The steps that count as done as somebody decided so; they are not taken back.
        stays: Those, and the steps whose undo somebody gave up.
        sealed: Whether it went past the point of no return: what was done stays, whatever fails (engine.md 3).
        turned_back: Why the operation takes back what it did; empty while it goes forward.
    """

    done: dict[int, Outcome] = field(default_factory=dict)
    undone: dict[int, Outcome] = field(default_factory=dict)
    open: dict[int, Direction] = field(default_factory=dict)
    before_ids: dict[int, tuple[str, ...]] = field(default_factory=dict)
    kept: set[int] = field(default_factory=set)
    stays: set[int] = field(default_factory=set)
    sealed: bool = False
    turned_back: str = ""

    def intend(self, steps: Mapping[int, str], direction: Direction) -> None:
        """The *steps* may be sent at any moment."""
        self.open |= dict.fromkeys(steps, direction)

    def retract(self, steps: Iterable[int], direction: Direction) -> None:
        """The *steps* were sent and had no effect: they are where they were before."""
        ended = self.done if direction is Direction.DO else self.undone
        for number in steps:
            self.open.pop(number, None)
            ended.pop(number, None)

    def end(self, outcomes: Mapping[int, Outcome], direction: Direction) -> None:
        """Steps ended."""
        ended = self.done if direction is Direction.DO else self.undone
        ended |= outcomes
        for number in outcomes:
            self.open.pop(number, None)

    def took_effect(self, step: Step) -> bool:
        """Whether *step* was certainly carried out."""
        return isinstance(self.done.get(step.number), Done)

    def was_undone(self, step: Step) -> bool:
        """Whether *step* was certainly taken back."""
        return isinstance(self.undone.get(step.number), Done)

    def may_have_happened(self, step: Step, direction: Direction) -> bool:
        """Whether *step* was sent before, if only by an applier that is gone, and nobody knows what came of it."""
        ended = self.done if direction is Direction.DO else self.undone
        return self.open.get(step.number) is direction or isinstance(ended.get(step.number), Unknown)

    def learn(self, record: journal_pb2.StepRecord, step: Step, ids: Ids) -> None:
        """What is known of *step* is what *record* says, and nothing else; *ids* learns from it."""
        for known in (self.done, self.undone, self.open):
            known.pop(step.number, None)
        if record.before_ids:
            self.before_ids[step.number] = tuple(record.before_ids)
        match record.state:
            case journal_pb2.STEP_STATE_UNKNOWN if step.is_secret:
                # Nothing on the platform tells more, and its value is gone.
                self.done[step.number] = Unknown(record.message)
            case journal_pb2.STEP_STATE_INTENT | journal_pb2.STEP_STATE_UNKNOWN:
                self.open[step.number] = Direction.DO
            case journal_pb2.STEP_STATE_FAILED:
                self.done[step.number] = Failed(record.message, record.reason)
            case journal_pb2.STEP_STATE_GIVEN_UP:
                self.done[step.number] = GivenUp(record.message)
            case journal_pb2.STEP_STATE_PLANNED | journal_pb2.STEP_STATE_SKIPPED:
                # It was not sent, or had no effect.
                pass
            case state:
                self.done[step.number] = Done(record.remote_id)
                ids.note(step, record.remote_id)
                self._learn_of_undo(state, record, step, ids)

    def _learn_of_undo(
        self, state: journal_pb2.StepState.ValueType, record: journal_pb2.StepRecord, step: Step, ids: Ids
    ) -> None:
        """What is known of a step that took effect."""
        match state:
            case journal_pb2.STEP_STATE_UNDO_INTENT | journal_pb2.STEP_STATE_UNDO_UNKNOWN:
                self.open[step.number] = Direction.UNDO
            case journal_pb2.STEP_STATE_UNDONE:
                self.undone[step.number] = Done(record.remote_id)
                ids.note(inverse(step), record.remote_id)
            case journal_pb2.STEP_STATE_KEPT:
                self.kept.add(step.number)
                self.stays.add(step.number)
            case journal_pb2.STEP_STATE_UNDO_GIVEN_UP:
                self.stays.add(step.number)


def progress_of(claimed: journal_pb2.ClaimOperationResponse, plan: Plan, ids: Ids) -> Progress:
    """
    What an applier before this one wrote down; *ids* learns from it.

    Steps without an answer are open, whoever sent them. Those whose undo failed count as not taken back: the undo is
    tried again.
    """
    progress = Progress(sealed=claimed.sealed)
    if claimed.turned_back:
        progress.turned_back = claimed.operation.cause or "it had turned back"
    for record in claimed.steps:
        progress.learn(record, plan.steps[record.step], ids)
    return progress
