"""Measures blueprints: their validation, and the rendering of templates."""

from typing import Any

from bench.figures import Figure, seconds
from bench.floors import least
from services.actions.signatures import FUNCTIONS
from services.actions.templates.rendering import render
from services.actions.validation import validate

PHASES_OF_ACTION = 50

TEMPLATES = (
    "{{ phases.export.output.snapshot }}",
    "backups/{{ object.name }}/{{ run.id }}.json",
    '{{ default(options.tag, "none") == "night" ? formatTime(time, "%Y-%m-%d") : options.tag }}',
)
PARAMETERS: dict[str, Any] = {
    "time": "2026-11-28T10:00:00Z",
    "run": {"id": "0123456789abcdef"},
    "object": {"name": "fleet"},
    "options": {"tag": "night"},
    "phases": {"export": {"output": {"snapshot": "sha256:ab"}}},
}


def of_definitions(phases: int) -> list[Figure]:
    """The figures, of so many phases with three templates each."""
    document, texts = _blueprint(phases), TEMPLATES * phases
    validated = least(lambda: validate([document], FUNCTIONS))
    rendered = least(lambda: [render(text, PARAMETERS) for text in texts])
    return [
        Figure("validate a blueprint", f"{phases:,} phases", seconds(validated), "< 300 ms"),
        Figure("render templates", "", f"{len(texts) / rendered:,.0f} per second", ">= 20,000"),
    ]


def _blueprint(phases: int) -> dict[str, Any]:
    """A blueprint with so many phases, or as many more as fill an action."""
    first = {"name": "export", "func": "ExportStack"}
    action = {
        "options": {"tag": {"default": "night"}},
        "outputArtifacts": {
            f"a{number}": {"keyValue": {f"k{place}": text for place, text in enumerate(TEMPLATES)}}
            for number in range(PHASES_OF_ACTION)
        },
        "phases": [first, *({"name": f"p{number}", "func": "ExportStack"} for number in range(1, PHASES_OF_ACTION))],
    }
    actions = {f"a{number}": action for number in range(max(1, phases // PHASES_OF_ACTION))}
    return {"apiVersion": "pkger/v1", "kind": "Blueprint", "metadata": {"name": "large"}, "spec": {"actions": actions}}
