"""Which phases of an action set may delete resources, as a question for its user."""

from collections.abc import Iterator

from pkger.model.v1 import action_pb2

from services.core.text_lists import listed

_NAMED = 5
"""How many phases the question names."""


def deletions_text(action_set: action_pb2.ActionSet) -> str:
    """The phases of *action_set* that may delete resources of a stack; empty: none does."""
    phases = list(_deleting(action_set))
    return f"may delete resources: {listed(phases, _NAMED, '; ')}" if phases else ""


def _deleting(action_set: action_pb2.ActionSet) -> Iterator[str]:
    for action in action_set.actions:
        phases = [*action.phases, *([action.defer_phase] if action.HasField("defer_phase") else [])]
        for phase in phases:
            if phase.pruned_stack:
                yield f"phase {phase.name} of action {action.name}, of stack {phase.pruned_stack}"
