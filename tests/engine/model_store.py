"""The durable state: the journal of one operation, and the inventory of its stack."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.core.model import InventoryEntry, Plan, RecordChanges, StackRecord, Undo, by_key
from services.engine.conclusion import Remove, Write
from services.engine.effects import AnyEffect, effect_of
from services.engine.operation import FINISHED, Direction, OperationState
from services.engine.step_life import OF_UNDO, StepRecord, StepState, may_follow


class Broken(AssertionError):
    """An invariant of docs/reference/engine.md does not hold."""


def demand(is_so: bool, rule: str, *details: object) -> None:
    """Raise ``Broken`` with *rule* and *details* unless *is_so*."""
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
    One operation of one stack. It checks rules by its own records alone, independent of the applier.

    Attributes:
        record: The record of the stack; changed at the end of the operation only.
        plan: The plan of the operation.
        effects: The effects of its steps.
        records: The last record of each step.
        history: All records, in order.
        sealed: Whether the operation passed the seal.
        rollback_cause: Why it rolls back; empty while it goes forward.
        cancel_requested: Whether a client cancelled it.
        refuses_success: Whether the store refuses the inventory of a success, as another stack owns part of it.
        state: The state of the operation.
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
        """The state of a step."""
        return self.records[step].state if step in self.records else StepState.PLANNED

    def write(self, records: Iterable[StepRecord]) -> None:
        """Append to the journal."""
        for record in records:
            self._demand_unfinished()
            before = self.step_state(record.step)
            demand(may_follow(before, record.state), "an impossible transition", before, record)
            demand(not (self.sealed and record.state in OF_UNDO), "undone after the seal", record)
            self.records[record.step] = record
            self.history.append(record)

    def seal(self) -> None:
        """Pass the seal."""
        self._demand_unfinished()
        demand(not (self.sealed or self.rollback_cause), "sealed twice, or during the rollback")
        self.sealed = True

    def roll_back(self, cause: str) -> None:
        """Begin the rollback."""
        self._demand_unfinished()
        demand(not self.sealed, "rolled back after the seal", cause)
        demand(bool(cause), "rolled back without a cause")
        self.rollback_cause = cause

    def finish(self, state: OperationState, change: Write | Remove | None) -> None:
        """End the operation with the change of the record, or block it."""
        self._demand_unfinished()
        self.state = state
        match change:
            case Write(changes):
                self.record = replace(self.record, resources=changed(self.record.resources, changes))
            case Remove():
                self.record = replace(self.record, resources=())

    def claim(self) -> None:
        """Let another applier resume the operation, also a blocked one."""
        self._demand_unfinished()
        self.state = OperationState.APPLYING

    def demand_intent(self, effect: AnyEffect, direction: Direction) -> None:
        """Demand that *effect* may be sent now: it has an intent, and is not irreversible before the seal."""
        intent = StepState.INTENT if direction is Direction.DO else StepState.UNDO_INTENT
        demand(self.step_state(effect.number) is intent, "sent without an intent", effect.shown)
        # An overwritten secret is lost as well, but later steps can be undone (docs/reference/engine.md, "Steps and
        # stages").
        is_irreversible = effect.step.undo is Undo.NONE and not effect.is_of_secret
        demand(self.sealed or not is_irreversible, "irreversible before the seal", effect.shown)

    def _demand_unfinished(self) -> None:
        demand(self.state not in FINISHED, "written after the end", self.state)
