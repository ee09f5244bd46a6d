"""The pictures of the states of steps, phases and action sets, as Mermaid, from the tables of transitions."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TypeVar

from services.actions import life
from services.engine.step_state import FINAL, TRANSITIONS, StepEvent, StepState

State = TypeVar("State", bound=StrEnum)


def steps_diagrams() -> str:
    """Two state diagrams: how a step runs, and how its inverse does; each arrow has the events of its transition."""
    forward = [event for event in StepEvent if not event.value.startswith("undo_")]
    backward = [event for event in StepEvent if event not in forward]
    return f"A step:\n\n{_diagram(forward)}\n\nIts inverse:\n\n{_diagram(backward)}\n"


def phases_diagrams() -> str:
    """Two state diagrams: of a phase, and of an action set."""
    phase = _states(life.TRANSITIONS, life.PhaseState.PENDING)
    action_set = _states(life.ACTION_SET_TRANSITIONS, life.ActionSetState.PENDING)
    return f"A phase:\n\n{phase}\n\nAn action set:\n\n{action_set}\n"


def _states(transitions: Mapping[State, frozenset[State]], first: State) -> str:
    lines = [
        f"    {before} --> {after}"
        for before, following in transitions.items()
        for after in transitions
        if after in following and after is not before
    ]
    ends = [f"    {state} --> [*]" for state, following in transitions.items() if not following]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {first}", *lines, *ends, "```"])


def _diagram(events: list[StepEvent]) -> str:
    arrows = list(_arrows(events))
    shown = {state for arrow in arrows for state in arrow[:2]}
    lines = [f"    {before} --> {after}: {label}" for before, after, label in arrows]
    start = [f"    [*] --> {StepState.PLANNED}"] if StepState.PLANNED in shown else []
    ends = [f"    {state} --> [*]" for state in StepState if state in FINAL & shown]
    return "\n".join(["```mermaid", "stateDiagram-v2", *start, *lines, *ends, "```"])


def _arrows(events: list[StepEvent]) -> Iterator[tuple[StepState, StepState, str]]:
    for before, following in TRANSITIONS.items():
        for after in StepState:
            labels = [event.value for event in events if following.get(event) is after]
            if labels and after is not before:
                yield before, after, ", ".join(labels)
