"""
The states and transitions of a step (docs/reference/engine.md, "States"): one table for writers and readers of
journals.
"""

from enum import StrEnum
from typing import NamedTuple

from services.engine.operation import Direction
from services.engine.outcome import Done, Failed, GivenUp, Outcome, RejectionReason, Skipped, Unknown


class StepState(StrEnum):
    """As in journal.proto, where each value is described. A step without a record is planned, and was not sent."""

    PLANNED = "PLANNED"
    INTENT = "INTENT"
    DONE = "DONE"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"
    SKIPPED = "SKIPPED"
    UNDO_INTENT = "UNDO_INTENT"
    UNDONE = "UNDONE"
    UNDO_FAILED = "UNDO_FAILED"
    UNDO_UNKNOWN = "UNDO_UNKNOWN"
    GIVEN_UP = "GIVEN_UP"
    KEPT = "KEPT"
    UNDO_GIVEN_UP = "UNDO_GIVEN_UP"


class StepEvent(StrEnum):
    """An event that changes the state of a step."""

    SEND = "send"
    """It is about to be sent, for the first time or again."""
    SUCCEED = "succeed"
    """It took effect, or was not needed: the resource to remove is gone."""
    FAIL = "fail"
    """It certainly had no effect, and is not sent again."""
    LOSE = "lose"
    """Its outcome is unknown."""
    RETRACT = "retract"
    """It certainly had no effect, and may be sent again."""
    SKIP = "skip"
    """The operation stopped before it was sent."""
    UNDO_SEND = "undo_send"
    """Its inverse is about to be sent. The other undo events are the ones above, for the inverse."""
    UNDO_SUCCEED = "undo_succeed"
    UNDO_FAIL = "undo_fail"
    UNDO_LOSE = "undo_lose"
    UNDO_RETRACT = "undo_retract"
    GIVE_UP = "give_up"
    """A decision: it counts as not done."""
    KEEP = "keep"
    """A decision: the existing resource counts as its result, and is not undone."""
    UNDO_GIVE_UP = "undo_give_up"
    """A decision, or the consent to continue on a restored store: it is not undone."""


_S, _E = StepState, StepEvent

_FORWARD: dict[StepEvent, StepState] = {
    _E.SEND: _S.INTENT,
    _E.SUCCEED: _S.DONE,
    _E.FAIL: _S.FAILED,
    _E.LOSE: _S.UNKNOWN,
    _E.RETRACT: _S.PLANNED,
}
_BACK: dict[StepEvent, StepState] = {
    _E.UNDO_SEND: _S.UNDO_INTENT,
    _E.UNDO_SUCCEED: _S.UNDONE,
    _E.UNDO_FAIL: _S.UNDO_FAILED,
    _E.UNDO_LOSE: _S.UNDO_UNKNOWN,
    _E.UNDO_RETRACT: _S.DONE,
}
_DECIDED: dict[StepEvent, StepState] = {_E.GIVE_UP: _S.GIVEN_UP, _E.KEEP: _S.KEPT}
_DECIDED_BACK: dict[StepEvent, StepState] = {_E.UNDO_GIVE_UP: _S.UNDO_GIVEN_UP}
# A rollback may undo a step with an unknown outcome if the inverse is right for both possible outcomes.
_BLIND: dict[StepEvent, StepState] = {event: state for event, state in _BACK.items() if event is not _E.UNDO_RETRACT}

TRANSITIONS: dict[StepState, dict[StepEvent, StepState]] = {
    _S.PLANNED: {**_FORWARD, _E.SKIP: _S.SKIPPED},
    # The applier that skipped it stopped; another one may send it.
    _S.SKIPPED: {**_FORWARD, _E.SKIP: _S.SKIPPED},
    _S.INTENT: {**_FORWARD, **_BLIND},
    _S.UNKNOWN: {**_FORWARD, **_BLIND, **_DECIDED},
    _S.DONE: _BACK,
    # Given up without a decision: on a restored store, the undo of a secret may have been sent, and is not sent again.
    _S.UNDO_INTENT: {**_BACK, **_DECIDED_BACK},
    _S.UNDO_FAILED: {**_BACK, **_DECIDED_BACK},
    _S.UNDO_UNKNOWN: {**_BACK, **_DECIDED_BACK},
    _S.FAILED: {},
    _S.UNDONE: {},
    _S.GIVEN_UP: {},
    _S.KEPT: {},
    _S.UNDO_GIVEN_UP: {},
}
"""The next state by state and event; other transitions do not exist."""

OPEN = frozenset({_S.INTENT, _S.UNDO_INTENT})
"""The step, or its inverse, is about to be sent, or was sent."""

IN_EFFECT = frozenset({_S.DONE, _S.UNDO_INTENT, _S.UNDO_FAILED, _S.UNDO_UNKNOWN, _S.KEPT, _S.UNDO_GIVEN_UP})
"""The step took effect and was not undone, as far as is known."""

OF_UNDO = frozenset({_S.UNDO_INTENT, _S.UNDONE, _S.UNDO_FAILED, _S.UNDO_UNKNOWN, _S.UNDO_GIVEN_UP})
"""The inverse of the step is about to be sent, was sent, or is given up."""

STAYS = frozenset({_S.KEPT, _S.UNDO_GIVEN_UP})
"""The step is in effect, and is not undone."""

FINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
"""The states without a transition."""

_FOLLOWING = {state: frozenset({state, *following.values()}) for state, following in TRANSITIONS.items()}


def may_follow(before: StepState, after: StepState) -> bool:
    """Whether some event leads from *before* to *after*; a repeated record of one state is accepted."""
    return after in _FOLLOWING[before]


class StepRecord(NamedTuple):
    """
    The state of one step, with its details; a later record of the same step replaces it.

    A named tuple, as a write may have a thousand records: it is made several times as fast as a frozen dataclass.

    Attributes:
        step: Its number.
        state: Its state.
        resource_id: The resource that it is about, once it took effect; the same during its undo.
        message: Why it failed, is unknown or was skipped: one sentence.
        reason: Why it failed, for programs.
        before_ids: Of a creation that is searched for: ids of its name that existed before it was first sent.
        observed: The spec that the platform holds after the step, where it differs from the sent one; else empty.
        is_forced: Whether it is sent without an expectation, by a decision.
    """

    step: int
    state: StepState
    resource_id: str = ""
    message: str = ""
    reason: RejectionReason | None = None
    before_ids: tuple[str, ...] = ()
    observed: str = ""
    is_forced: bool = False


_ENDS = {
    Direction.DO: (StepState.DONE, StepState.FAILED, StepState.UNKNOWN),
    Direction.UNDO: (StepState.UNDONE, StepState.UNDO_FAILED, StepState.UNDO_UNKNOWN),
}
"""The states of a step, or its inverse, that took effect, had no effect, or has an unknown outcome."""


def sent(before: StepRecord, direction: Direction, before_ids: tuple[str, ...] = ()) -> StepRecord:
    """
    The record of a step that is about to be sent, or whose inverse is.

    Args:
        before: Its last record.
        direction: Whether the step or its inverse is sent.
        before_ids: Ids of existing resources of its kind and display name. Ids from its first sending take precedence,
            because that mutation may still take effect.
    """
    if direction is Direction.DO:
        first_ids = before.before_ids or before_ids
        return StepRecord(before.step, StepState.INTENT, before_ids=first_ids, is_forced=before.is_forced)
    return before._replace(
        state=StepState.UNDO_INTENT, message="", reason=None, before_ids=before.before_ids or before_ids
    )


def retracted(before: StepRecord, direction: Direction) -> StepRecord:
    """The record of a step that was sent and certainly had no effect: it returns to the state before."""
    if direction is Direction.DO:
        return StepRecord(before.step, StepState.PLANNED, before_ids=before.before_ids, is_forced=before.is_forced)
    return before._replace(state=StepState.DONE, message="", reason=None)


def ended(before: StepRecord, outcome: Outcome, direction: Direction) -> StepRecord:
    """The record of a step, or its inverse, that ended with *outcome*."""
    done, failed, unknown = _ENDS[direction]
    if isinstance(outcome, Done):
        resource_id, observed = outcome.resource_id, outcome.observed
        return StepRecord(before.step, done, resource_id, before_ids=before.before_ids, observed=observed)
    # A step that was not undone retains the id of its resource.
    kept = before if direction is Direction.UNDO else before._replace(resource_id="", observed="")
    match outcome:
        case Failed(message, reason):
            return kept._replace(state=failed, message=message, reason=reason)
        case Unknown(message):
            return kept._replace(state=unknown, message=message, reason=None)
        case Skipped(message):
            return kept._replace(state=StepState.SKIPPED, message=message, reason=None)
        case GivenUp(message):
            return kept._replace(state=StepState.GIVEN_UP, message=message, reason=None)
