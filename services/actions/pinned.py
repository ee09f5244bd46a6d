"""Action sets as they run: everything that they use is resolved, so that nothing is looked up by its name again."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import orjson

from services.actions.arguments import Call, called_function
from services.actions.canonical import action_text
from services.actions.definitions import DEFAULT_WAIT, NO_OBJECT, STACK, Action, ActionObject, Phase, SecretSource
from services.actions.durations import Milliseconds
from services.actions.folding import DEFER
from services.actions.json_form import from_json, to_json
from services.actions.reading import JsonPlace
from services.actions.signatures import Effect, SignatureTable
from services.actions.snapshots import snapshot_ids
from services.core.model import Target
from services.kinds.attachment import text_digest
from services.kinds.format.canonical import canonical_text

LARGEST_PINNED = 4 << 20
"""Bytes of the text of a pinned action set."""


@dataclass(frozen=True, slots=True)
class PinnedAction:
    """
    One action of an action set with its inputs.

    Attributes:
        name: The action.
        blueprint: The blueprint that had it when the action set was created.
        action: What it does; each phase names the version of its function.
        object: Its object, with its whole target; None: it has none.
        options: Its options by name, defaults included; one that has no value is not there.
        artifacts: The texts of its input artifacts, by name and key.
        config_maps: The texts of its config maps, by name and key.
        secrets: The places of its secrets, by name and key.
    """

    name: str
    blueprint: str
    action: Action
    object: ActionObject | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    artifacts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, SecretSource]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """``sha256:`` and 64 hex digits of the canonical text of the action."""
        return text_digest(action_text(self.action))

    def phase(self, index: int) -> Phase:
        """
        The phase at *index*, which may be ``DEFER``.

        Raises:
            IndexError: There is none.
        """
        phases = {**dict(enumerate(self.action.phases)), DEFER: self.action.defer_phase}
        phase = phases.get(index)
        if phase is None:
            raise IndexError(f"the action has no phase {index}")
        return phase


@dataclass(frozen=True, slots=True)
class PinnedActionSet:
    """
    An action set as it runs.

    Attributes:
        name: Its name.
        time: When it was created, as RFC 3339 text in UTC.
        actions: Its actions, in order; at least one.
        sequential: Whether they run one after the other.
        timeout: How long it may take; None: as long as its actions need.
        wait: How long it waits for the stacks that it reserves.
        ttl: How long after its end it is kept; None: as long as the store keeps any.
        predecessor: The action set that it was made from; empty: none.
        labels: Texts of its author.
        blueprints: The actions of its blueprints by the names of both, for action sets that are made from it.
    """

    name: str
    time: str
    actions: tuple[PinnedAction, ...]
    sequential: bool = False
    timeout: Milliseconds | None = None
    wait: Milliseconds = DEFAULT_WAIT
    ttl: Milliseconds | None = None
    predecessor: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    blueprints: Mapping[str, Mapping[str, Action]] = field(default_factory=dict)


class StackPlace(NamedTuple):
    """A stack by its name, whether it exists or not."""

    platform: str
    org: str
    name: str


def pinned_text(pinned: PinnedActionSet) -> str:
    """The canonical JSON text of an action set. Actions that stand in its blueprints are not repeated."""
    document = to_json(pinned)
    for written, each in zip(document["actions"], pinned.actions, strict=True):
        if pinned.blueprints.get(each.blueprint, {}).get(each.name) == each.action:
            del written["action"]
    return canonical_text(document)


def read_pinned(text: str) -> PinnedActionSet:
    """
    Read a text of ``pinned_text``.

    Raises:
        ValueError: It is none.
    """
    document = orjson.loads(text)
    try:
        whole = [_with_action(each, document.get("blueprints", {})) for each in document["actions"]]
    except (TypeError, KeyError, AttributeError):
        raise ValueError("the text is no action set, or has an action that it does not describe") from None
    return from_json(PinnedActionSet, {**document, "actions": whole})


def _with_action(written: Mapping[str, Any], blueprints: Mapping[str, Any]) -> Mapping[str, Any]:
    if "action" in written:
        return written
    return {**written, "action": blueprints[written["blueprint"]][written["name"]]}


def phase_count(pinned: PinnedActionSet) -> int:
    """The number of phases, without deferPhases: what progress counts."""
    return sum(len(each.action.phases) for each in pinned.actions)


def blueprint_names(pinned: PinnedActionSet) -> tuple[str, ...]:
    """The names of its blueprints, each once, sorted."""
    return tuple(sorted({each.blueprint for each in pinned.actions}))


def objects_of(pinned: PinnedActionSet) -> tuple[ActionObject, ...]:
    """The objects of its actions, each once, in the order of the actions."""
    return tuple(dict.fromkeys(each.object for each in pinned.actions if each.object))


def reserved_stacks(pinned: PinnedActionSet, table: SignatureTable) -> tuple[StackPlace, ...]:
    """The stacks that it reserves while it runs: those of the objects of actions that lock; each once, sorted."""
    objects = [each.object for each in pinned.actions if each.object and locks(each.action, table)]
    return tuple(sorted({stack_of(each) for each in objects}))


def locks(action: Action, table: SignatureTable) -> bool:
    """Whether *action* reserves the stack of its object."""
    if action.lock is not None:
        return action.lock and action.kind != NO_OBJECT
    return action.kind != NO_OBJECT and any(Effect.STACK in _effects(phase, table) for phase in all_phases(action))


def all_phases(action: Action) -> tuple[Phase, ...]:
    """The phases of *action*, its deferPhase last."""
    return (*action.phases, *((action.defer_phase,) if action.defer_phase else ()))


def _effects(phase: Phase, table: SignatureTable) -> Collection[Effect]:
    """What a phase changes: by its function, and by one that its arguments name."""
    signature = table.find(phase.function, phase.version)
    if signature is None:
        return ()
    inner = called_function(Call(signature, JsonPlace(phase.arguments, ())), table)
    return {each.effect for each in (signature, inner) if each}


def stack_of(target: ActionObject) -> StackPlace:
    """The stack that is the object, or has it."""
    whole = with_whole_target(target)
    return StackPlace(whole.platform, whole.org, whole.name if whole.kind == STACK else whole.stack)


def with_whole_target(target: ActionObject) -> ActionObject:
    """The object with the default platform and organization where it names none."""
    default = Target()
    return replace(target, platform=target.platform or default.platform, org=target.org or default.org)


def with_versions(action: Action, table: SignatureTable) -> Action:
    """The action with the newest version of each function that is in *table* where it names none."""
    return replace(
        action,
        phases=tuple(_with_version(phase, table) for phase in action.phases),
        defer_phase=_with_version(action.defer_phase, table) if action.defer_phase else None,
    )


def _with_version(phase: Phase, table: SignatureTable) -> Phase:
    signature = table.find(phase.function, phase.version)
    return replace(phase, version=signature.version) if signature else phase


def input_snapshots(pinned: PinnedActionSet) -> tuple[str, ...]:
    """The ids of the snapshots among its input artifacts, each once, sorted."""
    return snapshot_ids(text for each in pinned.actions for texts in each.artifacts.values() for text in texts.values())
