"""Steps, operations and stacks as text; plans and stacks as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from rich.console import Console
from rich.text import Text

from services.cli.consoles import console, print_lines
from services.cli.effects import effect_in, overwrites_secret, wording
from services.cli.escapes import one_line
from services.cli.names import word
from services.cli.shares import ALONE, Shares
from services.cli.tables import print_table
from services.core.listing import and_more
from services.rpc.documents import document_of
from services.rpc.plan_parts import JoinedPlan
from services.views.drift import counts_text

SHOWN_BLOCKED = 20

LISTED = 50
"""Default number of rows of a list that may have thousands."""

LARGEST_PAGE = 500
"""The most rows that a service returns in one page."""

_REMEDIES: Mapping[operation_pb2.BlockedReason.ValueType, str] = {
    operation_pb2.BLOCKED_REASON_DEFECT: "`{}` retries; run it once the defect is fixed",
    operation_pb2.BLOCKED_REASON_STORE_RESTORED: "`{}` continues: it looks up sent steps; if none was sent, it ends",
}
"""How to recover an operation that needs no decisions about steps; ``{}`` stands for the command."""


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
    remedy = _REMEDIES.get(operation.blocked_reason, "decide with `{} --step NUMBER=DECISION`; other steps are retried")
    lines.append(Text(remedy.format(f"pkger operations recover {operation.id}")))
    print_lines(out, lines)


def _decision_text(decision: operation_pb2.Decision.ValueType) -> str:
    return word(operation_pb2.Decision, "DECISION", decision) + (
        ":ID" if decision == operation_pb2.DECISION_ADOPT else ""
    )


def print_more(has_more: bool) -> None:
    """Say that a list is cut, if it *has_more*."""
    if has_more:
        console(stderr=True).print(Text("there are more; --limit N lists up to N", "dim"))


def print_facts(out: Console, title: str, facts: Mapping[str, str]) -> None:
    """Print *facts* below *title*; empty facts are omitted."""
    width = max(map(len, facts)) + 1
    lines = [Text(one_line(title), "bold")]
    lines += [Text(f"  {name:<{width}}{one_line(fact)}") for name, fact in facts.items() if fact]
    print_lines(out, lines)


def step_line(step: plan_pb2.Step) -> Text:
    """A step of a plan in one line."""
    effect = effect_in(step)
    words, about = wording(effect), effect.step
    subject = f"{about.key.kind} {about.key.name or about.resource_id}"
    if about.label:
        subject += f" {'without' if effect.removes else 'with'} label {about.label.name or about.label_id}"
    elif overwrites_secret(effect):
        subject += " (overwritten; cannot be undone)"
    elif name := step.create.display_name or step.update.display_name or step.delete.old_display_name:
        subject += f" {json.dumps(name, ensure_ascii=False)}"
    if about.loss:
        subject += f" (loses {about.loss.data}; cannot be undone)"
    return Text("  ").append(f"{words.sign} {one_line(subject)}", words.style)


def plan_documents(plan: JoinedPlan) -> Iterator[dict[str, Any]]:
    """The parts of a plan as JSON data; those with the same content are one."""
    yield document_of(plan_pb2.PlanPart(header=plan.header))
    if plan.remarks.ByteSize():
        yield document_of(plan_pb2.PlanPart(remarks=plan.remarks))
    if plan.steps:
        yield document_of(plan_pb2.PlanPart(steps=plan_pb2.PlanSteps(steps=plan.steps)))
    if plan.diffs.ByteSize():
        yield document_of(plan_pb2.PlanPart(diffs=plan.diffs))
    if plan.summary:
        yield document_of(plan_pb2.PlanPart(summary_json=plan.summary))
    if plan.body.record.ByteSize():
        yield document_of(plan_pb2.PlanPart(record=plan.body.record))


def moment(time: Timestamp) -> str:
    """A time as text: to the second, always of the same length."""
    return f"{time.ToDatetime():%Y-%m-%dT%H:%M:%SZ}"


def stack_document(
    stack: stack_pb2.Stack, resources: Iterable[object_pb2.InventoryEntry], shares: Shares = ALONE
) -> dict[str, Any]:
    """
    A stack as JSON data: three messages of the contract, by the names of their fields in the responses.

    Other stacks that own or use its resources are ``owners`` and ``users``.
    """
    return {
        "stack": document_of(stack),
        "resources": [document_of(entry) for entry in resources],
        "owners": [document_of(owner) for owner in shares.owners.values()],
        "users": [document_of(user) for users in shares.users.values() for user in users],
    }


def print_stack(
    out: Console, stack: stack_pb2.Stack, resources: Sequence[object_pb2.InventoryEntry], shares: Shares
) -> None:
    """Print the record of a stack, with the resources that it owns and uses."""
    facts = {
        "id": stack.id,
        "target": f"{stack.target.platform}/{stack.target.org}",
        "created": moment(stack.create_time),
        "updated": moment(stack.update_time),
        "generation": str(stack.generation),
        "revision": str(stack.revision or ""),
        "drift": _last_detection(stack),
        "sources": ", ".join(stack.sources),
        "description": stack.description,
        "URLs": ", ".join(stack.urls),
    }
    print_facts(out, f"stack {stack.name or '(no name)'}", facts)
    shared = {entry.resource_id: text for entry in resources if (text := shares.text(entry))}
    rows = [
        (
            entry.key.kind,
            entry.key.name,
            entry.resource_id,
            ", ".join(label.name for label in entry.associations),
            *([shared.get(entry.resource_id, "")] if shared else []),
        )
        for entry in resources
    ]
    if rows:
        print_table(out, ("KIND", "NAME", "ID", "LABELS", *(["SHARED"] if shared else [])), rows)
    pending = [f"{entry.key.kind} {entry.key.name}" for entry in resources if entry.is_pending_delete]
    if pending:
        out.print(Text(f"not deleted yet; the next apply or uninstall retries: {', '.join(pending)}", "yellow"))


def _last_detection(stack: stack_pb2.Stack) -> str:
    """The result of the last drift detection; empty if there was none."""
    if not stack.HasField("last_drift_check"):
        return ""
    last = stack.last_drift_check
    age = "" if last.generation == stack.generation else f", stale: of generation {last.generation}"
    return f"{moment(last.time)}: {counts_text(last.counts) or 'no resources'}{age}"


def print_stacks(out: Console, stacks: Iterable[stack_pb2.Stack]) -> None:
    """Print stacks as a table."""
    rows = [
        (
            stack.name or "(no name)",
            stack.id,
            f"{stack.target.platform}/{stack.target.org}",
            str(stack.resource_count),
            moment(stack.update_time),
        )
        for stack in stacks
    ]
    print_table(out, ("NAME", "ID", "TARGET", "RESOURCES", "UPDATED"), rows)
