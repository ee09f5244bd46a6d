"""What the record says after an operation, for every way in which it can end."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from services.core.model import InventoryEntry, OperationKind, Origin, StackRecord, by_key
from services.engine.operation import OperationState
from services.engine.progress import Progress
from services.engine.scheduler import Block, Finish


@dataclass(frozen=True, slots=True)
class Write:
    """
    The stack owns *entries* from now on.

    ``has_changed``: whether the operation changed the platform; the record then moves, even when it lists the same.
    """

    entries: Sequence[InventoryEntry]
    sources: Sequence[str]
    has_changed: bool


@dataclass(frozen=True, slots=True)
class Remove:
    """The stack owns nothing any more, and goes away."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """
    How one operation is recorded.

    Attributes:
        progress: How far it got.
        stack: Its stack as it was when the operation began.
        kind: What it was for.
        is_transient: Whether the stack goes away with the operation, which works on behalf of none.
        is_pending: Whether the stack goes away unless the operation succeeds.
    """

    progress: Progress
    stack: StackRecord
    kind: OperationKind
    is_transient: bool
    is_pending: bool

    def entries(self, end: Finish | Block) -> Sequence[InventoryEntry]:
        """What the stack owns at the *end*; what was applied, for an operation without one."""
        match end.state:
            case OperationState.SUCCEEDED:
                return after_success(self.progress, self.stack, end.leftovers.keys())
            case OperationState.ROLLED_BACK:
                return after_undo(self.progress, self.stack)
            case _:
                # The record stays as it is until somebody has looked: the journal says what is different.
                return self.stack.resources

    def change(self, end: Finish | Block, entries: Sequence[InventoryEntry]) -> Write | Remove | None:
        """What becomes of the record; None: there is none to keep, or it stays as it is."""
        plan = self.progress.plan
        if self.is_transient or end.state is OperationState.BLOCKED:
            return None
        if end.state is OperationState.SUCCEEDED:
            if self.kind is OperationKind.UNINSTALL and not entries:
                return Remove()
            # A stack that the operation made is there for others only with a record.
            is_as_it_was = plan.no_change and not self.is_pending
        else:
            is_as_it_was = by_key(entries) == by_key(self.stack.resources)
        return None if is_as_it_was else Write(entries, plan.sources, bool(plan.steps))

    def has_stack(self, end: Finish | Block, entries: Sequence[InventoryEntry]) -> bool:
        """Whether there is a stack afterwards."""
        if self.is_transient:
            return False
        if end.state is OperationState.SUCCEEDED:
            return bool(entries) or self.kind is not OperationKind.UNINSTALL
        # A stack that the operation made is there for others once something is left behind.
        has_left = end.state is OperationState.ROLLED_BACK and bool(entries)
        return has_left or not self.is_pending

    def is_unchanged(self, end: Finish | Block) -> bool:
        """Whether platform and record were as wanted already; the end of a stack always changes something."""
        is_apply = self.kind is OperationKind.APPLY
        return end.state is OperationState.SUCCEEDED and is_apply and self.progress.plan.no_change


def after_success(progress: Progress, record: StackRecord, leftovers: Collection[int]) -> list[InventoryEntry]:
    """
    The inventory once all steps are done, but for *leftovers*; sorted by key.

    A creation that was kept made nothing: its resource was there, and is adopted. What could not be removed stays in
    the inventory as pending, so that the next apply tries again (engine.md 3).
    """
    recorded, ids, changes = by_key(record.resources), progress.ids, progress.plan.record
    entries = dict(recorded)
    for key in changes.removed:
        entries.pop(key, None)
    for entry in changes.entries:
        if resource_id := ids.get(entry.key):
            entries[entry.key] = entry._replace(resource_id=resource_id)
        else:
            entries.pop(entry.key, None)
    kept = {each.step.key for each in progress.effects if each.makes and progress.is_kept(each.number)}
    for key in kept & entries.keys():
        entries[key] = entries[key]._replace(origin=Origin.ADOPTED)
    for effect in (progress.effects[number] for number in leftovers):
        key = effect.step.key
        if effect.removes and not effect.links and key in recorded and key not in entries:
            entries[key] = recorded[key]._replace(is_pending_delete=True)
    return [entries[key] for key in sorted(entries)]


def after_undo(progress: Progress, record: StackRecord) -> list[InventoryEntry]:
    """
    The inventory once what was done is undone, as far as that went; sorted by key.

    It is the recorded one, but for three things: what was deleted and created again has another id, what was deleted
    and could not be created again is gone, and what was created and could not be deleted again is there.
    """
    entries, ids = by_key(record.resources), progress.ids
    planned = by_key(progress.plan.record.entries)
    for effect in progress.effects:
        # No stack owns a secret.
        if effect.links or effect.is_of_secret or not progress.took_effect(effect.number):
            continue
        key, is_undone = effect.step.key, progress.was_undone(effect.number)
        if effect.removes and key in entries:
            if is_undone:
                entries[key] = entries[key]._replace(resource_id=ids.get(key))
            else:
                del entries[key]
        elif effect.makes and not is_undone:
            # On behalf of no stack nothing is recorded, so the plan says nothing of it.
            entry = planned.get(key) or InventoryEntry(key, "", Origin.CREATED)
            origin = Origin.ADOPTED if progress.is_kept(effect.number) else entry.origin
            entries[key] = entry._replace(resource_id=ids.get(key), origin=origin)
    return [entries[key] for key in sorted(entries)]
