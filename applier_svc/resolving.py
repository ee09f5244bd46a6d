"""What became of a step that was sent and not answered, decided by what is on the platform now (engine.md 5)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from applier_svc.outcomes import Done, NotHappened, Unknown
from services.core.model import Identity, KindTraits, Reference, Resource, Spec, Step, Verb
from services.kinds.comparing import comparable

Finding = Done | NotHappened | Unknown
"""Unknown: the platform does not tell; somebody has to look."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """
    A step that was sent and not answered.

    Attributes:
        step: As it was sent: a step of the plan, or the inverse of one.
        remote_id: The resource it was sent to; empty for a creation.
        label_id: The label that it attaches or detaches; empty for all else.
        references: What the resource refers to, if it happened.
        old_references: What the resource refers to, if it did not.
        before_ids: Of a creation: resources of its kind and display name that were there before it was sent.
    """

    step: Step
    remote_id: str = ""
    label_id: str = ""
    references: tuple[Reference, ...] = ()
    old_references: tuple[Reference, ...] = ()
    before_ids: Collection[str] = ()


def finding(doubt: Doubt, live: Resource | None, traits: KindTraits) -> Finding:
    """
    What became of a step that is no creation.

    Args:
        doubt: The step.
        live: The resource it was sent to; None when that certainly does not exist.
        traits: Of its kind.
    """
    step = doubt.step
    match step.verb:
        case Verb.DELETE:
            return NotHappened() if live else Done(doubt.remote_id)
        case Verb.DETACH:
            return NotHappened() if live and doubt.label_id in live.label_ids else Done(doubt.remote_id)
        case Verb.ATTACH:
            return Done(doubt.remote_id) if live and doubt.label_id in live.label_ids else NotHappened()
    if live is None:
        # Nothing is left of it, if it happened at all. Sent again it is refused, and the refusal is certain.
        return NotHappened()
    if is_alike(live, step.new_spec, doubt.references, traits):
        return Done(doubt.remote_id)
    if is_alike(live, step.old_spec, doubt.old_references, traits):
        return NotHappened()
    problem = "the resource is neither as it was nor as it was to be: somebody else has changed it"
    return Unknown(problem, is_conflict=True, found=doubt.remote_id)


def finding_of_create(doubt: Doubt, live: Iterable[Resource], owned: Collection[str], traits: KindTraits) -> Finding:
    """
    What became of a creation that the platform does not remember.

    Args:
        doubt: The creation.
        live: All resources of its kind.
        owned: Ids of those that a stack owns, or of which this operation knows what they are.
        traits: Of the kind.
    """
    named = [resource for resource in live if _has_its_name(resource, doubt.step, traits)]
    if traits.identity is Identity.SEARCH:
        return _searched(doubt, [each for each in named if each.id not in owned], traits)
    match named:
        case []:
            return NotHappened()
        case [resource] if resource.id not in owned and _is_its_content(resource, doubt, traits):
            return Done(resource.id)
        case [resource]:
            problem = f"{resource.kind} {resource.id} has the name, and is not what was to be created"
            return Unknown(problem, is_conflict=True, found="" if resource.id in owned else resource.id)
        case _:
            return Unknown(_several(named))


def is_alike(resource: Resource, spec: Spec | None, references: Collection[Reference], traits: KindTraits) -> bool:
    """Whether *resource* has the content *spec* and refers to *references*, as far as the order of lists counts."""
    if spec is None or set(resource.references) != set(references):
        return False
    held, meant = (comparable(resource.kind, each, traits.set_paths) for each in (resource.spec, spec))
    return held == meant


def _searched(doubt: Doubt, named: Sequence[Resource], traits: KindTraits) -> Finding:
    new = [each for each in named if each.id not in doubt.before_ids and _is_its_content(each, doubt, traits)]
    match new:
        case []:
            return NotHappened()
        case [resource]:
            return Done(resource.id)
        case _:
            return Unknown(_several(new))


def _has_its_name(resource: Resource, step: Step, traits: KindTraits) -> bool:
    assert step.new_spec is not None  # noqa: S101 - what is created has a spec
    return traits.compared_name(resource.spec.display_name) == traits.compared_name(step.new_spec.display_name)


def _is_its_content(resource: Resource, doubt: Doubt, traits: KindTraits) -> bool:
    return is_alike(resource, doubt.step.new_spec, doubt.references, traits)


def _several(found: Sequence[Resource]) -> str:
    ids = ", ".join(sorted(each.id for each in found)[:5])
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return f"any of {len(found)} resources may be what was created: {ids}{more}"
