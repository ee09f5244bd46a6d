"""The pictures of the states of a step, as Mermaid, from the table of transitions."""

from collections.abc import Iterator

from services.engine.step_state import FINAL, TRANSITIONS, StepEvent, StepState


def steps_diagrams() -> str:
    """Two state diagrams: how a step runs, and how its inverse does; each arrow has the events of its transition."""
    forward = [event for event in StepEvent if not event.value.startswith("undo_")]
    backward = [event for event in StepEvent if event not in forward]
    return f"A step:\n\n{_diagram(forward)}\n\nIts inverse:\n\n{_diagram(backward)}\n"


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
