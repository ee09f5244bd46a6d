"""The entries of a plan: one for each step, and one for each object of which only the record changes; and counts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from pkger.model.v1 import object_pb2, plan_pb2

from services.core.diff import covers
from services.core.model import Key, Undo
from services.engine.effects import (
    AnyEffect,
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    PutSecret,
    Update,
    effect_of,
)
from services.rpc.convert.objects import key_from_pb
from services.rpc.convert.plans import bare_step_from_pb
from services.rpc.plan_parts import JoinedPlan
from services.views.hunks import Change, Hunk, hunks_of


class Act(Enum):
    """What a plan does to the object of an entry."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    ATTACH = "attach"
    DETACH = "detach"
    WRITE_SECRET = "write_secret"  # noqa: S105 - no secret
    OVERWRITE_SECRET = "overwrite_secret"  # noqa: S105 - no secret
    REMOVE_SECRET = "remove_secret"  # noqa: S105 - no secret
    RECORD = "record"
    """Only the record of the stack changes."""


class Mark(Enum):
    """A remark on an entry, besides its act."""

    ADOPTED = "adopted"
    """The resource existed, unowned, before the stack."""
    SHARED = "shared"
    """Another stack owns the resource, and this one uses it as it is."""
    RENAMED = "renamed"
    """The object of the resource had another key."""
    LOSS = "loss"
    """The update loses data."""
    IRREVERSIBLE = "irreversible"
    """The step cannot be undone."""


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """
    One entry of a plan.

    Attributes:
        act: What the plan does.
        key: The object; its name is empty for a resource without an object.
        resource_id: The resource; empty while it does not exist.
        display_name: Name of the resource, after the plan if it stays; empty for a step of an association.
        label: Of ``ATTACH`` and ``DETACH``: the label.
        label_id: Its id; empty while it does not exist.
        reason: One sentence: why the step is in the plan; empty for ``RECORD``.
        marks: Remarks, in the order of ``Mark``.
        old_key: With ``Mark.RENAMED``: the key before.
        lost_data: With ``Mark.LOSS``: the data that the update deletes, in words.
        spec: Of ``CREATE`` and ``DELETE``: the spec as JSON text.
        diff: Of ``UPDATE``: the diff in the plan, with the changes of this step; None if the plan has none for it.
    """

    act: Act
    key: Key
    resource_id: str = ""
    display_name: str = ""
    label: Key | None = None
    label_id: str = ""
    reason: str = ""
    marks: tuple[Mark, ...] = ()
    old_key: Key | None = None
    lost_data: str = ""
    spec: str = ""
    diff: plan_pb2.ResourceDiff | None = None

    def hunks(self) -> tuple[Hunk, ...]:
        """The differences of an update; empty without a diff."""
        if self.diff is None:
            return ()
        changes = (Change(each.path, each.old_json, each.new_json) for each in self.diff.changes)
        return hunks_of(changes, self.diff.old_spec_json, self.diff.new_spec_json)


def entries(plan: JoinedPlan) -> list[PlanEntry]:
    """
    The entries of *plan*: steps in their order, then objects of which only the record changes, by key.

    Adopted, shared and renamed resources are marked only if *plan* has its record; updates have a diff only if it has
    its diffs.
    """
    record = plan.body.record
    adopted = {key_from_pb(each.key): each for each in record.adoptions}
    renamed = {key_from_pb(each.new_key): key_from_pb(each.old_key) for each in record.key_changes}
    diffs = {key_from_pb(diff.key): diff for diff in plan.diffs.resources}
    effects = [effect_of(bare_step_from_pb(step)) for step in plan.steps]
    updates = [effect for effect in effects if isinstance(effect, Update)]
    # The diff of an object describes its state after the last of its updates, and after the one that loses data.
    last = {(effect.step.key, effect.step.loss is None): effect.number for effect in updates}
    losses = {effect.step.key: effect.step.loss.path for effect in updates if effect.step.loss}
    listed: list[PlanEntry] = []
    marked: set[Key] = set()
    for step, effect in zip(plan.steps, effects, strict=True):
        key = effect.step.key
        is_first = isinstance(effect, Create | Update) and key not in marked
        loss = effect.step.loss
        diff = diffs.get(key) if last.get((key, loss is None)) == effect.number else None
        if diff and key in losses:
            diff = _part(diff, losses[key], is_loss=loss is not None)
        marks = _marks(
            effect.step.undo is Undo.NONE, is_first and key in adopted, is_first and key in renamed, loses=bool(loss)
        )
        listed.append(_entry(step, effect, marks, diff if diff and diff.changes else None, renamed))
        marked |= {key} if is_first else set()
    # Steps of a shared resource change only its labels, so the resource itself needs an entry.
    shared = {key_from_pb(each.key): each for each in record.entries if each.origin == object_pb2.ORIGIN_SHARED}
    silent = (adopted.keys() | renamed.keys()) - marked | shared.keys()
    listed += [_of_record(key, adopted, shared, renamed) for key in sorted(silent)]
    return listed


def _part(diff: plan_pb2.ResourceDiff, path: str, *, is_loss: bool) -> plan_pb2.ResourceDiff:
    """*diff* with the changes of the field at *path*, whose change loses data; or with all others."""
    part = plan_pb2.ResourceDiff()
    part.CopyFrom(diff)
    del part.changes[:]
    part.changes.extend(change for change in diff.changes if covers(path, change.path) is is_loss)
    return part


def _of_record(
    key: Key,
    adopted: Mapping[Key, plan_pb2.Adoption],
    shared: Mapping[Key, object_pb2.InventoryEntry],
    renamed: Mapping[Key, Key],
) -> PlanEntry:
    adoption = adopted.get(key, plan_pb2.Adoption())
    resource_id = adoption.resource.id or (shared[key].resource_id if key in shared else "")
    marks = _marks(False, key in adopted, key in renamed, key in shared)
    return PlanEntry(Act.RECORD, key, resource_id, adoption.display_name, marks=marks, old_key=renamed.get(key))


def _entry(
    step: plan_pb2.Step,
    effect: AnyEffect,
    marks: tuple[Mark, ...],
    diff: plan_pb2.ResourceDiff | None,
    renamed: Mapping[Key, Key],
) -> PlanEntry:
    about = effect.step
    return PlanEntry(
        act=_act(effect),
        key=about.key,
        resource_id=about.resource_id,
        display_name=step.create.display_name or step.update.display_name or step.delete.old_display_name,
        label=about.label,
        label_id=about.label_id,
        reason=step.reason,
        marks=marks,
        old_key=renamed[about.key] if Mark.RENAMED in marks else None,
        lost_data=about.loss.data if about.loss else "",
        spec=step.create.spec_json or step.delete.old_spec_json,
        diff=diff,
    )


def _marks(
    is_irreversible: bool, is_adopted: bool, is_renamed: bool, is_shared: bool = False, loses: bool = False
) -> tuple[Mark, ...]:
    marks = {
        Mark.ADOPTED: is_adopted,
        Mark.SHARED: is_shared,
        Mark.RENAMED: is_renamed,
        Mark.LOSS: loses,
        Mark.IRREVERSIBLE: is_irreversible,
    }
    return tuple(mark for mark, holds in marks.items() if holds)


def _act(effect: AnyEffect) -> Act:
    match effect:
        case Create():
            return Act.CREATE
        case Update():
            return Act.UPDATE
        case Delete():
            return Act.DELETE
        case Attach():
            return Act.ATTACH
        case Detach():
            return Act.DETACH
        case DeleteSecret():
            return Act.REMOVE_SECRET
        case PutSecret():
            return Act.OVERWRITE_SECRET if effect.overwrites else Act.WRITE_SECRET
    assert_never(effect)


def counts_by_kind(shown: Iterable[PlanEntry]) -> dict[str, Counter[Act]]:
    """The number of entries of each act, by kind, sorted by kind."""
    counts: dict[str, Counter[Act]] = {}
    for entry in shown:
        counts.setdefault(entry.key.kind, Counter())[entry.act] += 1
    return {kind: counts[kind] for kind in sorted(counts)}
