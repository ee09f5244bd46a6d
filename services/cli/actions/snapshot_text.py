"""Snapshots as text."""

from collections.abc import Sequence

from pkger.stack.v1 import snapshot_pb2
from rich.console import Console

from services.actions.snapshots import Manifest
from services.cli.output.facts import moment, print_facts
from services.cli.output.tables import print_table


def print_snapshots(out: Console, snapshots: Sequence[snapshot_pb2.Snapshot]) -> None:
    """Print snapshots as a table."""
    rows = [
        (
            each.id,
            each.stack_name or "(none)",
            str(each.object_count),
            f"{each.bytes:,}",
            each.action_set,
            moment(each.create_time),
        )
        for each in snapshots
    ]
    print_table(out, ("ID", "STACK", "OBJECTS", "BYTES", "ACTION SET", "MADE"), rows)


def print_snapshot(out: Console, snapshot: snapshot_pb2.Snapshot, manifest: Manifest) -> None:
    """Print a snapshot with what its manifest says."""
    stack = manifest.stack
    by = f" by {snapshot.deleted_by}" if snapshot.deleted_by else ""
    deleted = f"{moment(snapshot.delete_time)}{by}" if snapshot.HasField("delete_time") else ""
    facts = {
        "deleted": deleted,
        "action set": snapshot.action_set,
        "made by": f"phase {manifest.phase} of action {manifest.action}, operation {manifest.operation}",
        "made": moment(snapshot.create_time),
        "stack": stack.name if stack else "",
        "target": f"{stack.target.platform}/{stack.target.org}" if stack else "",
        "generation": str(stack.generation) if stack else "",
        "description": stack.description if stack else "",
        "URLs": ", ".join(stack.urls) if stack else "",
        "objects": str(manifest.objects),
        "bytes": f"{snapshot.bytes:,}",
        "secrets": ", ".join(manifest.secrets),
        "media type": manifest.media_type,
        "contents": ", ".join(each.digest for each in manifest.contents),
    }
    print_facts(out, f"snapshot {snapshot.id}", facts)
    if manifest.left_out:
        rows = [(each.kind, each.name, each.problem) for each in manifest.left_out]
        print_table(out, ("LEFT OUT", "NAME", "PROBLEM"), rows)
