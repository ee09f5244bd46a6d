"""Who has what only one stack at a time may have: resources, names, associations, secrets (engine.md 11.1)."""

from collections.abc import Collection, Sequence

from services.core.errors import ResourceOwned
from services.core.model import Target
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
from services.engine.effects.effect import ResourceKey
from stack_svc import texts
from stack_svc.store.operations import Operation
from stack_svc.store.owners import Owner
from stack_svc.store.store import Reading, Transaction


def of_resources(
    reading: Reading, target: Target, resources: Collection[ResourceKey]
) -> list[tuple[ResourceKey, Owner]]:
    """Who has which of *resources*, sorted by kind and id; nothing of those that nobody has."""
    asked = {_what(ClaimedResource(*each)): each for each in resources}
    return sorted((asked[owner.what], owner) for owner in reading.owners.of(target, asked))


def claim(tx: Transaction, operation: Operation, claims: Sequence[Claim], now: int) -> list[Refusal]:
    """
    Let an operation have what it claims until its end.

    Returns:
        The claims that somebody else is in the way of; if there is any, the operation gets nothing.
    """
    if not claims:
        return []
    wanted = {_what(each.what): each.key.name for each in claims}
    owners = tx.owners.take(operation.stack, operation.target, operation.name, wanted, now)
    return refused(claims, owners)


def give_back(tx: Transaction, operation: Operation, claims: Sequence[Claim]) -> None:
    """Let an operation no longer have what it claimed; what its stack has recorded is not claimed."""
    if claims:
        tx.owners.give_back(operation.stack, operation.target, [_what(each.what) for each in claims])


def refused(claims: Sequence[Claim], owners: Collection[Owner]) -> list[Refusal]:
    """Which of *claims* the *owners* are in the way of, in order."""
    by_what = {owner.what: owner for owner in owners}
    if not by_what:
        return []
    found = [(each, by_what.get(_what(each.what))) for each in claims]
    return [
        Refusal(each, Holder(owner.stack, owner.stack_name, owner.operation, owner.since))
        for each, owner in found
        if owner
    ]


def refusal(found: Sequence[Refusal]) -> ResourceOwned:
    """The error for claims that somebody is in the way of."""
    return ResourceOwned([each.owned for each in found])


def what_of(kind: str, resource_id: str) -> str:
    """A resource, as the store has it."""
    return _what(ClaimedResource(kind, resource_id))


def _what(claimed: Claimed) -> str:
    """What is claimed, as the store has it (scale.md 3)."""
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
    *first, last = map(texts.clean, parts)
    return texts.key(":".join([tag, *(each.replace("%", "%25").replace(":", "%3A") for each in first), last]))
