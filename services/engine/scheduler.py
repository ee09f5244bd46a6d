"""What an operation does next: a pure function of how far it is (engine.md 3 to 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from services.core.model import Key, PlatformTraits
from services.engine.effects import AnyEffect, PutSecret, inverse_of
from services.engine.operation import Direction, OperationState
from services.engine.outcome import Failed, Outcome, Skipped, Unknown
from services.engine.progress import Progress
from services.engine.step_life import StepState

CANCELLED = "the operation was cancelled"

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find out by reading what became of what an applier before this one sent, of the undo first (engine.md 5)."""

    undone: Sequence[AnyEffect]
    done: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class RunStage:
    """Send *effects*, which may run at the same time: what is left of stage number *index*."""

    index: int
    name: str
    effects: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class Seal:
    """Pass the point of no return."""


@dataclass(frozen=True, slots=True)
class RetryCreations:
    """
    Send creations again of which the platform remembers whether it made them: its answer tells.

    Attributes:
        cause: Why the operation turns back.
        stages: Them, stage by stage.
        lost: Secrets that were sent and not answered before their values were lost: nobody will know.
    """

    cause: str
    stages: Sequence[Sequence[AnyEffect]]
    lost: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class RollBack:
    """
    From now on what was done is taken back.

    Attributes:
        cause: Why: what failed first, and what stays all the same.
        step_count: How many steps are taken back.
    """

    cause: str
    step_count: int


@dataclass(frozen=True, slots=True)
class Undo:
    """Send *effects*, inverses of steps of one stage, which may run at the same time."""

    effects: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class Finish:
    """
    The operation is over.

    Attributes:
        state: SUCCEEDED or ROLLED_BACK.
        cause: What failed first; empty when nothing did.
        leftovers: Outcomes of steps past the seal that are not done, by step number.
    """

    state: OperationState
    cause: str = ""
    leftovers: Mapping[int, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """
    Somebody has to look.

    Attributes:
        cause: As of ``Finish``.
        leftovers: Likewise.
        seen_token: The highest token that the platform has seen, where the store is older than the platform, as it was
            restored from a backup; else 0.
    """

    cause: str
    leftovers: Mapping[int, Outcome] = field(default_factory=dict)
    state: OperationState = OperationState.BLOCKED
    seen_token: int = 0


Move = LookUp | RunStage | Seal | RetryCreations | RollBack | Undo | Finish | Block


def next_move(progress: Progress, platform: PlatformTraits, is_cancelled: bool, lost: str = "") -> Move:
    """
    Decide what is done next.

    Args:
        progress: How far the operation is.
        platform: What its platform remembers.
        is_cancelled: Whether somebody asked it to turn back.
        lost: Why it cannot be carried on: nobody has a value that is still to be written. Empty: it can.

    Returns:
        A move that is not the last changes *progress*, so that the same move is never made twice in a run.
    """
    if look_up := _look_up(progress, platform):
        return look_up
    if progress.rollback_cause:
        return _backward(progress, platform, progress.rollback_cause)
    is_stopped = is_cancelled and not progress.sealed
    cause = progress.cause or _failure(progress) or lost
    if _is_blocked(progress, platform):
        return Block(cause or (CANCELLED if is_stopped else ""), _leftovers(progress))
    if not progress.sealed and (cause or is_stopped):
        return _backward(progress, platform, cause or CANCELLED)
    if progress.cause:
        # What was done past the seal stays, and could not be recorded.
        return Block(cause, _leftovers(progress))
    for index, stage in groupby(progress.effects, key=_stage):
        effects = [effect for effect in stage if progress.is_pending(effect.number)]
        if not effects:
            continue
        if not progress.sealed and any(effect.seals for effect in effects):
            # Cancelling is over from here on, so that the line between undone and finished is drawn once.
            return Seal()
        return RunStage(index, progress.plan.stages[index], effects)
    return Finish(OperationState.SUCCEEDED, cause, _leftovers(progress))


def _look_up(progress: Progress, platform: PlatformTraits) -> LookUp | None:
    undone, done = (
        [effect for effect in progress.open(direction) if not effect.is_resolved_by_retry(platform)]
        for direction in (Direction.UNDO, Direction.DO)
    )
    return LookUp(undone, done) if undone or done else None


def _backward(progress: Progress, platform: PlatformTraits, cause: str) -> Move:
    """Undo in reverse order of stages, from full pre-images; past the seal everything stays."""
    if progress.sealed:
        return Block(cause, _leftovers(progress))
    # First it has to be known what there is to undo: what is in doubt may need what the undo takes away.
    if not progress.has_retried_creations and (asked := _retried_creations(progress, platform, cause)):
        return asked
    unknown = [effect for effect, outcome in progress.not_done() if isinstance(outcome, Unknown)]
    if not all(effect.is_of_secret for effect in unknown):
        return Block(cause)
    wanted = [effect for effect in progress.effects if _is_to_be_undone(effect, progress)]
    waiting = [effect for effect in wanted if _waits_for_undo(effect, progress, platform)]
    if not progress.is_undoing:
        stays = "" if progress.rollback_cause else _remaining_secrets(progress)
        return RollBack(cause + stays, len(waiting))
    failed = {effect.number for effect in wanted if not progress.was_undone(effect.number)}
    failed -= {effect.number for effect in waiting}
    ready = _free(waiting, [effect for effect in wanted if effect.number in failed])
    for _, stage in groupby(reversed(ready), key=_stage):
        return Undo([inverse_of(effect) for effect in stage])
    if not all(progress.was_undone(effect.number) for effect in wanted):
        return Block(cause)
    return Finish(OperationState.ROLLED_BACK, cause)


def _retried_creations(progress: Progress, platform: PlatformTraits, cause: str) -> RetryCreations | None:
    in_doubt = [effect for effect in progress.unresolved() if effect.is_resolved_by_retry(platform)]
    # An inverse of a secret does not need to know, and what is to be taken back is not to be written first.
    creations = [effect for effect in in_doubt if not effect.is_of_secret]
    lost = [effect for effect in in_doubt if effect.is_of_secret and progress.outcome(effect.number) is None]
    stages = [list(stage) for _, stage in groupby(creations, key=_stage)]
    return RetryCreations(cause, stages, lost) if stages or lost else None


def _is_to_be_undone(effect: AnyEffect, progress: Progress) -> bool:
    outcome = progress.outcome(effect.number)
    if outcome is None or progress.stays(effect.number) or not effect.is_to_be_undone(outcome):
        return False
    # Nobody can read a secret, so one that may be somebody else's is left alone (engine.md 11.5).
    return progress.is_certainly_ours(effect.number)


def _waits_for_undo(effect: AnyEffect, progress: Progress, platform: PlatformTraits) -> bool:
    """
    Whether the inverse of a step is still to be sent in this run.

    One of which the platform does not tell what became of it is not sent again: somebody has to look.
    """
    match progress.state(effect.number):
        case StepState.DONE | StepState.UNKNOWN:
            return True
        case StepState.UNDO_FAILED:
            return progress.undo_outcome(effect.number) is None
        case StepState.UNDO_INTENT | StepState.UNDO_UNKNOWN:
            is_open = progress.undo_outcome(effect.number) is None
            return is_open and inverse_of(effect).is_resolved_by_retry(platform)
        case _:
            return False


def _free(waiting: Sequence[AnyEffect], failed: Sequence[AnyEffect]) -> Sequence[AnyEffect]:
    """
    Those *waiting* for their undo of which no later step about the same resource is among the *failed*.

    Sent after the inverse of the earlier one, the inverse of the later one would write over what that left, or would
    be about another resource, which the key means by then.
    """
    last: dict[tuple[Key, str], int] = {}
    for effect in failed:
        step = effect.step
        last[_subject(step.key, step.resource_id)] = step.number
        if step.label:
            last[_subject(step.label, step.label_id)] = step.number
    return [each for each in waiting if last.get(_subject(each.step.key, each.step.resource_id), -1) < each.number]


def _subject(key: Key, resource_id: str) -> tuple[Key, str]:
    return (key, "") if key.name else (key, resource_id)


def _is_blocked(progress: Progress, platform: PlatformTraits) -> bool:
    """
    Whether somebody has to look before the operation goes on.

    Past the seal that is so only where it is not known what a creation made: whatever else is in doubt is recorded
    already, and stays so.
    """
    unknown = [effect for effect, outcome in progress.not_done() if isinstance(outcome, Unknown)]
    if progress.sealed:
        return any(effect.makes for effect in unknown)
    return any(not effect.is_resolved_by_retry(platform) for effect in unknown)


def _leftovers(progress: Progress) -> dict[int, Outcome]:
    return {effect.number: outcome for effect, outcome in progress.not_done()}


def _failure(progress: Progress) -> str:
    """One sentence about the steps that failed, of the first stage with any; empty when none did."""
    for _, stage in groupby(progress.not_done(), key=lambda each: each[0].step.stage):
        ended = list(stage)
        failed = [(effect, outcome) for effect, outcome in ended if isinstance(outcome, Failed | Unknown)]
        if failed:
            effect, outcome = failed[0]
            return f"{effect.shown}: {outcome.message}" + (f" (and {len(failed) - 1} more)" if failed[1:] else "")
        if any(isinstance(outcome, Skipped) for _, outcome in ended):
            return CANCELLED
    return ""


def _remaining_secrets(progress: Progress) -> str:
    """What an undo leaves of secrets, as an addition to a sentence; empty when it leaves nothing."""
    written = [effect for effect in progress.effects if isinstance(effect, PutSecret)]
    done = [effect for effect in written if progress.took_effect(effect.number)]
    perhaps = [effect for effect in written if isinstance(progress.outcome(effect.number), Unknown)]
    stays = {
        "stay overwritten": [each for each in done if each.overwrites],
        "may have been overwritten": [each for each in perhaps if each.overwrites],
        "stay, as somebody else may have written them since": [
            each for each in done if not each.overwrites and not progress.is_certainly_ours(each.number)
        ],
        "may have been written": [each for each in perhaps if not each.overwrites],
    }
    parts = [_named(effects, what) for what, effects in stays.items() if effects]
    return f" ({'; '.join(parts)})" if parts else ""


def _named(effects: Sequence[AnyEffect], what: str) -> str:
    more = f" and {len(effects) - _SHOWN} more" if effects[_SHOWN:] else ""
    return f"secrets that {what}: {', '.join(repr(each.step.key.name) for each in effects[:_SHOWN])}{more}"


def _stage(effect: AnyEffect) -> int:
    return effect.step.stage
