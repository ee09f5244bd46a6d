"""The record of a stack after an operation, for every state in which the operation can end."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from services.core.model import (
    AfterUninstall,
    Baseline,
    InventoryEntry,
    Key,
    OperationKind,
    Origin,
    RecordChanges,
    Reference,
    Use,
    Verb,
    by_key,
)
from services.core.text_lists import and_more
from services.engine.effects import AnyEffect
from services.engine.ids import ResourceIds
from services.engine.operation import OperationState
from services.engine.progress import Progress
from services.engine.scheduler import Block, Finish


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """
    The record of the stack changes.

    Attributes:
        changes: Changes of the resources that the stack owns and uses.
        sources: Names of the sources that were applied.
        has_changed: Whether the operation changed resources. Then the generation increases and a revision is made, even
            if *changes* is empty.
        has_secrets: Whether it wrote secrets. Then the generation increases.
        baselines: Baselines of the resources that it wrote, sorted by key.
        is_in_sync: Whether all resources of the stack were compared with its package, and agree with it now.
    """

    changes: RecordChanges
    sources: Sequence[str]
    has_changed: bool
    has_secrets: bool = False
    baselines: Sequence[Baseline] = ()
    is_in_sync: bool = False


@dataclass(frozen=True, slots=True)
class RemoveStack:
    """
    The stack owns nothing any more and is deleted. The resources of *staying* were not deleted, because other stacks
    use or own them.
    """

    staying: tuple[Key, ...] = ()
    staying_labels: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Orphans:
    """
    Resources and labels that were left to other stacks, and that the store found to have no other stack any more.

    Attributes:
        keys: Objects whose resource no other stack has now.
        labels: Labels that no other record wants any more.
    """

    keys: frozenset[Key] = frozenset()
    labels: frozenset[Use] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.keys or self.labels)

    def __or__(self, others: "Orphans") -> "Orphans":
        return Orphans(self.keys | others.keys, self.labels | others.labels)


NO_ORPHANS = Orphans()
"""Other stacks still have everything that was left to them."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """
    The end of one operation, and the changes of the record that follow from it.

    Attributes:
        progress: Its progress.
        end: The last move.
        kind: Its kind.
        stack_id: Id of its stack.
        is_transient: Whether the operation has no stack of its own: the internal one is deleted when it ends.
        is_pending: Whether the stack is deleted unless the operation succeeds.
        recorded: The inventory of the stack; may be left empty where ``needs_record`` is false.
        orphans: Resources and labels that no other stack has any more, so that this one retains them.
    """

    progress: Progress
    end: Finish | Block
    kind: OperationKind
    stack_id: str
    is_transient: bool
    is_pending: bool
    recorded: Sequence[InventoryEntry] = ()
    orphans: Orphans = NO_ORPHANS

    @property
    def cause(self) -> str:
        """One sentence for people: what failed, or what the stack has to retain; empty after a complete success."""
        if self.end.cause or not self.orphans:
            return self.end.cause
        first, *more = sorted({*self.orphans.keys, *(each.key for each in self.orphans.labels)})
        others = f" ({and_more(len(more), '')})" if more else ""
        return f"{first}{others} stays in the record: no other stack has it or its labels any more"

    @property
    def leftover_count(self) -> int:
        """Number of resources that the stack was to delete or forget, and still has."""
        return len(self.end.leftovers) + len(self.orphans.keys | {each.key for each in self.orphans.labels})

    @property
    def changes(self) -> RecordChanges:
        """The changes of the record; for an operation without a stack, as if it had one."""
        match self.end:
            case Finish(state=OperationState.SUCCEEDED):
                changes = after_success(self.progress, self.end.leftovers.keys(), self.recorded)
                return _with_orphans(changes, self.recorded, self.orphans)
            case Finish(state=OperationState.ROLLED_BACK):
                return after_undo(self.progress, self.recorded)
            case _:
                # The record stays unchanged until an operator decides; the journal has the differences.
                return RecordChanges()

    def change(self, changes: RecordChanges) -> WriteRecord | RemoveStack | None:
        """The effect of *changes* on the record; None: there is no record to keep, or it stays unchanged."""
        plan = self.progress.plan
        if self.is_transient or self.end.state is OperationState.BLOCKED:
            return None
        if self.end.state is OperationState.SUCCEEDED:
            if self._deletes_stack and not changes.entries:
                return RemoveStack(changes.staying, changes.staying_labels)
            # The store compares the package with the one of the current revision.
            is_as_it_was = plan.no_change and not (self.is_pending or plan.package_digest)
        else:
            is_as_it_was = changes == RecordChanges()
        if is_as_it_was:
            return None
        secrets = sum(effect.is_of_secret for effect in self.progress.effects)
        has_changed = len(plan.steps) > secrets
        baselines = baselines_of(self.progress, changes)
        return WriteRecord(changes, plan.sources, has_changed, bool(secrets), baselines, self._is_in_sync)

    @property
    def _is_in_sync(self) -> bool:
        """Whether all resources of the stack were compared and every step took effect as planned, none by KEEP."""
        progress = self.progress
        if self.end.state is not OperationState.SUCCEEDED or self.leftover_count or progress.plan.untouched_count:
            return False
        return all(progress.stands(each.number) and not progress.is_kept(each.number) for each in progress.effects)

    def has_stack(self, changes: RecordChanges) -> bool:
        """Whether the stack exists afterwards."""
        if self.is_transient:
            return False
        if self.end.state is OperationState.SUCCEEDED:
            # Resources that could not be deleted stay in the record.
            return bool(changes.entries) or not self._deletes_stack
        # A stack that this operation created becomes visible when a rollback leaves something behind.
        has_left = self.end.state is OperationState.ROLLED_BACK and bool(changes.entries)
        return has_left or not self.is_pending

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing had to change on the platform or in the record; deleting a stack always changes something."""
        is_over = self.end.state is OperationState.SUCCEEDED
        return is_over and self.progress.plan.no_change and not self._deletes_stack

    @property
    def _deletes_stack(self) -> bool:
        return self.kind is OperationKind.UNINSTALL and self.progress.plan.after_uninstall is AfterUninstall.DELETE


def baselines_of(progress: Progress, changes: RecordChanges) -> list[Baseline]:
    """
    The baselines of the resources that were written by steps in effect, sorted by key.

    Args:
        progress: The progress of the operation.
        changes: The changes of the record.
    """
    # An empty spec leaves the spec of the stored baseline unchanged.
    baselines: dict[Key, Baseline] = {}
    missing: defaultdict[Key, set[Key]] = defaultdict(set)
    for effect in progress.effects:
        key, label = effect.step.key, effect.step.label
        if effect.is_of_secret or not key.name or not progress.stands(effect.number):
            continue
        if label:
            baselines.setdefault(key, Baseline(key, ""))
            if progress.is_kept(effect.number) and effect.step.verb is Verb.ATTACH:
                missing[key].add(label)
        elif text := progress.held_after(effect.number):
            baselines[key] = Baseline(key, text, _existing(progress.ids.references(effect.step.references)))
    return [
        baselines[key]._replace(missing_labels=tuple(sorted(missing[key])))
        for key in sorted(baselines.keys() - {*changes.removed})
    ]


def _existing(references: Sequence[Reference]) -> tuple[Reference, ...]:
    return tuple(each for each in references if each.id)


def needs_record(end: Finish | Block) -> bool:
    """Whether the changes of the record depend on the recorded inventory: after a rollback, and with leftovers."""
    return isinstance(end, Finish) and (end.state is OperationState.ROLLED_BACK or bool(end.leftovers))


def after_success(progress: Progress, leftovers: Collection[int], recorded: Sequence[InventoryEntry]) -> RecordChanges:
    """
    The changes of the record once all steps but *leftovers* are done.

    A creation that ended as KEPT created nothing: its resource existed, and is adopted. A resource that could not be
    deleted stays in the inventory as a pending deletion, so that the next apply retries (docs/reference/engine.md,
    "Steps and stages"); its entry comes from *recorded*. A resource that was to be deleted before its replacement is
    created, and was not, keeps its key: the next apply replaces it.
    """
    ids, changes, before = progress.ids, progress.plan.record, by_key(recorded)
    entries, removed = {}, set(changes.removed)
    left = [effect.step for effect in map(progress.effects.__getitem__, leftovers) if _deletes(effect)]
    own = {step.key for step in left if step.key in before and before[step.key].resource_id == step.resource_id}
    spared = {step.key for step in left if step.resource_id and ids.get(step.key) == step.resource_id}
    for entry in changes.entries:
        key, is_spared = entry.key, entry.key in spared
        if not ids.get(key) or (is_spared and key not in own):
            removed.add(key)
        else:
            origin = before[key].origin if is_spared else entry.origin
            entries[key] = entry._replace(resource_id=ids.get(key), origin=origin)
    kept = {each.step.key for each in progress.effects if each.makes and progress.is_kept(each.number)}
    for key in kept & entries.keys():
        entries[key] = entries[key]._replace(origin=Origin.ADOPTED)
    detached = {
        (each.step.key, each.step.label)
        for each in progress.effects
        if each.step.verb is Verb.DETACH and progress.stands(each.number)
    }
    for step in left:
        key = step.key
        if ids.is_replaced(key, step.resource_id):
            # The key identifies the replacement, so the old resource gets an entry beside it.
            if key in own and (resource_id := ids.find(key, step.resource_id)):
                pending = before[key].beside(resource_id)
                entries[pending.key] = pending
        elif key in before and key in removed:
            associations = tuple(label for label in before[key].associations if (key, label) not in detached)
            entries[key] = before[key]._replace(associations=associations, is_pending_delete=True)
    removed -= entries.keys()
    return RecordChanges(
        tuple(entries[key] for key in sorted(entries)),
        tuple(sorted(removed)),
        tuple(key for key in changes.staying if key in removed),
        changes.staying_labels,
        tuple(key for key in changes.taken_over if key in entries),
    )


def _with_orphans(changes: RecordChanges, recorded: Sequence[InventoryEntry], orphans: Orphans) -> RecordChanges:
    """*changes*, with *orphans* retained in the record: the next apply deletes or detaches them."""
    if not orphans:
        return changes
    before = {(entry.key.kind, entry.resource_id): entry for entry in recorded}
    by_name, entries = by_key(recorded), by_key(changes.entries)
    # An object that leaves has no wanted labels, and no record would have its associations with labels that leave too.
    staying = {key: _leaving(by_name[key]) for key in orphans.keys if key in by_name}
    for use in orphans.labels:
        old = before.get((use.kind, use.resource_id))
        attached = (by_name.get(label) for label in old.associations) if old else ()
        labels = {label.key for label in attached if label and label.resource_id == use.label_id}
        if old is None or not labels:
            continue
        is_leaving = old.key in changes.removed and use.key not in entries
        kept = staying.get(use.key) or entries.get(use.key) or (_leaving(old) if is_leaving else old)
        staying[use.key] = kept._replace(associations=tuple(sorted({*kept.associations, *labels})))
        staying |= {
            label: by_name[label]._replace(is_pending_delete=True) for label in labels if label in changes.removed
        }
    entries |= staying
    return RecordChanges(
        tuple(entries[key] for key in sorted(entries)),
        tuple(key for key in changes.removed if key not in staying),
        tuple(key for key in changes.staying if key not in staying),
        tuple(use for use in changes.staying_labels if use not in orphans.labels),
        changes.taken_over,
    )


def _leaving(entry: InventoryEntry) -> InventoryEntry:
    """*entry* as a pending deletion: its object left the package, and the next apply deletes its resource."""
    return entry._replace(associations=(), is_pending_delete=True)


def after_undo(progress: Progress, recorded: Sequence[InventoryEntry]) -> RecordChanges:
    """
    The changes of the record after a rollback, with steps that could not be undone.

    A resource that was deleted and created again has another id. A deleted one that could not be created again is
    removed from the record. A created one that could not be deleted is added to it; where it was to replace a resource
    that still exists, it is a pending deletion, and the next apply deletes it.
    """
    before, ids = by_key(recorded), progress.ids
    planned = by_key(progress.plan.record.entries)
    entries: dict[Key, InventoryEntry] = {}
    removed: set[Key] = set()
    # The deletions of resources whose replacements were created earlier come first: while the old resource exists, it
    # has the key.
    for effect in sorted(progress.effects, key=lambda each: not _is_of_replaced(each, ids)):
        # No stack owns a secret.
        if effect.links or effect.is_of_secret or not progress.took_effect(effect.number):
            continue
        key, is_undone = effect.step.key, progress.was_undone(effect.number)
        old = None if key in removed else entries.get(key, before.get(key))
        if effect.removes and old:
            if is_undone:
                entries[key] = old._replace(resource_id=ids.find(key, effect.step.resource_id))
            else:
                entries.pop(key, None)
                removed.add(key)
        elif effect.makes and not is_undone:
            # A plan without a stack has no entry for it.
            entry = planned.get(key) or InventoryEntry(key, "", Origin.CREATED)
            is_kept = progress.is_kept(effect.number)
            entry = entry._replace(resource_id=ids.get(key), origin=Origin.ADOPTED if is_kept else entry.origin)
            if old and key in before and ids.is_replaced(key, before[key].resource_id):
                # A kept resource is left to its creator.
                entry = old if is_kept else entry.beside(entry.resource_id)
            entries[entry.key] = entry
            removed.discard(key)
    changed = {key: entry for key, entry in entries.items() if entry != before.get(key)}
    return RecordChanges(tuple(changed[key] for key in sorted(changed)), tuple(sorted(removed & before.keys())))


def _deletes(effect: AnyEffect) -> bool:
    return effect.removes and not effect.links


def _is_of_replaced(effect: AnyEffect, ids: ResourceIds) -> bool:
    return _deletes(effect) and ids.is_replaced(effect.step.key, effect.step.resource_id)
