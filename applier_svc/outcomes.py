"""How a step, or its undo, ended."""

from dataclasses import dataclass
from enum import Enum

from pkger.model.v1 import operation_pb2


class Direction(Enum):
    """Whether a step is carried out or taken back: two effects, each with an outcome of its own."""

    DO = "do"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Done:
    """It took effect; ``remote_id`` is the resource it is about."""

    remote_id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """
    It certainly had no effect.

    Attributes:
        message: One sentence: why.
        reason: Why, for programs.
        retry_after: Seconds that the platform asks to wait before it is sent again; None: it does not ask for patience.
    """

    message: str
    reason: operation_pb2.RejectionReason.ValueType = operation_pb2.REJECTION_REASON_UNSPECIFIED
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
class NotHappened:
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


def outcome_to_pb(step: int, outcome: Outcome) -> operation_pb2.StepOutcome:
    """The outcome of step number *step* as it stands in an event."""
    message = operation_pb2.StepOutcome(step=step)
    match outcome:
        case Done(remote_id):
            message.done.remote_id = remote_id
        case Failed(text, reason):
            message.failed.message = text
            message.failed.reason = reason
        case Unknown(text):
            message.unknown.message = text
        case Skipped(text) | GivenUp(text):
            message.skipped.message = text
    return message
