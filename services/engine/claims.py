"""
Claims: what an operation needs from before it is sent until its end (docs/reference/engine.md, "Claims" and "Shared
resources").
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from services.core.errors import Owned
from services.core.model import Adoption, Key, PlatformTraits, Spec, Use
from services.engine.outcome import RejectionReason


class ClaimedResource(NamedTuple):
    """A resource, whatever its name is."""

    kind: str
    resource_id: str

    def __str__(self) -> str:
        return f"resource {self.resource_id}"


class ClaimedName(NamedTuple):
    """A name that no two resources of *scope* may have, or be given at the same time, as the platform compares it."""

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
    """How an operation needs what it claims."""

    ALONE = "alone"
    """For itself alone; its owner claims it so, too, while others use it."""
    REMOVE = "remove"
    """For itself alone, as it takes that away: nobody else may use it."""
    USE = "use"
    """To stay as it is: others may use it, and its owner may change it, but nobody may take it away."""


class Claim(NamedTuple):
    """
    What one step needs.

    Attributes:
        step: Number of the step; 0 for what a plan adopts or uses without one.
        key: The object that it is for; with an empty name where no object names the resource.
        what: What is claimed.
        mode: How it is needed.
    """

    step: int
    key: Key
    what: Claimed
    mode: ClaimMode = ClaimMode.ALONE


class Holder(NamedTuple):
    """
    Who has what was claimed.

    Attributes:
        stack: Id of the stack.
        stack_name: Its name; may be empty.
        operation: The operation of it that claims the same; empty when it stands in the record of the stack.
        since: Since when, in microseconds since 1970.
    """

    stack: str
    stack_name: str
    operation: str
    since: int

    def __str__(self) -> str:
        stack = f"stack {self.stack_name!r} ({self.stack})" if self.stack_name else f"stack {self.stack}"
        return f"{self.operation} of {stack}, which is not over" if self.operation else stack


class Refusal(NamedTuple):
    """A claim that somebody is in the way of: who owns or claims it or, where it is *in_use*, who uses it."""

    claim: Claim
    holder: Holder
    in_use: bool = False

    def __str__(self) -> str:
        if self.in_use:
            return f"{self.claim.what} is used by {self.holder}: plan again"
        return f"{self.claim.what} belongs to {self.holder}"

    @property
    def reason(self) -> RejectionReason:
        """Why the step is not sent."""
        return RejectionReason.IN_USE if self.in_use else RejectionReason.RESOURCE_OWNED

    @property
    def owned(self) -> Owned:
        """The same as a part of an error."""
        (_, key, what, _), holder, _ = self
        resource_id = what.resource_id if isinstance(what, ClaimedResource) else ""
        return Owned(*key, str(what), resource_id, holder.stack, holder.stack_name, holder.operation)


def claimed_names(kind: str, specs: Iterable[Spec | None], platform: PlatformTraits) -> list[ClaimedName]:
    """The names that resources of *kind* with *specs* have, each once, in order; none where names may repeat."""
    traits = platform.kinds[kind]
    unique = [traits.unique_name(spec.display_name) for spec in specs if spec]
    return [ClaimedName(traits.scope, name) for name in dict.fromkeys(unique) if name is not None]


def adopted_claims(adoptions: Iterable[Adoption], platform: PlatformTraits) -> list[Claim]:
    """
    The claims of a plan on what it adopts: the resource, and its name.

    Whoever makes a resource has its id only once it is known what came of that; until then the name tells.
    """
    claims: list[Claim] = []
    for key, kind, resource_id, display_name in adoptions:
        claims.append(Claim(0, key, ClaimedResource(kind, resource_id)))
        traits = platform.kinds[kind]
        if (unique := traits.unique_name(display_name)) is not None:
            claims.append(Claim(0, key, ClaimedName(traits.scope, unique)))
    return claims


def used_claims(uses: Iterable[Use]) -> list[Claim]:
    """The claims of a plan on what it uses."""
    return [
        Claim(
            0,
            key,
            ClaimedAssociation(kind, resource_id, label_id) if label_id else ClaimedResource(kind, resource_id),
            ClaimMode.USE,
        )
        for key, kind, resource_id, label_id in uses
    ]
