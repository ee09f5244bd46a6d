"""The terms of the driver contract as frozen values, for every driver."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from services.core.model import Reference, Spec
from services.engine.expectation import Expectation
from services.engine.outcome import RejectionReason


class ResourceId(NamedTuple):
    """Names one resource of an organization; sorts by kind, then id."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id!r}"


class StoredResource(NamedTuple):
    """
    A resource of a platform, ready to be sent.

    Unlike ``core.model.Resource`` it has the spec as text: a list forwards thousands without parsing one.

    Attributes:
        spec_json: Canonical JSON text.
        display_name: The name in the spec.
        label_ids: Sorted.
        references: Sorted by pointer; only to existing resources.
        unexpressed: The settings that the platform holds for the resource beyond its spec, each as text for people,
            without values.
    """

    id: ResourceId
    spec_json: str
    display_name: str
    label_ids: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    unexpressed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """
    Create a resource; with an empty ``idempotency_key``, each repetition creates another one.

    ``references`` are sorted by pointer, at most one for each.
    """

    kind: str
    spec: Spec
    idempotency_key: str = ""
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """
    Write the whole spec of a resource, and all its ``references``: sorted by pointer, at most one for each.

    ``expected`` is the state that the resource must have before the write; None: any.
    """

    id: ResourceId
    spec: Spec
    references: tuple[Reference, ...] = ()
    expected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """
    Delete a resource with its label associations; a label, with its associations to all resources.

    References to it are removed. ``expected`` as in ``Update``.
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
    """Write a secret. Its value is left out of the ``repr``, which may get into a log."""

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
        resource: The resource as the platform holds it after a create or an update.
        is_replayed: Whether this create had no effect, because an earlier one with its idempotency key had it.
    """

    resource: StoredResource | None = None
    is_replayed: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """
    The mutation certainly had no effect.

    Attributes:
        reason: The cause, for programs; None: specific to this attempt, a retry may succeed.
        message: The cause, for people: one sentence.
        retry_after: Seconds to wait at least before a retry, if the platform throttles; None: it does not.
        live: With CHANGED: the live resource.
    """

    reason: RejectionReason | None
    message: str
    retry_after: float | None = None
    live: StoredResource | None = None


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Unknown whether the mutation had an effect; ``retry_after`` as in ``Rejected``."""

    message: str
    retry_after: float | None = None


Result: TypeAlias = Done | Rejected | Ambiguous


@dataclass(frozen=True, slots=True)
class Fence:
    """
    The right of ``operation`` to write within ``scope``, the id of a stack.

    A higher ``token`` is newer. A scope that ``is_transient`` has only this operation, which works on behalf of no
    stack.
    """

    scope: str
    token: int
    operation: str = ""
    is_transient: bool = False
