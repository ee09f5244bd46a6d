"""What runs should reach, by the names that the trace counts, and what of it none did (simulation.md 7)."""

from collections.abc import Collection, Mapping

from pkger.model.v1 import operation_pb2

from applier_svc.failpoints import NAMES as FAILPOINTS
from services.engine.operation import OperationState
from services.engine.step_life import TRANSITIONS
from tests.simulation.bad_driver import BAD_ANSWERS, BAD_DESCRIBE, BAD_LISTS
from tests.simulation.faults import BY_FEATURE, WORDS
from tests.simulation.features import FEATURES
from tests.simulation.scenario import EDITS, SERVERS

EFFECTS: Mapping[str, tuple[str, ...]] = {
    "kills": ("kill applier", *(f"kill applier at {name}" for name in FAILPOINTS)),
    "peer_kills": tuple(f"kill {name}" for name in SERVERS),
    "stops": ("stop inside a callback", "stop applier", *(f"stop {name}" for name in SERVERS)),
    **{feature: tuple(f"fault {word}" for word in words) for feature, words in BY_FEATURE.items()},
    "very_late": ("fault very_late",),
    "cancel": ("client cancels",),
    "leave": ("client leaves",),
    "plans": ("client plan",),
    "skip": ("client skips",),
    "secrets": ("effect put_secret done",),
    "replace": ("replacement",),
    "reject": ("platform refused create", "platform refused update"),
    "natural_key": ("creation by NATURAL_KEY",),
    "search": ("creation by SEARCH",),
    "no_fence": ("mutation without a fence",),
    "stacks": ("operations on several stacks",),
    "same_names": ("operations on several stacks",),
    "person": tuple(f"person {do}" for do in EDITS),
    "bad_lists": tuple(f"bad driver: {way}" for way in BAD_LISTS),
    "bad_answers": tuple(f"bad driver: {way}" for way in BAD_ANSWERS),
    "bad_describe": tuple(f"bad driver: {way}" for way in BAD_DESCRIBE),
    "clock": ("clock jumps",),
}
"""What each feature has to lead to."""

_RETRACTED = "only what was sent is retracted, and its intent was noted before"

UNREACHABLE: dict[str, str] = {
    "step PLANNED -> PLANNED": _RETRACTED,
    "step DONE -> DONE": _RETRACTED,
}
"""What cannot be reached today, with the reason."""

_DONE = ("create", "update", "delete", "attach", "detach", "put_secret")
_UNDONE = ("delete", "update", "create", "detach", "attach", "delete_secret")
"""Mutations that a step, or its inverse, is sent as."""


def names(features: Collection[str] = tuple(FEATURES)) -> tuple[str, ...]:
    """All names that runs with *features* should reach."""
    reasons = [name for name, number in operation_pb2.BlockedReason.items() if number]
    return tuple(
        dict.fromkeys(
            [
                *(f"failpoint {name}" for name in FAILPOINTS),
                *(f"step {before} -> {after}" for before, ways in TRANSITIONS.items() for after in ways.values()),
                *(f"operation {state}" for state in OperationState),
                *(f"blocked {reason}" for reason in reasons),
                *(f"fault {word}" for word in sorted(WORDS)),
                *(name for feature in features for name in EFFECTS[feature]),
                *(f"effect {verb} done" for verb in _DONE),
                *(f"effect {verb} undone" for verb in _UNDONE),
                *(f"client {do}" for do in ("apply", "plan", "uninstall")),
            ]
        )
    )


def missing(counts: Mapping[str, int], features: Collection[str] = tuple(FEATURES)) -> list[str]:
    """Names that runs with *features* never reached and that are not known to be out of reach."""
    return [name for name in names(features) if not counts.get(name) and name not in UNREACHABLE]


def surprises(counts: Mapping[str, int]) -> list[str]:
    """Names that were reached although ``UNREACHABLE`` says that they cannot be."""
    return [name for name in UNREACHABLE if counts.get(name)]
