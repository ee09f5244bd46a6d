"""What outlives a crash: the journal of one operation, and the inventory of its stack."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.core.model import InventoryEntry, Plan, RecordChanges, StackRecord, Undo, by_key
from services.engine.conclusion import Remove, Write
from services.engine.effects import AnyEffect, effect_of
from services.engine.operation import FINISHED, Direction, OperationState
from services.engine.step_life import OF_UNDO, StepRecord, StepState, may_follow


class Broken(AssertionError):
    """Something is not as engine.md says."""


def demand(is_so: bool, rule: str, *details: object) -> None:
    """Insist on a rule."""
    if not is_so:
        raise Broken(f"{rule}: {', '.join(map(str, details))}" if details else rule)


def changed(entries: Sequence[InventoryEntry], changes: RecordChanges) -> tuple[InventoryEntry, ...]:
    """An inventory after *changes*, sorted by key."""
    after = by_key(entries)
    for key in changes.removed:
        after.pop(key, None)
    after |= by_key(changes.entries)
    return tuple(after[key] for key in sorted(after))


class Store:
    """
    One operation of one stack. It judges by its own records alone, and knows nothing of how an applier came to them.

    Attributes:
        record: The inventory; changed by the end of the operation only.
        plan: What the operation carries out.
        effects: What each of its steps does.
        records: The last record of each step.
        history: All records, in order.
        sealed: Whether the operation went past the point of no return.
        rollback_cause: Why it takes back what it did; empty while it goes forward.
        cancel_requested: Whether somebody asked it to turn back.
        refuses_success: Whether the store does not take the inventory of a success, as another stack has part of it.
        state: How far the operation is.
    """

    def __init__(self, record: StackRecord, plan: Plan) -> None:
        self.record = record
        self.plan = plan
        self.effects: tuple[AnyEffect, ...] = tuple(map(effect_of, plan.steps))
        self.records: dict[int, StepRecord] = {}
        self.history: list[StepRecord] = []
        self.sealed = False
        self.rollback_cause = ""
        self.cancel_requested = False
        self.refuses_success = False
        self.state = OperationState.APPLYING

    def step_state(self, step: int) -> StepState:
        """How far a step is."""
        return self.records[step].state if step in self.records else StepState.PLANNED

    def write(self, records: Iterable[StepRecord]) -> None:
        """Append to the journal."""
        for record in records:
            self._demand_unfinished()
            before = self.step_state(record.step)
            demand(may_follow(before, record.state), "a step got where none gets", before, record)
            demand(not (self.sealed and record.state in OF_UNDO), "undone after the seal", record)
            self.records[record.step] = record
            self.history.append(record)

    def seal(self) -> None:
        """Pass the point of no return."""
        self._demand_unfinished()
        demand(not (self.sealed or self.rollback_cause), "sealed twice, or on the way back")
        self.sealed = True

    def turn_back(self, cause: str) -> None:
        """From now on what was done is taken back."""
        self._demand_unfinished()
        demand(not self.sealed, "turned back after the seal", cause)
        demand(bool(cause), "turned back for no reason")
        self.rollback_cause = cause

    def finish(self, state: OperationState, change: Write | Remove | None) -> None:
        """End the operation, with what becomes of the inventory; one that is blocked is not over."""
        self._demand_unfinished()
        self.state = state
        match change:
            case Write(changes):
                self.record = replace(self.record, resources=changed(self.record.resources, changes))
            case Remove():
                self.record = replace(self.record, resources=())

    def claim(self) -> None:
        """Let another applier carry the operation on, also one that was blocked."""
        self._demand_unfinished()
        self.state = OperationState.APPLYING

    def demand_intent(self, effect: AnyEffect, direction: Direction) -> None:
        """See to it that *effect* may be sent now: it is written that it will be, and may not be too early."""
        intent = StepState.INTENT if direction is Direction.DO else StepState.UNDO_INTENT
        demand(self.step_state(effect.number) is intent, "sent without an intent", effect.shown)
        # A secret that is overwritten is lost as well, but what comes after it can be taken back (engine.md 3).
        is_irreversible = effect.step.undo is Undo.NONE and not effect.is_of_secret
        demand(self.sealed or not is_irreversible, "irreversible before the seal", effect.shown)

    def _demand_unfinished(self) -> None:
        demand(self.state not in FINISHED, "written after the end", self.state)
