"""Outcomes of a step, or of its undo."""

from dataclasses import dataclass
from enum import StrEnum


class RejectionReason(StrEnum):
    """Why a mutation was rejected; as in operation.proto."""

    NAME_TAKEN = "NAME_TAKEN"
    NOT_FOUND = "NOT_FOUND"
    CONTENT_REFUSED = "CONTENT_REFUSED"
    KIND_UNSUPPORTED = "KIND_UNSUPPORTED"
    RESOURCE_OWNED = "RESOURCE_OWNED"
    CHANGED = "CHANGED"
    NOT_PERMITTED = "NOT_PERMITTED"
    IN_USE = "IN_USE"


@dataclass(frozen=True, slots=True)
class Done:
    """
    The mutation took effect.

    Attributes:
        resource_id: Id of its resource.
        observed: The spec that the platform holds now as canonical JSON text, where it differs from the sent one; else
            empty.
    """

    resource_id: str
    observed: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """
    The mutation certainly had no effect.

    Attributes:
        message: The cause, in one sentence.
        reason: The cause for programs; None when the driver gave no reason.
        retry_after: Seconds to wait before a retry, where the platform throttles; None: it does not.
    """

    message: str
    reason: RejectionReason | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """
    It is unknown whether the mutation took effect.

    Attributes:
        message: The failure of the call, or the result of the lookup, in one sentence.
        is_conflict: Whether the platform holds content that is neither the one before nor the wanted one.
        resource_id: Id of that resource; empty when there is none, or another stack owns it.
        retry_after: As in ``Failed``.
    """

    message: str
    is_conflict: bool = False
    resource_id: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class NoEffect:
    """The mutation was sent and certainly had no effect: its step returns to the state before."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """The mutation was not sent."""

    message: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A decision was to give the step up."""

    message: str


Outcome = Done | Failed | Unknown | Skipped | GivenUp

Outcomes = dict[int, Outcome]
"""Outcome of each step by its number."""

Finding = Done | NoEffect | Unknown
"""The result of a lookup of a step without a response. Unknown: the platform does not show it; an operator decides."""
