"""Counts of steps by verb: of a plan, or of the steps of an operation that are in effect."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from services.core.model import Verb
from services.engine.effects import AnyEffect
from services.engine.progress import Progress


class StepCounts(NamedTuple):
    """
    Numbers of steps, as in plan.proto.

    ``losses`` counts the updates that lose data; ``updates`` includes them. ``irreversible`` counts the deletions and
    updates that cannot be undone; ``deletes`` and ``updates`` include them.
    """

    creates: int = 0
    updates: int = 0
    deletes: int = 0
    attaches: int = 0
    detaches: int = 0
    secrets: int = 0
    irreversible: int = 0
    losses: int = 0


def counts_of(effects: Iterable[AnyEffect]) -> StepCounts:
    """Count *effects*."""
    secrets, irreversible, losses, verbs = 0, 0, 0, Counter[Verb]()
    for effect in effects:
        irreversible += effect.seals
        losses += effect.step.loss is not None
        if effect.is_of_secret:
            secrets += 1
        else:
            verbs[effect.step.verb] += 1
    return StepCounts(
        verbs[Verb.CREATE],
        verbs[Verb.UPDATE],
        verbs[Verb.DELETE],
        verbs[Verb.ATTACH],
        verbs[Verb.DETACH],
        secrets,
        irreversible,
        losses,
    )


def counts_in_effect(progress: Progress) -> StepCounts:
    """Count the steps of an operation that are in effect, as far as is known."""
    return counts_of(effect for effect in progress.effects if progress.stands(effect.number))
