"""Late effects of an operation: unowned resources, and changes of the resources that its plan touched."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from services.core.model import Key, PlatformTraits, Resource, ResourceKey, Spec
from services.engine.content_match import has_content
from services.engine.effects import AnyEffect, PutSecret
from services.engine.ids import Subject
from services.engine.outcome import Done, Failed, GivenUp, RejectionReason, Unknown
from services.engine.progress import Progress


class LateWrite(NamedTuple):
    """One resource or secret that is not as the operation left it; ``message`` is one sentence."""

    key: Key
    resource_id: str
    message: str


def late_writes(
    progress: Progress,
    live: Sequence[Resource],
    owned: Collection[ResourceKey],
    platform: PlatformTraits,
    held_secrets: Collection[str] = (),
) -> list[LateWrite]:
    """
    Compare the expected content at the end of an operation with the platform; sorted by kind and id.

    Steps with a decision or an unknown outcome are left out: they determine no content.

    Args:
        progress: The outcomes of the steps.
        live: All resources of ``kinds_to_compare``, and of kinds with a costly listing the resources that the operation
            knows.
        owned: Resources that a stack owns, or that the operation is about to record.
        platform: The platform.
        held_secrets: Keys of the secrets that the platform holds, for a plan that writes some.
    """
    by_id = {(resource.kind, resource.id): resource for resource in live}
    certain = [effect for effect in progress.effects if _is_certain(effect, progress)]
    writes = [
        *_extra(progress, live, owned, platform),
        *_drift(certain, progress, by_id, platform),
        *_labels(certain, progress, by_id),
        *_secrets(progress, held_secrets),
    ]
    return sorted(writes, key=lambda each: (each.key.kind, each.resource_id, each.message))


def kinds_to_compare(progress: Progress, platform: PlatformTraits) -> list[str]:
    """
    The kinds whose resources a plan touches, sorted.

    A kind with a costly listing is included only if a resource of that kind was created, because that resource has to
    be searched for.
    """
    touched = {effect.step.key.kind for effect in progress.effects if not effect.is_of_secret}
    created = {effect.step.key.kind for effect in progress.effects if _created(effect, progress)}
    return sorted(kind for kind in touched if kind in created or not platform.kinds[kind].costly_listing)


def writes_secrets(progress: Progress) -> bool:
    """Whether a plan writes secrets."""
    return any(effect.is_of_secret for effect in progress.effects)


def _is_certain(effect: AnyEffect, progress: Progress) -> bool:
    outcomes = (progress.outcome(effect.number), progress.undo_outcome(effect.number))
    is_decided = progress.stays(effect.number) or isinstance(outcomes[0], GivenUp)
    return not (effect.is_of_secret or is_decided or any(isinstance(outcome, Unknown) for outcome in outcomes))


def _stands(effect: AnyEffect, progress: Progress) -> bool:
    return progress.took_effect(effect.number) and not progress.was_undone(effect.number)


def _extra(
    progress: Progress, live: Sequence[Resource], owned: Collection[ResourceKey], platform: PlatformTraits
) -> Iterator[LateWrite]:
    by_name: dict[ResourceKey, list[Resource]] = {}
    found_keys: set[ResourceKey] = set()
    for resource in live:
        by_name.setdefault((resource.kind, resource.spec.display_name), []).append(resource)
    for effect in progress.effects:
        spec = _created(effect, progress)
        if spec is None:
            continue
        for resource in by_name.get((effect.step.key.kind, spec.display_name), ()):
            key = (resource.kind, resource.id)
            is_known = key in owned or key in found_keys or resource.id in progress.before_ids(effect.number)
            if not is_known and has_content(resource, spec, platform.kinds[resource.kind]):
                found_keys.add(key)
                yield LateWrite(effect.step.key, resource.id, "it may have been created late: no stack owns it")


def _created(effect: AnyEffect, progress: Progress) -> Spec | None:
    """The spec of a creation that was sent for a step; None: none was sent, or the platform rejects its content."""
    outcome = progress.outcome(effect.number)
    if effect.makes:
        # A platform that rejects the content accepts no request with it. A name that was taken when a request was
        # repeated may be free when the first one arrives.
        was_rejected = isinstance(outcome, Failed) and outcome.reason not in (None, RejectionReason.NAME_TAKEN)
        return None if outcome is None or was_rejected else effect.step.new_spec
    was_made_again = effect.removes and progress.undo_outcome(effect.number) is not None
    return effect.step.old_spec if was_made_again else None


def _drift(
    certain: Sequence[AnyEffect], progress: Progress, live: Mapping[ResourceKey, Resource], platform: PlatformTraits
) -> Iterator[LateWrite]:
    expected: dict[Subject, Spec | None] = {}
    for effect in certain:
        if not effect.step.key.name or effect.links:
            continue
        subject = progress.ids.subject(effect.step.key, effect.step.resource_id)
        if _stands(effect, progress):
            expected[subject] = effect.step.new_spec
        else:
            expected.setdefault(subject, effect.step.old_spec)
    for (key, planned_id), spec in expected.items():
        resource_id = progress.ids.find(key, planned_id)
        if spec is None or not resource_id:
            continue
        resource = live.get((key.kind, resource_id))
        if resource is None:
            yield LateWrite(key, resource_id, "it is gone")
        elif not has_content(resource, spec, platform.kinds[key.kind]):
            yield LateWrite(key, resource_id, "it differs from the end of the operation")


def _labels(
    certain: Sequence[AnyEffect], progress: Progress, live: Mapping[ResourceKey, Resource]
) -> Iterator[LateWrite]:
    for effect in certain:
        if effect.step.label is None:
            continue
        resource_id, label_id = effect.target(progress.ids), effect.label_id(progress.ids)
        if _stands(effect, progress) and progress.resource(effect.number) != resource_id:
            # The labelled resource was replaced since.
            continue
        resource = live.get((effect.step.key.kind, resource_id))
        is_wanted = _stands(effect, progress) != effect.removes
        if resource is None or not label_id or (label_id in resource.label_ids) == is_wanted:
            continue
        problem = "lost" if is_wanted else "got back"
        yield LateWrite(effect.step.key, resource_id, f"it {problem} its label {effect.step.label.name or label_id}")


def _secrets(progress: Progress, live_secrets: Collection[str]) -> Iterator[LateWrite]:
    for effect in progress.effects:
        if not isinstance(effect, PutSecret) or progress.stays(effect.number):
            continue
        key, stands = effect.step.key, _stands(effect, progress)
        was_sent = isinstance(progress.outcome(effect.number), Done | Failed | Unknown)
        if stands and key.name not in live_secrets:
            yield LateWrite(key, key.name, "it is gone")
        elif not effect.overwrites and was_sent and not stands and key.name in live_secrets:
            yield LateWrite(key, key.name, "it may have been written late, after its undo")
