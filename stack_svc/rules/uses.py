"""
Stacks that use resources of other stacks, and the claims that these uses refuse (docs/reference/engine.md, "Shared
resources").
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from services.core.model import Key, ResourceKey, Target
from services.engine.claims import Claim, ClaimedAssociation, ClaimedResource, ClaimMode, Refusal
from stack_svc.rules import owners
from stack_svc.store.operations import Operation
from stack_svc.store.owners import RECORDED, Owner
from stack_svc.store.store import ReadTransaction

Holding = tuple[ResourceKey, Owner]
"""A resource, and a stack that owns or uses it."""


def of_resources(reading: ReadTransaction, target: Target, resources: Collection[ResourceKey]) -> list[Holding]:
    """The users of *resources*, sorted by kind and id, then by the time since which they use it."""
    by_what = {owners.what_of(*each): each for each in resources}
    pairs = ((by_what[owner.what], owner) for owner in reading.uses.of(target, by_what))
    return sorted(pairs, key=lambda each: each[0])


def holdings(
    reading: ReadTransaction, target: Target, resources: Collection[ResourceKey]
) -> tuple[list[Holding], list[Holding], dict[tuple[str, ResourceKey], tuple[str, ...]]]:
    """
    The owners of *resources*, their users, and the labels that owners and users want, as returned by ``labels_of``.
    """
    owned, used = owners.of_resources(reading, target, resources), of_resources(reading, target, resources)
    return owned, used, labels_of(reading, [*owned, *used])


def labels_of(reading: ReadTransaction, holdings: Iterable[Holding]) -> dict[tuple[str, ResourceKey], tuple[str, ...]]:
    """
    The ids of the labels that the records of stacks want on resources, sorted, by stack and resource.

    Args:
        reading: The store.
        holdings: The resources, each with a stack that owns or uses it; claims are left out, as they are in no record.
    """
    by_stack: defaultdict[str, dict[Key, ResourceKey]] = defaultdict(dict)
    for resource, holder in holdings:
        if holder.operation == RECORDED:
            by_stack[holder.stack][Key(resource[0], holder.name)] = resource
    by_holder: dict[tuple[str, ResourceKey], tuple[str, ...]] = {}
    for stack, resources in by_stack.items():
        entries = reading.inventory.entries(stack, resources)
        labels = {label for entry in entries for label in entry.associations}
        ids = {label.key: label.resource_id for label in reading.inventory.entries(stack, labels)} if labels else {}
        for entry in entries:
            by_holder[stack, resources[entry.key]] = tuple(
                sorted(ids[each] for each in entry.associations if each in ids)
            )
    return by_holder


def taken_away(reading: ReadTransaction, operation: Operation, used: Sequence[Claim]) -> list[Refusal]:
    """Claims of *used* whose item another operation claims to own or to remove."""
    if not used:
        return []
    texts = {each: owners.text_of(each.what) for each in used}
    removals = {each: owners.removal_of(what) for each, what in texts.items()}
    owners_by_what = {
        each.what: each for each in reading.owners.of(operation.target, [*texts.values(), *removals.values()])
    }
    others = ((each, owners_by_what.get(removals[each]) or owners_by_what.get(what)) for each, what in texts.items())
    return [
        Refusal(each, owners.holder_of(other))
        for each, other in others
        if other and other.operation != RECORDED and other.stack != operation.stack
    ]


def named_owners(reading: ReadTransaction, operation: Operation, used: Sequence[Claim]) -> list[Refusal]:
    """Claims of *used* to take over a resource that another stack owns, where that stack has a name."""
    by_text = {owners.text_of(each.what): each for each in used if each.mode is ClaimMode.TAKE_OVER}
    others = reading.owners.of(operation.target, by_text) if by_text else ()
    return [
        Refusal(by_text[owner.what], owners.holder_of(owner))
        for owner in others
        if owner.operation == RECORDED and owner.stack_name and owner.stack != operation.stack
    ]


def unowned(reading: ReadTransaction, target: Target, claims: Sequence[Claim]) -> str:
    """A sentence about the first resource that *claims* use and no stack owns any more; empty when there is none."""
    used = [each for each in claims if each.mode is ClaimMode.USE and isinstance(each.what, ClaimedResource)]
    if not used:
        return ""
    owned = {each.what for each in reading.owners.of(target, [owners.text_of(each.what) for each in used])}
    left = [each for each in used if owners.text_of(each.what) not in owned]
    return f"{left[0].key} uses {left[0].what}, which no stack owns any more" if left else ""


def in_use(reading: ReadTransaction, operation: Operation, removed: Sequence[Claim]) -> list[Refusal]:
    """Claims of *removed* whose item other stacks use, or want by their record: one refusal for each user."""
    if not removed:
        return []
    by_text = {owners.text_of(each.what): each for each in removed}
    users = [(by_text[owner.what], owner) for owner in reading.uses.of(operation.target, by_text)]
    users += _with_attached_label(reading, operation.target, removed)
    return [Refusal(each, owners.holder_of(user), in_use=True) for each, user in users if user.stack != operation.stack]


def _with_attached_label(
    reading: ReadTransaction, target: Target, removed: Sequence[Claim]
) -> list[tuple[Claim, Owner]]:
    """The stacks whose record wants an association among *removed*."""
    labels = [(each, each.what) for each in removed if isinstance(each.what, ClaimedAssociation)]
    if not labels:
        return []
    resources = {(what.kind, what.resource_id) for _, what in labels}
    users = of_resources(reading, target, resources)
    # Without a user of the resource, only its owner wants its associations.
    shared = {resource for resource, _ in users}
    holdings = [*owners.of_resources(reading, target, shared), *users] if shared else []
    attached = labels_of(reading, holdings)
    return [
        (each, holder)
        for each, what in labels
        for resource, holder in holdings
        if resource == (what.kind, what.resource_id) and what.label_id in attached.get((holder.stack, resource), ())
    ]
