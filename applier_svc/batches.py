"""How the steps of a stage are sent: in rounds, each cut into batches."""

from collections import Counter
from collections.abc import Sequence

from services.core.model import Step, Verb

BATCH_BYTES = 16 * 1024 * 1024
"""Most spec text in one batch: its answer holds the specs too, and both stay well below the message limit."""


def rounds(steps: Sequence[Step]) -> list[list[Step]]:
    """
    Split steps so that creates with one display name never run at the same time (engine.md 3).

    Only then can recovery tell them apart by looking at the platform.

    Returns:
        The rounds, to be run one after another; the steps of each in the order given.
    """
    seen: Counter[tuple[str, str]] = Counter()
    found: list[list[Step]] = []
    for step in steps:
        turn = 0
        if step.verb is Verb.CREATE and step.new_spec:
            name = (step.key.kind, step.new_spec.display_name)
            turn = seen[name]
            seen[name] += 1
        while len(found) <= turn:
            found.append([])
        found[turn].append(step)
    return found


def batches(steps: Sequence[Step], max_count: int, max_bytes: int = BATCH_BYTES) -> list[list[Step]]:
    """Cut *steps* into batches of at most *max_count* steps and *max_bytes* of spec text; a step is never cut."""
    found: list[list[Step]] = []
    size = 0
    for step in steps:
        length = len(step.new_spec.text.encode()) if step.new_spec else 0
        if not found or len(found[-1]) >= max_count or size + length > max_bytes:
            found.append([])
            size = 0
        found[-1].append(step)
        size += length
    return found
