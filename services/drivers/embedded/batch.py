"""The effect of a batch on the resources that it names: rules of the embedded platform, without its storage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.core.model import LABEL, NameUniqueness, Spec
from services.drivers.embedded.kinds import EMBEDDED, change_refusal, content_refusal, name_scope, unique_name
from services.drivers.embedded.secrets import Item, KeptSecret
from services.drivers.expectations import held_to
from services.drivers.mutation import (
    Attach,
    Create,
    Delete,
    DeleteSecret,
    Detach,
    Done,
    Rejected,
    ResourceId,
    StoredResource,
    Update,
)
from services.engine.outcome import RejectionReason

_IGNORED = {
    NameUniqueness.NONE: "",
    NameUniqueness.EXACT: "",
    NameUniqueness.CASE_INSENSITIVE: " (case does not count)",
    NameUniqueness.TRIMMED_CASE_INSENSITIVE: " (case and white space around a name do not count)",
}
"""For each uniqueness, the differences between names that a comparison ignores; part of error messages."""


@dataclass(frozen=True, slots=True)
class Extract:
    """
    The part of one organization that a batch can see; performing the batch changes its mappings.

    Attributes:
        resources: The existing resources, labels and referenced resources that the batch names.
        holders: Id of the resource with a unique name, by scope and compared name, for all names in the batch.
        created: Id of the resource that a create made, by kind and idempotency key, for all keys in the batch. The
            resource itself may be gone.
        secrets: Hashes of secret values by key, for the existing keys that the batch names.
    """

    resources: dict[ResourceId, StoredResource]
    holders: dict[tuple[str, str], str]
    created: dict[tuple[str, str], str]
    secrets: dict[str, str]


def refusal(item: Create | Update, live: StoredResource | None = None) -> Rejected | None:
    """Why the platform refuses the content of *item* as a new state of *live*; None when it accepts it."""
    kind = item.kind if isinstance(item, Create) else item.id.kind
    problem = content_refusal(kind, item.spec)
    if live and not problem:
        problem = change_refusal(kind, Spec(live.spec_json, live.display_name), item.spec)
    return Rejected(RejectionReason.CONTENT_REFUSED, problem) if problem else None


def perform(batch: Sequence[Item], extract: Extract, free_ids: Iterator[str]) -> list[Done | Rejected]:
    """
    Apply the items in order; a rejected item changes nothing, and the next ones still run.

    Args:
        batch: The mutations.
        extract: The resources that the batch names; afterwards, their state after the batch.
        free_ids: Ids for new resources, at least one for each create.

    Returns:
        One result for each item, in order.
    """
    return [_perform(item, extract, free_ids) for item in batch]


def _perform(item: Item, extract: Extract, free_ids: Iterator[str]) -> Done | Rejected:
    match item:
        case Create():
            return _create(item, extract, free_ids)
        case Update():
            return _update(item, extract)
        case Delete():
            return _delete(item, extract)
        case Attach():
            return _attach(item, extract)
        case Detach():
            return _detach(item, extract)
        case KeptSecret(key, hash_):
            extract.secrets[key] = hash_
            return Done()
        case DeleteSecret(key):
            extract.secrets.pop(key, None)
            return Done()


def _create(item: Create, extract: Extract, free_ids: Iterator[str]) -> Done | Rejected:
    key = (item.kind, item.idempotency_key)
    if key in extract.created:
        created_id = ResourceId(item.kind, extract.created[key])
        live = extract.resources.get(created_id)
        return Done(live, is_replayed=True) if live else _created_and_gone(created_id)
    if refused := refusal(item) or _name_taken(item.kind, item.spec, extract) or _refers_to_nothing(item, extract):
        return refused
    new_id = ResourceId(item.kind, next(free_ids))
    resource = StoredResource(new_id, item.spec.text, item.spec.display_name, references=item.references)
    _put(resource, extract)
    if item.idempotency_key:
        extract.created[key] = resource.id.id
    return Done(resource)


def _update(item: Update, extract: Extract) -> Done | Rejected:
    live = extract.resources.get(item.id)
    if live is None:
        return _not_found(item.id)
    if (ended := held_to(item, live, EMBEDDED.kinds[item.id.kind])) is not None:
        return ended
    kind, name = item.id.kind, item.spec.display_name
    keeps_name = unique_name(kind, live.display_name) == unique_name(kind, name)
    if refused := (
        refusal(item, live)
        or (None if keeps_name else _name_taken(kind, item.spec, extract))
        or _refers_to_nothing(item, extract)
    ):
        return refused
    _give_up_name(live, extract)
    written = live._replace(spec_json=item.spec.text, display_name=name, references=item.references)
    _put(written, extract)
    return Done(written)


def _delete(item: Delete, extract: Extract) -> Done | Rejected:
    live = extract.resources.get(item.id)
    if live is not None:
        if (ended := held_to(item, live, EMBEDDED.kinds[item.id.kind])) is not None:
            return ended
        del extract.resources[item.id]
        _give_up_name(live, extract)
        if item.id.kind == LABEL:
            for resource in list(extract.resources.values()):
                _set_labels(resource, set(resource.label_ids) - {item.id.id}, extract)
        for resource in [resource for resource in extract.resources.values() if resource.references]:
            left = tuple(each for each in resource.references if (each.kind, each.id) != item.id)
            extract.resources[resource.id] = resource._replace(references=left)
    return Done()


def _attach(item: Attach, extract: Extract) -> Done | Rejected:
    for needed in (item.id, ResourceId(LABEL, item.label_id)):
        if needed not in extract.resources:
            return _not_found(needed)
    live = extract.resources[item.id]
    _set_labels(live, {*live.label_ids, item.label_id}, extract)
    return Done()


def _detach(item: Detach, extract: Extract) -> Done:
    if live := extract.resources.get(item.id):
        _set_labels(live, set(live.label_ids) - {item.label_id}, extract)
    return Done()


def _put(resource: StoredResource, extract: Extract) -> None:
    extract.resources[resource.id] = resource
    name = unique_name(resource.id.kind, resource.display_name)
    if name is not None:
        extract.holders[name_scope(resource.id.kind), name] = resource.id.id


def _set_labels(resource: StoredResource, label_ids: set[str], extract: Extract) -> None:
    if len(label_ids) != len(resource.label_ids):
        extract.resources[resource.id] = resource._replace(label_ids=tuple(sorted(label_ids)))


def _give_up_name(live: StoredResource, extract: Extract) -> None:
    name = unique_name(live.id.kind, live.display_name)
    if name is not None:
        extract.holders.pop((name_scope(live.id.kind), name), None)


def _name_taken(kind: str, spec: Spec, extract: Extract) -> Rejected | None:
    name = unique_name(kind, spec.display_name)
    holder = None if name is None else extract.holders.get((name_scope(kind), name))
    if holder is None:
        return None
    problem = f"another {name_scope(kind)}, {holder}, has the name {spec.display_name!r}"
    return Rejected(RejectionReason.NAME_TAKEN, problem + _IGNORED[EMBEDDED.kinds[kind].name_uniqueness])


def _refers_to_nothing(item: Create | Update, extract: Extract) -> Rejected | None:
    for reference in item.references:
        referred = ResourceId(reference.kind, reference.id)
        if referred not in extract.resources:
            return _not_found(referred)
    return None


def _not_found(missing: ResourceId) -> Rejected:
    return Rejected(RejectionReason.NOT_FOUND, f"there is no {missing}")


def _created_and_gone(gone: ResourceId) -> Rejected:
    return Rejected(
        RejectionReason.NOT_FOUND, f"{gone} was created with this idempotency key and is gone; use a new key"
    )
