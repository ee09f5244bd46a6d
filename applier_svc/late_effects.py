"""What took effect after nobody waited for it any more: resources of nobody, and changes of what a plan touched."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pkger.model.v1 import operation_pb2

from applier_svc.ids import Ids
from applier_svc.outcomes import Done, Failed, GivenUp, Unknown
from applier_svc.progress import Progress
from applier_svc.undo import inverse
from services.core.model import Key, Plan, PlatformTraits, Resource, Spec, Step, Verb
from services.kinds.comparing import comparable

ResourceKey = tuple[str, str]
"""Kind and id of a resource."""


def late_effects(
    plan: Plan,
    progress: Progress,
    ids: Ids,
    live: Sequence[Resource],
    owned: Collection[ResourceKey],
    platform: PlatformTraits,
    held_secrets: Collection[str] = (),
) -> list[operation_pb2.LateEffect]:
    """
    Compare what an operation left with what is there now, at its end; sorted by kind and id.

    Steps that somebody decided about, or whose outcome nobody knows, say nothing of what is to be there.

    Args:
        plan: Its plan.
        progress: What became of the steps.
        ids: Which resource each key means now.
        live: All resources of the kinds that the plan touches.
        owned: Those that a stack owns, or that the operation is about to record.
        platform: The platform.
        held_secrets: Keys of the secrets that the platform holds, for a plan that writes some.
    """
    by_id = {(resource.kind, resource.id): resource for resource in live}
    steps = [step for step in plan.steps if _is_certain(step, progress)]
    found = [
        *_extra(plan.steps, progress, live, owned, platform),
        *_drift(steps, progress, ids, by_id, platform),
        *_labels(steps, progress, ids, by_id),
        *_secrets(plan.steps, progress, held_secrets),
    ]
    return sorted(found, key=lambda each: (each.key.kind, each.remote_id, each.message))


def kinds_touched(plan: Plan) -> list[str]:
    """The kinds whose resources a plan touches, sorted."""
    return sorted({step.key.kind for step in plan.steps if not step.is_secret})


def _is_certain(step: Step, progress: Progress) -> bool:
    outcomes = (progress.done.get(step.number), progress.undone.get(step.number))
    is_decided = step.number in progress.stays or isinstance(outcomes[0], GivenUp)
    return not (step.is_secret or is_decided or any(isinstance(outcome, Unknown) for outcome in outcomes))


def _stands(step: Step, progress: Progress) -> bool:
    return progress.took_effect(step) and not progress.was_undone(step)


def _extra(
    steps: Iterable[Step],
    progress: Progress,
    live: Sequence[Resource],
    owned: Collection[ResourceKey],
    platform: PlatformTraits,
) -> list[operation_pb2.LateEffect]:
    found: dict[ResourceKey, operation_pb2.LateEffect] = {}
    by_name: dict[ResourceKey, list[Resource]] = {}
    for resource in live:
        by_name.setdefault((resource.kind, resource.spec.display_name), []).append(resource)
    for step in steps:
        spec = _created(step, progress)
        if spec is None:
            continue
        for resource in by_name.get((step.key.kind, spec.display_name), ()):
            key = (resource.kind, resource.id)
            is_known = key in owned or resource.id in progress.before_ids.get(step.number, ())
            if not is_known and _is_alike(resource, spec, platform):
                found[key] = _told(step.key, resource.id, "it may have been created late: no stack owns it")
    return list(found.values())


def _created(step: Step, progress: Progress) -> Spec | None:
    """What a creation that was sent for *step* was to make; None: none was, or the platform refused it."""
    outcome = progress.done.get(step.number)
    match step.verb:
        case Verb.CREATE if not step.is_secret:
            # A refusal with a reason is one of the platform: it never took effect.
            was_refused = isinstance(outcome, Failed) and outcome.reason
            return None if outcome is None or was_refused else step.new_spec
        case Verb.DELETE if step.number in progress.undone:
            return inverse(step).new_spec
        case _:
            return None


def _drift(
    steps: Iterable[Step],
    progress: Progress,
    ids: Ids,
    live: Mapping[ResourceKey, Resource],
    platform: PlatformTraits,
) -> list[operation_pb2.LateEffect]:
    expected: dict[Key, Spec | None] = {}
    for step in steps:
        if not step.key.name or step.verb in (Verb.ATTACH, Verb.DETACH):
            continue
        if _stands(step, progress):
            expected[step.key] = step.new_spec
        else:
            expected.setdefault(step.key, step.old_spec)
    found = []
    for key, spec in expected.items():
        remote_id = ids.get(key)
        if spec is None or not remote_id:
            continue
        resource = live.get((key.kind, remote_id))
        if resource is None:
            found.append(_told(key, remote_id, "it is gone"))
        elif not _is_alike(resource, spec, platform):
            found.append(_told(key, remote_id, "it is not as the operation left it"))
    return found


def _labels(
    steps: Iterable[Step], progress: Progress, ids: Ids, live: Mapping[ResourceKey, Resource]
) -> list[operation_pb2.LateEffect]:
    found = []
    for step in steps:
        if step.label is None:
            continue
        remote_id, label_id = ids.of_resource(step), ids.of_label(step)
        resource = live.get((step.key.kind, remote_id))
        is_wanted = _stands(step, progress) == (step.verb is Verb.ATTACH)
        if resource is None or not label_id or (label_id in resource.label_ids) == is_wanted:
            continue
        problem = "lost" if is_wanted else "got back"
        found.append(_told(step.key, remote_id, f"it {problem} its label {step.label.name or label_id}"))
    return found


def _secrets(steps: Iterable[Step], progress: Progress, held: Collection[str]) -> list[operation_pb2.LateEffect]:
    found = []
    for step in steps:
        if not step.is_secret or step.number in progress.stays:
            continue
        is_there, was_sent = step.key.name in held, isinstance(progress.done.get(step.number), Done | Failed | Unknown)
        if _stands(step, progress) and not is_there:
            found.append(_told(step.key, step.key.name, "it is gone"))
        elif step.verb is Verb.CREATE and was_sent and not _stands(step, progress) and is_there:
            found.append(_told(step.key, step.key.name, "it may have been written late: it was taken back before"))
    return found


def _is_alike(resource: Resource, spec: Spec, platform: PlatformTraits) -> bool:
    sets = platform.kinds[resource.kind].set_paths
    return comparable(resource.kind, resource.spec, sets) == comparable(resource.kind, spec, sets)


def _told(key: Key, remote_id: str, message: str) -> operation_pb2.LateEffect:
    late = operation_pb2.LateEffect(remote_id=remote_id, message=message)
    late.key.kind, late.key.name = key
    return late
