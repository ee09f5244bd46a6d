"""How a step, or its undo, ended."""

from dataclasses import dataclass
from enum import StrEnum


class RejectionReason(StrEnum):
    """Why a platform refused a mutation; as in operation.proto."""

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
    It took effect.

    Attributes:
        resource_id: The resource it is about.
        observed: The spec that the platform holds now as canonical JSON text, where that is not what was sent; else
            empty.
    """

    resource_id: str
    observed: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """
    It certainly had no effect.

    Attributes:
        message: One sentence: why.
        reason: Why, for programs; None when the driver gave no reason.
        retry_after: Seconds that the platform asks to wait before it is sent again; None: it does not ask for patience.
    """

    message: str
    reason: RejectionReason | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """
    Nobody knows whether it had an effect.

    Attributes:
        message: One sentence: what happened to the call, or what was found.
        is_conflict: Whether something is there that neither was before nor was to be.
        found: Id of that resource; empty when there is none, or it is another stack's.
        retry_after: As of ``Failed``.
    """

    message: str
    is_conflict: bool = False
    found: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class NoEffect:
    """It was sent, and certainly had no effect: it is where it was before."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """It was not sent."""

    message: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Somebody decided that it is not to be done."""

    message: str


Outcome = Done | Failed | Unknown | Skipped | GivenUp

Outcomes = dict[int, Outcome]
"""Outcome of each step by its number."""

Finding = Done | NoEffect | Unknown
"""What looking at the platform tells of a step that got no answer. Unknown: it does not tell; somebody has to look."""
