"""The words of the driver contract as frozen values, for every driver."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from services.core.model import Reference, Spec
from services.engine.expectation import Expectation
from services.engine.outcome import RejectionReason


class ResourceId(NamedTuple):
    """Names one resource of an organisation; sorts by kind, then id."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id!r}"


class StoredResource(NamedTuple):
    """
    What a platform holds, ready for the wire.

    Unlike ``core.model.Resource`` it keeps the spec as text: a listing passes on thousands without reading one.

    Attributes:
        spec_json: Canonical JSON text.
        display_name: The name in the spec.
        label_ids: Sorted.
        references: Sorted by pointer; only to what exists.
    """

    id: ResourceId
    spec_json: str
    display_name: str
    label_ids: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """
    Make a resource; an empty ``idempotency_key`` makes another one each time it is sent.

    ``references`` are sorted by pointer, one for each.
    """

    kind: str
    spec: Spec
    idempotency_key: str = ""
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """
    Write the whole spec of a resource, and all its ``references``: sorted by pointer, one for each.

    ``expected`` is what it is to hold before; None: anything.
    """

    id: ResourceId
    spec: Spec
    references: tuple[Reference, ...] = ()
    expected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """
    Remove a resource with its label attachments; a label, from everything it is attached to.

    What referred to it refers to nothing any more. ``expected`` as of ``Update``.
    """

    id: ResourceId
    expected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Attach:
    """Attach a label to a resource."""

    id: ResourceId
    label_id: str


@dataclass(frozen=True, slots=True)
class Detach:
    """Detach a label from a resource."""

    id: ResourceId
    label_id: str


@dataclass(frozen=True, slots=True)
class PutSecret:
    """Write a secret. Its value is not shown: what is printed ends in a log."""

    key: str
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeleteSecret:
    """Remove a secret."""

    key: str


Mutation: TypeAlias = Create | Update | Delete | Attach | Detach | PutSecret | DeleteSecret


@dataclass(frozen=True, slots=True)
class Done:
    """
    The mutation took effect.

    Attributes:
        resource: What the platform holds after a create or an update.
        is_replayed: Whether a create made nothing now, as an earlier one with its idempotency key did.
    """

    resource: StoredResource | None = None
    is_replayed: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """
    The mutation certainly had no effect.

    Attributes:
        reason: Why, for programs; None says so of this sending only.
        message: Why, for people: one sentence.
        retry_after: Seconds to wait at least before it is sent again, as the platform asks for patience; None: it does
            not ask.
        found: With CHANGED: what is there.
    """

    reason: RejectionReason | None
    message: str
    retry_after: float | None = None
    found: StoredResource | None = None


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Nobody knows whether the mutation had an effect; ``retry_after`` as of ``Rejected``."""

    message: str
    retry_after: float | None = None


Result: TypeAlias = Done | Rejected | Ambiguous


@dataclass(frozen=True, slots=True)
class Fence:
    """
    The right of ``operation`` to write within ``scope``, the id of a stack.

    A higher ``token`` is a newer one. In a scope that ``is_transient`` there is only this operation, which works on
    behalf of no stack.
    """

    scope: str
    token: int
    operation: str = ""
    is_transient: bool = False
