"""What people read: steps, operations, stacks; and plans and stacks as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import object_pb2, operation_pb2, plan_pb2
from pkger.stack.v1 import stack_pb2
from rich.console import Console
from rich.table import Table
from rich.text import Text

from services.cli.effects import effect_in, overwrites_secret, wording
from services.cli.escapes import one_line
from services.cli.names import word
from services.cli.shares import ALONE, Shares
from services.rpc.plan_parts import JoinedPlan

SHOWN_BLOCKED = 20

LISTED = 50
"""Rows of a list of what there may be thousands of."""

_UNBOUNDED = 100_000
"""Columns, more than any table has: a name that is cut can be neither copied nor piped."""


def console(*, stderr: bool = False) -> Console:
    """Standard output, or error; colours only at a terminal, and nothing is broken or cut to the width of one."""
    return Console(highlight=False, soft_wrap=True, width=_UNBOUNDED, stderr=stderr)


_WAYS_OUT: Mapping[operation_pb2.BlockedReason.ValueType, str] = {
    operation_pb2.BLOCKED_REASON_DEFECT: "`{}` tries again, once the defect is mended",
    operation_pb2.BLOCKED_REASON_STORE_RESTORED: "`{}` goes on: what sent nothing ends, the rest is looked up",
}
"""The way out of an operation, for the command that recovers it, where it is not to decide about steps."""


def print_blocked(out: Console, operation: operation_pb2.Operation) -> None:
    """What keeps a BLOCKED operation from its end, and the ways out."""
    lines = [Text("blocked by:", "bold red")] if operation.blocked_steps else []
    for blocked in operation.blocked_steps[:SHOWN_BLOCKED]:
        effect = effect_in(blocked.step)
        what = f"{effect.step.verb.value} {effect.step.key.kind} {effect.step.key.name}"
        if effect.step.label:
            what += f" label {effect.step.label.name}"
        undo = "undo of " if blocked.direction == operation_pb2.DIRECTION_UNDO else ""
        lines.append(Text(f"  step {effect.number}: {undo}{what}: {blocked.message}", "red"))
        lines.append(Text(f"    ways out: {', '.join(map(_way_out, blocked.decisions))}"))
    if (more := operation.blocked_step_count - SHOWN_BLOCKED) > 0:
        lines.append(Text(f"  and {more} more"))
    short = operation.name.rpartition("/")[2]
    way = _WAYS_OUT.get(operation.blocked_reason, "decide with `{} --step NUMBER=WAY`; what is not named is retried")
    lines.append(Text(way.format(f"pkger operations recover {short}")))
    print_lines(out, lines)


def _way_out(decision: operation_pb2.Decision.ValueType) -> str:
    return word(operation_pb2.Decision, "DECISION", decision) + (
        ":ID" if decision == operation_pb2.DECISION_ADOPT else ""
    )


def print_more(out: Console, has_more: bool) -> None:
    """Say that a list has only the newest of what there is, if it *has_more*."""
    if has_more:
        out.print(Text("older ones are not shown", "dim"))


def print_lines(out: Console, lines: Sequence[Text]) -> None:
    """Print *lines* at once, if there are any: one by one, those of a large plan would take seconds."""
    if lines:
        out.print(Text("\n").join(lines))


def step_line(step: plan_pb2.Step) -> Text:
    """A step of a plan in one line."""
    effect = effect_in(step)
    words, about = wording(effect), effect.step
    what = f"{about.key.kind} {about.key.name or about.resource_id}"
    if about.label:
        what += f" {'without' if effect.removes else 'with'} label {about.label.name or about.label_id}"
    elif overwrites_secret(effect):
        what += " (overwritten; cannot be taken back)"
    elif name := step.create.display_name or step.update.display_name or step.delete.old_display_name:
        what += f" {json.dumps(name, ensure_ascii=False)}"
    return Text("  ").append(f"{words.sign} {one_line(what)}", words.style)


def plan_document(plan: JoinedPlan) -> dict[str, Any]:
    """A plan as JSON data: all its parts by the names of their fields, with the JSON texts in them as data."""
    parts = _opened(plan.body)
    return {
        **_opened(plan.header),
        **parts.get("remarks", _opened(plan_pb2.PlanRemarks())),
        "steps": parts["steps"],
        "diffs": _opened(plan.diffs),
        "record": parts.get("record", _opened(plan_pb2.PlanRecord())),
        "summary": orjson.loads(plan.summary) if plan.summary else None,
    }


def message_document(message: Message) -> dict[str, Any]:
    """A message as JSON data by the names of its fields, with the JSON texts in it as data."""
    return _opened(message)


def _opened(message: Message) -> dict[str, Any]:
    document = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    opened = _open_texts(document)
    assert isinstance(opened, dict)  # noqa: S101 - what a message becomes
    return opened


def _open_texts(value: Any) -> Any:
    if isinstance(value, list):
        return [_open_texts(item) for item in value]
    if isinstance(value, dict):
        return {
            key.removesuffix("_json"): _data(item) if key.endswith("_json") else _open_texts(item)
            for key, item in value.items()
        }
    return value


def _data(text: str) -> Any:
    """What a JSON text says; the text itself where a driver gave what is none."""
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return text


def moment(time: Timestamp) -> str:
    """A time for people: to the second, always of one length."""
    return f"{time.ToDatetime():%Y-%m-%dT%H:%M:%SZ}"


def stack_document(
    stack: stack_pb2.Stack, resources: Iterable[object_pb2.InventoryEntry], shares: Shares = ALONE
) -> dict[str, Any]:
    """The record of a stack, with what it owns and uses, as JSON data (issue 2)."""
    return {
        "stack_id": stack.id,
        "createdAt": stack.create_time.ToJsonString(),
        "updatedAt": stack.update_time.ToJsonString(),
        "resources": [_resource_document(entry) | shares.document(entry) for entry in resources],
    }


def listing_document(stack: stack_pb2.Stack) -> dict[str, Any]:
    """One stack of a listing as JSON data."""
    return {
        "stack_id": stack.id,
        "name": stack.name,
        "platform": stack.target.platform,
        "org": stack.target.org,
        "createdAt": stack.create_time.ToJsonString(),
        "updatedAt": stack.update_time.ToJsonString(),
        "resourceCount": stack.resource_count,
    }


def _resource_document(entry: object_pb2.InventoryEntry) -> dict[str, Any]:
    return {
        "kind": entry.key.kind,
        "id": entry.resource_id,
        "pkgName": entry.key.name,
        "associations": [{"kind": label.kind, "pkgName": label.name} for label in entry.associations],
    }


def print_json(out: Console, document: Any) -> None:
    """Indented JSON, without colours, so that it can be piped."""
    out.print(Text(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()))


def print_stack(
    out: Console, stack: stack_pb2.Stack, resources: Sequence[object_pb2.InventoryEntry], shares: Shares
) -> None:
    """The record of a stack, with what it owns and uses, as text."""
    out.print(Text(f"stack {stack.name or '(no name)'}", "bold"))
    facts = {
        "id": stack.id,
        "target": f"{stack.target.platform}/{stack.target.org}",
        "created": moment(stack.create_time),
        "updated": moment(stack.update_time),
        "generation": str(stack.generation),
        "sources": ", ".join(stack.sources),
    }
    said = {"description": stack.description, "URLs": ", ".join(stack.urls)}
    for title, fact in (facts | {title: text for title, text in said.items() if text}).items():
        out.print(Text(f"  {title:<10} {fact}"))
    table = Table("KIND", "NAME", "ID", "LABELS", box=None, pad_edge=False)
    shared = {entry.resource_id: words for entry in resources if (words := shares.words(entry))}
    if shared:
        table.add_column("SHARED")
    for entry in resources:
        labels = ", ".join(label.name for label in entry.associations)
        others = [shared.get(entry.resource_id, "")] if shared else []
        table.add_row(*map(Text, (entry.key.kind, entry.key.name, entry.resource_id, labels, *others)))
    if resources:
        out.print(table)
    pending = [f"{entry.key.kind} {entry.key.name}" for entry in resources if entry.is_pending_delete]
    if pending:
        out.print(Text(f"not deleted yet, the next apply or uninstall tries again: {', '.join(pending)}", "yellow"))


def print_stacks(out: Console, stacks: Iterable[stack_pb2.Stack]) -> None:
    """Stacks as a table, one a row."""
    table = Table("NAME", "ID", "TARGET", "RESOURCES", "UPDATED", box=None, pad_edge=False)
    for stack in stacks:
        target = f"{stack.target.platform}/{stack.target.org}"
        row = (stack.name or "(no name)", stack.id, target, str(stack.resource_count), moment(stack.update_time))
        table.add_row(*map(Text, row))
    out.print(table)
