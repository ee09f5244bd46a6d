"""How the steps of a stage are sent: in rounds, each cut into batches."""

from collections import Counter
from collections.abc import Sequence

from services.engine.effects import AnyEffect

BATCH_BYTES = 16 * 1024 * 1024
"""Most spec text in one batch. The response repeats the specs, and both stay well below the message limit."""


def rounds(effects: Sequence[AnyEffect]) -> list[list[AnyEffect]]:
    """
    Split effects so that creations with one display name never run at the same time (docs/reference/engine.md, "Steps
    and stages").

    Otherwise recovery could not distinguish the created resources on the platform.

    Returns:
        The rounds, to be run one after another. Each keeps the order of *effects*.
    """
    seen: Counter[tuple[str, str]] = Counter()
    turns: list[list[AnyEffect]] = []
    for effect in effects:
        turn = 0
        if effect.makes and effect.step.new_spec:
            name = (effect.step.key.kind, effect.step.new_spec.display_name)
            turn = seen[name]
            seen[name] += 1
        while len(turns) <= turn:
            turns.append([])
        turns[turn].append(effect)
    return turns


def batches(effects: Sequence[AnyEffect], max_count: int, max_bytes: int = BATCH_BYTES) -> list[list[AnyEffect]]:
    """Cut *effects* into batches of at most *max_count* and *max_bytes* of spec text; an effect is never cut."""
    full: list[list[AnyEffect]] = []
    size = 0
    for effect in effects:
        length = len(effect.step.new_spec.text.encode()) if effect.step.new_spec else 0
        if not full or len(full[-1]) >= max_count or size + length > max_bytes:
            full.append([])
            size = 0
        full[-1].append(effect)
        size += length
    return full
