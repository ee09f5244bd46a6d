"""The opposite of a step."""

from applier_svc.outcomes import Done, Outcome, Unknown
from services.core.model import Step, Undo, Verb

_OPPOSITE = {
    Verb.CREATE: Verb.DELETE,
    Verb.UPDATE: Verb.UPDATE,
    Verb.DELETE: Verb.CREATE,
    Verb.ATTACH: Verb.DETACH,
    Verb.DETACH: Verb.ATTACH,
}


def inverse(step: Step) -> Step:
    """
    The step that takes *step* back, from its full pre-image.

    It keeps the number, and leaves the ids to be found by key: what was created, or deleted and created again, has
    another id than the plan knew.
    """
    return step._replace(
        verb=_OPPOSITE[step.verb],
        old_spec=step.new_spec,
        new_spec=step.old_spec,
        old_references=step.references,
        references=step.old_references,
    )


def is_to_be_undone(step: Step, outcome: Outcome) -> bool:
    """
    Whether the undo of an operation has to take *step* back, which ended with *outcome*.

    A secret that was created is removed by its key also when nobody knows whether it was written: that is right either
    way.
    """
    if step.undo is Undo.NONE:
        return False
    return isinstance(outcome, Done) or (step.is_secret and isinstance(outcome, Unknown))


def seals(step: Step) -> bool:
    """
    Whether nothing is taken back once *step* may have been sent.

    A secret that is overwritten cannot be taken back, but what comes after it can (engine.md 3).
    """
    return step.undo is Undo.NONE and not step.is_secret
