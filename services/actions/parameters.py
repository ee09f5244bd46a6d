"""What the templates of a phase can use: the parameters, and which of them it uses."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from services.actions.definitions import STACK, ActionObject, Phase, SecretSource
from services.actions.phase_reason import PhaseReason
from services.actions.pinned import PinnedAction, PinnedActionSet
from services.actions.templates.references import Reference, references
from services.actions.templates.template import parse_template
from services.actions.templates.values import Value

Parameters = Mapping[str, Value]
"""The values of the roots of expressions; a root that is not there is missing."""

Outputs = Mapping[str, Mapping[str, Value]]
"""The outputs of phases, by the names of both."""


class Failure(NamedTuple):
    """Why an action failed: the phase that failed first, why, and one sentence for people."""

    phase: str
    reason: PhaseReason
    message: str


class StackResource(NamedTuple):
    """A resource of a stack: ``metadata.name`` and the id on its platform."""

    kind: str
    name: str
    id: str


@dataclass(frozen=True, slots=True)
class StackFacts:
    """A stack as it is when a phase starts."""

    id: str
    name: str
    generation: int
    resources: tuple[StackResource, ...] = ()


def parameters_of(
    pinned: PinnedActionSet,
    index: int,
    operation: str,
    outputs: Outputs,
    *,
    stack: StackFacts | None = None,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Value]:
    """
    The parameters of the templates of one action.

    Args:
        pinned: The action set.
        index: The index of the action in it.
        operation: The id of its operation.
        outputs: The outputs that may be used: all of phases that are complete, and what others have emitted.
        stack: The stack; None: no template uses it, or it is gone.
        secrets: The values of secrets that the templates use, by name and key; None: they use none.
    """
    action = pinned.actions[index]
    parameters: dict[str, Value] = {
        "time": pinned.time,
        "run": {"name": pinned.name, "id": operation, "action": action.name},
        "options": dict(action.options),
        "configMaps": _copied(action.config_maps),
        "artifacts": _copied(action.artifacts),
        "phases": {name: {"output": dict(of_phase)} for name, of_phase in outputs.items()},
    }
    if action.object:
        parameters["object"] = _object(action.object)
    if stack:
        resources = [resource._asdict() for resource in stack.resources]
        parameters["stack"] = {
            "id": stack.id,
            "name": stack.name,
            "generation": stack.generation,
            "resources": [*resources],
        }
    if secrets is not None:
        parameters["secrets"] = _copied(secrets)
    return parameters


def in_defer_phase(parameters: Parameters, failure: Failure | None) -> dict[str, Value]:
    """The parameters of a deferPhase, which also has the *failure*; None: nothing failed."""
    if failure is None:
        return {**parameters, "failure": {}}
    phase, reason, message = failure
    return {**parameters, "failure": {"phase": phase, "reason": reason.value, "message": message}}


def uses_stack(phase: Phase) -> bool:
    """Whether a template of *phase* uses the stack, so that it has to be read when the phase starts."""
    return any(reference.root == "stack" for reference in _references_of(phase))


def artifact_uses_stack(templates: Mapping[str, str]) -> bool:
    """Whether a template of an output artifact uses the stack."""
    return any(reference.root == "stack" for reference in _references_within([*templates.values()]))


def used_secrets(phase: Phase, action: PinnedAction) -> dict[str, dict[str, SecretSource]]:
    """The places of the secrets that the arguments of *phase* use, by name and key."""
    used: dict[str, dict[str, SecretSource]] = {}
    for reference in _references_within(phase.arguments):
        if reference.root == "secrets" and reference.members:
            name, *keys = reference.members
            places = action.secrets.get(name, {}) if isinstance(name, str) else {}
            key = keys[0] if keys else None
            chosen = places if key is None else {each: place for each, place in places.items() if each == key}
            used.setdefault(str(name), {}).update(chosen)
    return {name: places for name, places in used.items() if places}


def unpassed_secrets(phase: Phase, action: PinnedAction) -> list[str]:
    """The secrets that the arguments of *phase* use and that were not passed to the action, as NAME.KEY; sorted."""
    unpassed = set()
    for reference in _references_within(phase.arguments):
        if reference.root != "secrets" or reference.is_guarded or len(reference.members) < 2:
            continue
        name, key, *_ = reference.members
        if isinstance(name, str) and isinstance(key, str) and key not in action.secrets.get(name, {}):
            unpassed.add(f"{name}.{key}")
    return sorted(unpassed)


def used_phases(templates: Mapping[str, str]) -> set[str]:
    """The phases whose outputs the templates of an output artifact use."""
    return {
        str(reference.members[0])
        for reference in _references_within([*templates.values()])
        if reference.root == "phases" and reference.members
    }


def _object(target: ActionObject) -> Value:
    stack = {} if target.kind == STACK else {"stack": target.stack}
    place = {"platform": target.platform, "org": target.org}
    return {"kind": target.kind, "name": target.name, **stack, "target": place}


def _copied(texts: Mapping[str, Mapping[str, str]]) -> Value:
    return {name: dict(by_key) for name, by_key in texts.items()}


def _references_of(phase: Phase) -> Iterator[Reference]:
    yield from _references_within([phase.condition, dict(phase.arguments)])


def _references_within(value: object) -> Iterator[Reference]:
    """The references of all texts in a value, in lists and mappings too."""
    if isinstance(value, str):
        yield from references(parse_template(value))
    elif isinstance(value, Mapping | list):
        items: Iterable[object] = value.values() if isinstance(value, Mapping) else value
        for item in items:
            yield from _references_within(item)
