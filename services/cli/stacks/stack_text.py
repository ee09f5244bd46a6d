"""Stacks as text and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any

from pkger.model.v1 import object_pb2
from pkger.stack.v1 import stack_pb2
from rich.console import Console
from rich.text import Text

from services.cli.output.facts import moment, print_facts
from services.cli.output.tables import print_table
from services.cli.stacks.resource_holders import NO_HOLDERS, ResourceHolders
from services.rpc.message_json import document_of
from services.views.drift import counts_text


def stack_document(
    stack: stack_pb2.Stack, resources: Iterable[object_pb2.InventoryEntry], shares: ResourceHolders = NO_HOLDERS
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
    out: Console, stack: stack_pb2.Stack, resources: Sequence[object_pb2.InventoryEntry], shares: ResourceHolders
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
        "reserved by": _reservation(stack),
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


def _reservation(stack: stack_pb2.Stack) -> str:
    """The action set that has the stack reserved; empty if none has."""
    if not stack.HasField("reservation"):
        return ""
    holder = stack.reservation
    return f"action set {holder.action_set} (operation {holder.operation_id}) since {moment(holder.create_time)}"


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
