"""
Who has what only one stack at a time may have: resources, names, associations, secrets (docs/reference/engine.md,
"Claims").
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
    Holder,
    Refusal,
)
from stack_svc import texts
from stack_svc.store.owners import Owner
from stack_svc.store.store import Reading


def of_resources(
    reading: Reading, target: Target, resources: Collection[ResourceKey]
) -> list[tuple[ResourceKey, Owner]]:
    """Who has which of *resources*, sorted by kind and id; nothing of those that nobody has."""
    asked = {what_of(*each): each for each in resources}
    found = ((asked[owner.what], owner) for owner in reading.owners.of(target, asked))
    return sorted(found, key=lambda each: each[0])


def refused(claims: Sequence[Claim], owners: Collection[Owner]) -> list[Refusal]:
    """Which of *claims* the *owners* are in the way of, in order."""
    by_what = {owner.what: owner for owner in owners}
    if not by_what:
        return []
    found = [(each, by_what.get(text_of(each.what))) for each in claims]
    return [Refusal(each, holder_of(owner)) for each, owner in found if owner]


def holder_of(owner: Owner) -> Holder:
    """The stack that is in the way of a claim."""
    return Holder(owner.stack, owner.stack_name, owner.operation, owner.since)


def refusal(found: Sequence[Refusal]) -> ResourceOwned:
    """The error for claims that somebody is in the way of."""
    return ResourceOwned([each.owned for each in found])


def what_of(kind: str, resource_id: str) -> str:
    """A resource, as the store has it."""
    return text_of(ClaimedResource(kind, resource_id))


def removal_of(what: str) -> str:
    """That somebody takes *what* away, as the store has it."""
    return texts.key(f"r:{what}")


def text_of(claimed: Claimed) -> str:
    """What is claimed, as the store has it (docs/reference/engine.md, "Tables")."""
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
    """A text for what is made of *parts*; other parts make another text."""
    *first, last = parts
    return texts.key(":".join([tag, *(each.replace("%", "%25").replace(":", "%3A") for each in first), last]))
