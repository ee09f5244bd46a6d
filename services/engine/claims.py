"""
Claims: exclusive or shared rights of an operation, from the first intent to its end (docs/reference/engine.md, "Claims"
and "Shared resources").
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from services.core.errors import Owned
from services.core.model import Adoption, Key, PlatformTraits, RecordChanges, Spec, Use
from services.engine.outcome import RejectionReason


class ClaimedResource(NamedTuple):
    """A resource, by its id."""

    kind: str
    resource_id: str

    def __str__(self) -> str:
        return f"resource {self.resource_id}"


class ClaimedName(NamedTuple):
    """A name, normalised as the platform compares it. No two resources of *scope* may have or get it at one time."""

    scope: str
    name: str

    def __str__(self) -> str:
        return f"the name {self.name!r}"


class ClaimedAssociation(NamedTuple):
    """A label on a resource."""

    kind: str
    resource_id: str
    label_id: str

    def __str__(self) -> str:
        return f"label {self.label_id} on resource {self.resource_id}"


class ClaimedSecret(NamedTuple):
    """A secret."""

    key: str

    def __str__(self) -> str:
        return f"the secret {self.key!r}"


Claimed = ClaimedResource | ClaimedName | ClaimedAssociation | ClaimedSecret


class ClaimMode(Enum):
    """How an operation uses the claimed thing."""

    ALONE = "alone"
    """Exclusive, except that other stacks may use a resource that its owner claims in this mode."""
    REMOVE = "remove"
    """Exclusive, because the operation removes it: no other stack may use it."""
    USE = "use"
    """Shared: others may use it and its owner may change it, but no operation may remove it."""
    TAKE_OVER = "take over"
    """
    Shared, for a resource that the operation changes and takes over at its end: no stack with a name may own it.
    If two operations change the resource at the same time, the expectation of one of the changes is not met.
    """

    @property
    def is_shared(self) -> bool:
        """Whether another stack may own the claimed thing."""
        return self in (ClaimMode.USE, ClaimMode.TAKE_OVER)


class Claim(NamedTuple):
    """
    One claim of a step.

    Attributes:
        step: Number of the step; 0 for an adoption or use that has no step.
        key: The object that the claim is for; its name is empty where no object names the resource.
        what: The claimed resource, name, association or secret.
        mode: Exclusive or shared.
    """

    step: int
    key: Key
    what: Claimed
    mode: ClaimMode = ClaimMode.ALONE


class ClaimHolder(NamedTuple):
    """
    The stack or operation that holds a claimed thing.

    Attributes:
        stack: Id of the stack.
        stack_name: Its name; may be empty.
        operation: The operation of the stack that holds the claim; empty when the record of the stack has it.
        since: When the holder got it, in microseconds since 1970.
    """

    stack: str
    stack_name: str
    operation: str
    since: int

    def __str__(self) -> str:
        stack = f"stack {self.stack_name!r} ({self.stack})" if self.stack_name else f"stack {self.stack}"
        return f"operation {self.operation} of {stack}, which has not ended" if self.operation else stack


class Refusal(NamedTuple):
    """A refused claim and the holder that prevents it: an owner, a claimant or, where it is *in_use*, a user."""

    claim: Claim
    holder: ClaimHolder
    in_use: bool = False

    def __str__(self) -> str:
        if self.in_use:
            return f"{self.claim.what} is used by {self.holder}: plan again"
        return f"{self.claim.what} is {'claimed' if self.holder.operation else 'owned'} by {self.holder}"

    @property
    def reason(self) -> RejectionReason:
        """The reason for programs why the step is not sent."""
        return RejectionReason.IN_USE if self.in_use else RejectionReason.RESOURCE_OWNED

    @property
    def owned(self) -> Owned:
        """The refusal as a part of an error."""
        (_, key, what, _), holder, _ = self
        resource_id = what.resource_id if isinstance(what, ClaimedResource) else ""
        return Owned(*key, str(what), resource_id, holder.stack, holder.stack_name, holder.operation)


def claimed_names(kind: str, specs: Iterable[Spec | None], platform: PlatformTraits) -> list[ClaimedName]:
    """The distinct unique names of resources of *kind* with *specs*, in order; none where names may repeat."""
    traits = platform.kinds[kind]
    unique = [traits.unique_name(spec.display_name) for spec in specs if spec]
    return [ClaimedName(traits.scope, name) for name in dict.fromkeys(unique) if name is not None]


def adopted_claims(adoptions: Iterable[Adoption], platform: PlatformTraits) -> list[Claim]:
    """
    The claims of a plan on the resources that it adopts, and on their names.

    An operation that creates a resource knows its id only with the outcome. Until then the name shows the conflict.
    """
    claims: list[Claim] = []
    for key, kind, resource_id, display_name in adoptions:
        claims.append(Claim(0, key, ClaimedResource(kind, resource_id)))
        traits = platform.kinds[kind]
        if (unique := traits.unique_name(display_name)) is not None:
            claims.append(Claim(0, key, ClaimedName(traits.scope, unique)))
    return claims


def used_claims(uses: Iterable[Use]) -> list[Claim]:
    """The claims of a plan on the resources and associations that it uses."""
    return [
        Claim(
            0,
            key,
            ClaimedAssociation(kind, resource_id, label_id) if label_id else ClaimedResource(kind, resource_id),
            ClaimMode.USE,
        )
        for key, kind, resource_id, label_id in uses
    ]


def taken_claims(changes: RecordChanges) -> list[Claim]:
    """The claims of a plan with *changes* of the record on the resources that it takes over."""
    taken = {*changes.taken_over}
    return [
        Claim(0, entry.key, ClaimedResource(entry.key.kind, entry.resource_id), ClaimMode.TAKE_OVER)
        for entry in changes.entries
        if entry.key in taken
    ]
