"""The steps that block an operation as text, with the possible decisions."""

from collections.abc import Mapping

from pkger.model.v1 import operation_pb2
from rich.console import Console
from rich.text import Text

from services.cli.output.consoles import print_lines
from services.cli.output.effects import effect_in
from services.cli.output.enum_words import word
from services.core.text_lists import and_more

SHOWN_BLOCKED = 20


_REMEDIES: Mapping[operation_pb2.BlockedReason.ValueType, str] = {
    operation_pb2.BLOCKED_REASON_DEFECT: "`{}` retries; run it once the defect is fixed",
    operation_pb2.BLOCKED_REASON_STORE_RESTORED: "`{}` continues: it looks up sent steps; if none was sent, it ends",
}
"""How to recover an operation that needs no decisions about steps; ``{}`` stands for the command."""

_REMEDIES_OF_ACTION_SETS: Mapping[operation_pb2.BlockedReason.ValueType, str] = {
    **_REMEDIES,
    operation_pb2.BLOCKED_REASON_STORE_RESTORED: "`{}` stops it: deferPhases run, and it fails",
}


def print_blocked(out: Console, operation: operation_pb2.Operation) -> None:
    """Print the steps that block an operation, and the possible decisions."""
    lines = [Text("blocked by:", "bold red")] if operation.blocked_steps else []
    for blocked in operation.blocked_steps[:SHOWN_BLOCKED]:
        effect = effect_in(blocked.step)
        subject = f"{effect.step.verb.value} {effect.step.key.kind} {effect.step.key.name}"
        if effect.step.label:
            subject += f" label {effect.step.label.name}"
        undo = "undo of " if blocked.direction == operation_pb2.DIRECTION_UNDO else ""
        lines.append(Text(f"  step {effect.number}: {undo}{subject}: {blocked.message}", "red"))
        lines.append(Text(f"    decisions: {', '.join(map(_decision_text, blocked.decisions))}"))
    if more := and_more(operation.blocked_step_count - SHOWN_BLOCKED, "  "):
        lines.append(Text(more))
    remedies = _REMEDIES_OF_ACTION_SETS if operation.action_set else _REMEDIES
    remedy = remedies.get(operation.blocked_reason, "decide with `{} --step NUMBER=DECISION`; other steps are retried")
    lines.append(Text(remedy.format(f"pkger operations recover {operation.id}")))
    print_lines(out, lines)


def _decision_text(decision: operation_pb2.Decision.ValueType) -> str:
    return word(operation_pb2.Decision, "DECISION", decision) + (
        ":ID" if decision == operation_pb2.DECISION_ADOPT else ""
    )
