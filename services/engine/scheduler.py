"""
The next move of an operation: a pure function of its progress (docs/reference/engine.md, "Steps and stages" to
"Recovery").
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from services.core.model import Key, PlatformTraits
from services.core.text_lists import listed
from services.engine.effects import AnyEffect, PutSecret, inverse_of
from services.engine.operation import Direction, OperationState
from services.engine.outcome import Failed, Outcome, Skipped, Unknown
from services.engine.progress import Progress
from services.engine.step_state import StepState

CANCELLED = "the operation was cancelled"

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LookUp:
    """
    Look up the outcomes of mutations that an earlier applier sent, undos first (docs/reference/engine.md, "Recovery").
    """

    undone: Sequence[AnyEffect]
    done: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class RunStage:
    """Send *effects*, the rest of stage number *index*, which may run at the same time."""

    index: int
    name: str
    effects: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class Seal:
    """Pass the seal: no step is undone after it."""


@dataclass(frozen=True, slots=True)
class RetryCreations:
    """
    Send creations with an idempotency key again: the response returns their outcomes.

    Attributes:
        cause: Why the operation rolls back.
        stages: The creations, stage by stage.
        lost: Secrets without an outcome whose values are lost: their outcomes stay unknown.
    """

    cause: str
    stages: Sequence[Sequence[AnyEffect]]
    lost: Sequence[AnyEffect]


@dataclass(frozen=True, slots=True)
class RollBack:
    """
    Begin the rollback.

    Attributes:
        cause: The first failure, and the secrets that the rollback leaves.
        step_count: Number of steps to undo.
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
    The operation ends.

    Attributes:
        state: SUCCEEDED or ROLLED_BACK.
        cause: The first failure; empty when there is none.
        leftovers: Outcomes of steps past the seal that are not done, by step number.
    """

    state: OperationState
    cause: str = ""
    leftovers: Mapping[int, Outcome] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Block:
    """
    The operation needs an operator.

    Attributes:
        cause: As in ``Finish``.
        leftovers: As in ``Finish``.
        seen_token: The highest token that the platform has seen, where the store was restored from a backup and is
            older than the platform; else 0.
    """

    cause: str
    leftovers: Mapping[int, Outcome] = field(default_factory=dict)
    state: OperationState = OperationState.BLOCKED
    seen_token: int = 0


Move = LookUp | RunStage | Seal | RetryCreations | RollBack | Undo | Finish | Block


def next_move(progress: Progress, platform: PlatformTraits, is_cancelled: bool, lost: str = "") -> Move:
    """
    Decide the next move.

    Args:
        progress: The progress of the operation.
        platform: The traits of its platform.
        is_cancelled: Whether a client cancelled the operation.
        lost: Why the operation cannot continue forward: the value of an unwritten secret is lost. Empty: it can.

    Returns:
        The move. All but the last change *progress*, so that no move is made twice in a run.
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
        # Steps past the seal stay, and the record was refused.
        return Block(cause, _leftovers(progress))
    for index, stage in groupby(progress.effects, key=_stage):
        effects = [effect for effect in stage if progress.is_pending(effect.number)]
        if not effects:
            continue
        if not progress.sealed and any(effect.seals for effect in effects):
            # A cancellation has no effect after the seal: either all steps are undone or all are finished.
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
    """Undo in reverse order of stages, from full pre-images; nothing is undone past the seal."""
    if progress.sealed:
        return Block(cause, _leftovers(progress))
    # Outcomes come first: a creation that is sent again may need resources that the rollback deletes.
    if not progress.has_retried_creations and (retry := _retried_creations(progress, platform, cause)):
        return retry
    unknown = [effect for effect, outcome in progress.not_done() if isinstance(outcome, Unknown)]
    if not all(effect.is_of_secret for effect in unknown):
        return Block(cause)
    to_undo = [effect for effect in progress.effects if _is_to_be_undone(effect, progress)]
    waiting = [effect for effect in to_undo if _waits_for_undo(effect, progress, platform)]
    if not progress.is_undoing:
        return RollBack(cause + _remaining_secrets(progress, cause), len(waiting))
    failed = {effect.number for effect in to_undo if not progress.was_undone(effect.number)}
    failed -= {effect.number for effect in waiting}
    ready = _free(waiting, [effect for effect in to_undo if effect.number in failed])
    for _, stage in groupby(reversed(ready), key=_stage):
        return Undo([inverse_of(effect) for effect in stage])
    if not all(progress.was_undone(effect.number) for effect in to_undo):
        return Block(cause)
    return Finish(OperationState.ROLLED_BACK, cause)


def _retried_creations(progress: Progress, platform: PlatformTraits, cause: str) -> RetryCreations | None:
    in_doubt = [effect for effect in progress.unresolved() if effect.is_resolved_by_retry(platform)]
    # The inverse of a secret does not need its outcome, and a secret to be undone is not written first.
    creations = [effect for effect in in_doubt if not effect.is_of_secret]
    lost = [effect for effect in in_doubt if effect.is_of_secret and progress.outcome(effect.number) is None]
    stages = [list(stage) for _, stage in groupby(creations, key=_stage)]
    return RetryCreations(cause, stages, lost) if stages or lost else None


def _is_to_be_undone(effect: AnyEffect, progress: Progress) -> bool:
    outcome = progress.outcome(effect.number)
    if outcome is None or progress.stays(effect.number) or not effect.is_to_be_undone(outcome):
        return False
    # A secret cannot be read, so one that another writer may have written is left alone (docs/reference/engine.md,
    # "Secrets").
    return progress.is_certainly_ours(effect.number)


def _waits_for_undo(effect: AnyEffect, progress: Progress, platform: PlatformTraits) -> bool:
    """
    Whether the inverse of a step is still to be sent in this run.

    An inverse whose outcome the platform does not show is not sent again: an operator decides.
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
    The part of *waiting* without a later step about the same resource in *failed*.

    If the inverse of an earlier step ran first, the later inverse would overwrite its result, or change another
    resource that has the key by then.
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
    Whether an operator has to decide before the operation continues.

    Past the seal only the unknown outcome of a creation blocks: the record has no id for it. Other unknown outcomes
    concern resources that the record has, and they stay there.
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


def _remaining_secrets(progress: Progress, cause: str) -> str:
    """The secrets that a rollback leaves and *cause* does not name, as an addition to it; empty when there are none."""
    written = [effect for effect in progress.effects if isinstance(effect, PutSecret)]
    done = [effect for effect in written if progress.took_effect(effect.number)]
    perhaps = [effect for effect in written if isinstance(progress.outcome(effect.number), Unknown)]
    stays = {
        "stay overwritten": [each for each in done if each.overwrites],
        "may have been overwritten": [each for each in perhaps if each.overwrites],
        "stay, as another writer may have written them since": [
            each for each in done if not each.overwrites and not progress.is_certainly_ours(each.number)
        ],
        "may have been written": [each for each in perhaps if not each.overwrites],
        "stay": [each for each in done if not each.overwrites and progress.stays(each.number)],
    }
    parts = [_named(effects, what) for what, effects in stays.items() if effects]
    news = [part for part in parts if part not in cause]
    return f" ({'; '.join(news)})" if news else ""


def _named(effects: Sequence[AnyEffect], what: str) -> str:
    return f"secrets that {what}: {listed([repr(each.step.key.name) for each in effects], _SHOWN)}"


def _stage(effect: AnyEffect) -> int:
    return effect.step.stage
