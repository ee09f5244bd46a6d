"""
Owners of items that only one stack may own at a time: resources, names, associations, secrets
(docs/reference/engine.md, "Claims").
"""

from collections.abc import Collection, Sequence

from services.core.errors import ResourceOwned
from services.core.model import ResourceKey, Target
from services.engine.claims import (
    Claim,
    Claimed,
    ClaimedAssociation,
    ClaimedName,
    ClaimedResource,
    ClaimedSecret,
    ClaimHolder,
    Refusal,
)
from stack_svc.rules import sanitize
from stack_svc.store.owners import Owner
from stack_svc.store.store import ReadTransaction


def of_resources(
    reading: ReadTransaction, target: Target, resources: Collection[ResourceKey]
) -> list[tuple[ResourceKey, Owner]]:
    """The owners of *resources*, sorted by kind and id; unowned resources are left out."""
    by_what = {what_of(*each): each for each in resources}
    pairs = ((by_what[owner.what], owner) for owner in reading.owners.of(target, by_what))
    return sorted(pairs, key=lambda each: each[0])


def refused(claims: Sequence[Claim], owners: Collection[Owner]) -> list[Refusal]:
    """The *claims* that conflict with *owners*, in order."""
    by_what = {owner.what: owner for owner in owners}
    if not by_what:
        return []
    pairs = [(each, by_what.get(text_of(each.what))) for each in claims]
    return [Refusal(each, holder_of(owner)) for each, owner in pairs if owner]


def holder_of(owner: Owner) -> ClaimHolder:
    """The stack that conflicts with a claim."""
    return ClaimHolder(owner.stack, owner.stack_name, owner.operation, owner.since)


def refusal(refusals: Sequence[Refusal]) -> ResourceOwned:
    """The error for refused claims."""
    return ResourceOwned([each.owned for each in refusals])


def what_of(kind: str, resource_id: str) -> str:
    """The store's text of a resource."""
    return text_of(ClaimedResource(kind, resource_id))


def removal_of(what: str) -> str:
    """The store's text of the removal of *what*; to claim it keeps other stacks from using *what*."""
    return sanitize.key(f"r:{what}")


def text_of(claimed: Claimed) -> str:
    """The store's text of a claimed item (docs/reference/engine.md, "Tables")."""
    match claimed:
        case ClaimedResource():
            return _text("i", *claimed)
        case ClaimedName():
            return _text("n", *claimed)
        case ClaimedAssociation():
            return _text("a", *claimed)
        case ClaimedSecret():
            return _text("s", *claimed)


def _text(tag: str, *parts: str) -> str:
    """A text of *parts*; different parts make different texts."""
    *first, last = parts
    return sanitize.key(":".join([tag, *(each.replace("%", "%25").replace(":", "%3A") for each in first), last]))
