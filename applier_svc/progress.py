"""How far an operation is: what is known of its steps."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pkger.stack.v1 import journal_pb2

from applier_svc.ids import Ids
from applier_svc.outcomes import Direction, Done, Failed, Outcome, Unknown
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
        sealed: Whether it went past the point of no return: what was done stays, whatever fails (engine.md 3).
        turned_back: Why the operation takes back what it did; empty while it goes forward.
    """

    done: dict[int, Outcome] = field(default_factory=dict)
    undone: dict[int, Outcome] = field(default_factory=dict)
    open: dict[int, Direction] = field(default_factory=dict)
    before_ids: dict[int, tuple[str, ...]] = field(default_factory=dict)
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
        _learn(progress, record, plan.steps[record.step], ids)
    return progress


def _learn(progress: Progress, record: journal_pb2.StepRecord, step: Step, ids: Ids) -> None:
    if record.before_ids:
        progress.before_ids[step.number] = tuple(record.before_ids)
    match record.state:
        case journal_pb2.STEP_STATE_UNKNOWN if step.is_secret:
            # Nothing on the platform tells more, and its value is gone.
            progress.done[step.number] = Unknown(record.message)
        case journal_pb2.STEP_STATE_INTENT | journal_pb2.STEP_STATE_UNKNOWN:
            progress.open[step.number] = Direction.DO
        case journal_pb2.STEP_STATE_FAILED:
            progress.done[step.number] = Failed(record.message, record.reason)
        case journal_pb2.STEP_STATE_DONE | journal_pb2.STEP_STATE_UNDO_FAILED:
            progress.done[step.number] = Done(record.remote_id)
            ids.note(step, record.remote_id)
        case journal_pb2.STEP_STATE_UNDO_INTENT | journal_pb2.STEP_STATE_UNDO_UNKNOWN:
            progress.done[step.number] = Done(record.remote_id)
            progress.open[step.number] = Direction.UNDO
            ids.note(step, record.remote_id)
        case journal_pb2.STEP_STATE_UNDONE:
            progress.done[step.number] = progress.undone[step.number] = Done(record.remote_id)
            ids.note(step, record.remote_id)
            ids.note(inverse(step), record.remote_id)
        case _:
            # Planned, or skipped by an applier that was stopped: it was not sent, or had no effect.
            pass
