"""The invariants of an operation, at every instant and at its end (docs/reference/engine.md, "Invariants")."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from services.core.model import InventoryEntry, Plan, Resource, Spec
from services.engine.effects import AnyEffect, effect_of
from services.engine.ids import Ids
from services.engine.outcome import Done
from services.engine.step_life import IN_EFFECT, StepRecord, StepState
from tests.engine.model_platform import ModelPlatform, Shown
from tests.engine.model_store import Store, demand

_BEING_DONE = (StepState.INTENT, StepState.UNKNOWN)
_BEING_UNDONE = (StepState.UNDO_INTENT, StepState.UNDO_UNKNOWN)


@dataclass(frozen=True)
class Place:
    """
    A platform, and the owners of its resources.

    Attributes:
        platform: The platform.
        entries: The inventory of the stack.
        unowned: Ids of unowned resources from before the stack.
    """

    platform: ModelPlatform
    entries: tuple[InventoryEntry, ...]
    unowned: frozenset[str] = frozenset()

    @property
    def shown(self) -> tuple[list[Shown], list[tuple[InventoryEntry, Shown]], list[str]]:
        """The content without ids, which may change: resources, inventory with its resources, keys of secrets."""
        live = self.platform.live
        owned = [(each._replace(resource_id=""), self.platform.shown(live[each.resource_id])) for each in self.entries]
        return self.platform.content(), owned, sorted(self.platform.secrets)


def check_instant(store: Store, platform: ModelPlatform, unowned: Collection[str]) -> None:
    """Each resource is recorded or may come from an open creation; each recorded one exists or may be just deleted."""
    known = set(_known(store))
    for resource in platform.live.values():
        is_unowned = resource.id not in known and resource.id not in unowned
        demand(not is_unowned or any(_may_have_made(store, resource)), "an orphan", resource)
    for resource_id in known - platform.live.keys():
        demand(any(_may_have_removed(store, resource_id)), "a recorded resource is gone", resource_id)


def _known(store: Store) -> set[str]:
    """Ids of the resources of the stack, by its inventory and the journal of its operation."""
    known = {entry.resource_id for entry in store.record.resources}
    for record, effect in _changes_of_existence(store):
        if effect.makes and record.state in IN_EFFECT:
            known.add(record.resource_id)
        elif effect.removes and record.state in IN_EFFECT:
            known.discard(effect.step.resource_id)
        elif effect.removes and record.state is StepState.UNDONE:
            # It was created again, with another id.
            known.discard(effect.step.resource_id)
            known.add(record.resource_id)
    return known


def _changes_of_existence(store: Store) -> Iterator[tuple[StepRecord, AnyEffect]]:
    for step, record in store.records.items():
        effect = store.effects[step]
        if (effect.makes or effect.removes) and not (effect.links or effect.is_of_secret):
            yield record, effect


def _may_have_made(store: Store, resource: Resource) -> Iterator[bool]:
    for record, effect in _changes_of_existence(store):
        spec: Spec | None = effect.step.new_spec if effect.makes else effect.step.old_spec
        is_open = record.state in (_BEING_DONE if effect.makes else _BEING_UNDONE)
        is_new = resource.id not in record.before_ids
        yield is_open and is_new and (effect.step.key.kind, spec) == (resource.kind, resource.spec)


def _may_have_removed(store: Store, resource_id: str) -> Iterator[bool]:
    for record, effect in _changes_of_existence(store):
        is_open = record.state in (_BEING_DONE if effect.removes else _BEING_UNDONE)
        yield is_open and resource_id == (effect.step.resource_id if effect.removes else record.resource_id)


def check_inventory(place: Place) -> None:
    """The inventory lists exactly the resources of the platform that did not exist before the stack."""
    owned = {(entry.key.kind, entry.resource_id) for entry in place.entries}
    live = {(resource.kind, resource.id) for resource in place.platform.live.values()}
    demand(len(owned) == len(place.entries), "two entries have one resource", place.entries)
    demand(owned <= live, "recorded, and not there", owned - live)
    extra = {each for each in live - owned if each[1] not in place.unowned}
    demand(not extra, "there, and not recorded", extra)


def check_success(store: Store, now: Place, first: Place, wanted: Place) -> None:
    """The platform holds the wanted content, but for failed steps past the seal."""
    done = {step for step, record in store.records.items() if record.state is StepState.DONE}
    if len(done) == len(store.effects):
        demand(now.shown == wanted.shown, "done, and not as wanted", now.shown)
        return
    demand(store.sealed, "not all is done, and nothing was sealed")
    expected = _carried_out(store.plan, first.platform, done)
    demand(now.platform.content() == expected.content(), "not the result of the done steps", now.shown)


def check_undo(store: Store, now: Place, first: Place) -> None:
    """Content, labels, references and origins are restored; ids, and secrets without a sole writer, may differ."""
    demand(not store.sealed, "undone past the seal")
    (content, owned, secrets), (old_content, old_owned, old_secrets) = now.shown, first.shown
    demand((content, owned) == (old_content, old_owned), "undone, and not as before", now.shown)
    left = {
        effect.step.key.name
        for effect in store.effects
        # An applier leaves a secret that another writer may have written.
        if effect.is_of_secret and store.step_state(effect.number) in (StepState.DONE, StepState.UNKNOWN)
    }
    demand(set(old_secrets) <= set(secrets) <= {*old_secrets, *left}, "another secret than before", secrets)


def _carried_out(plan: Plan, platform: ModelPlatform, steps: Collection[int]) -> ModelPlatform:
    """The platform after some *steps* of a plan, in their order."""
    copy, ids = platform.copy(), Ids(plan)
    for effect in map(effect_of, plan.steps):
        if effect.number in steps:
            outcome = copy.carry_out(effect, effect.sending(ids), str(effect.number), "")
            demand(isinstance(outcome, Done), "the platform would not have done it", effect.shown)
            effect.learn(ids, outcome.resource_id if isinstance(outcome, Done) else "")
    return copy
