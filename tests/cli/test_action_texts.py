"""Events and tables of action sets and snapshots as text, as golden files; ``pytest --update-golden`` rewrites them."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import action_pb2, object_pb2, operation_pb2
from pkger.stack.v1 import snapshot_pb2, stack_pb2
from rich.console import Console

from applier_svc.action_servicer import signature_to_pb
from services.actions.signatures import FUNCTIONS
from services.actions.snapshots import (
    PACKAGE,
    LeftOutObject,
    Manifest,
    SnapshotContent,
    SnapshotStack,
    manifest_text,
    snapshot_id,
)
from services.cli.actions.action_set_text import print_action_set, print_action_sets
from services.cli.actions.deletions import deletions_text
from services.cli.actions.functions import print_functions
from services.cli.actions.snapshot_text import print_snapshot, print_snapshots
from services.cli.output.action_events import action_line
from services.cli.stacks.resource_holders import NO_HOLDERS
from services.cli.stacks.stack_text import print_stack
from services.core.model import Target

GOLDEN = Path(__file__).with_name("golden") / "actions"

FLEET = action_pb2.ActionObject(kind="Stack", name="fleet")
CPU = action_pb2.ActionObject(kind="Check", name="cpu", stack="fleet")
SNAPSHOT = f"sha256:{'5f' * 32}"


def at(second: int) -> Timestamp:
    return Timestamp(seconds=1_795_867_200 + second)


def phase(name: str, index: int = 0, action: int = 0, of: str = "backup") -> action_pb2.PhaseRef:
    return action_pb2.PhaseRef(action=action, action_name=of, index=index, phase=name)


EVENTS = [
    operation_pb2.OperationEvent(accepted=operation_pb2.Accepted(action_set="backup-x7k2p")),
    operation_pb2.OperationEvent(
        waiting=operation_pb2.Waiting(stack_name="fleet", operation_id="0123456789abcdef", until=at(600))
    ),
    operation_pb2.OperationEvent(
        waiting=operation_pb2.Waiting(
            stack_name="fleet", operation_id="0123456789abcdef", action_set="nightly", until=at(600)
        )
    ),
    operation_pb2.OperationEvent(
        action_started=operation_pb2.ActionStarted(name="backup", blueprint="stack-backup", object=FLEET)
    ),
    operation_pb2.OperationEvent(
        action_started=operation_pb2.ActionStarted(action=1, name="backup", blueprint="stack-backup", object=CPU)
    ),
    operation_pb2.OperationEvent(
        action_started=operation_pb2.ActionStarted(action=2, name="delete", blueprint="stack-backup")
    ),
    operation_pb2.OperationEvent(
        phase_started=operation_pb2.PhaseStarted(phase=phase("export"), function="ExportStack", attempt=1)
    ),
    operation_pb2.OperationEvent(phase_progress=operation_pb2.PhaseProgress(phase=phase("export"), percent=40)),
    operation_pb2.OperationEvent(
        phase_retrying=operation_pb2.PhaseRetrying(
            phase=phase("export"),
            attempt=1,
            reason=action_pb2.PHASE_REASON_FAILED,
            error_reason="SERVICE_UNAVAILABLE",
            message="the platform embedded does not answer",
            delay=Duration(seconds=1, nanos=500_000_000),
        )
    ),
    operation_pb2.OperationEvent(
        phase_started=operation_pb2.PhaseStarted(phase=phase("export"), function="ExportStack", attempt=2)
    ),
    operation_pb2.OperationEvent(
        phase_retrying=operation_pb2.PhaseRetrying(
            phase=phase("export"),
            attempt=2,
            reason=action_pb2.PHASE_REASON_INTERRUPTED,
            message="its applier ended while it ran",
        )
    ),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(phase=phase("export"), state=action_pb2.PHASE_STATE_COMPLETE, attempt=2)
    ),
    operation_pb2.OperationEvent(
        artifacts_rendered=operation_pb2.ArtifactsRendered(action_name="backup", names=["stackBackup", "times"])
    ),
    operation_pb2.OperationEvent(
        waiting=operation_pb2.Waiting(
            stack_name="other", operation_id="0123456789abcdef", phase=phase("apply", 1), until=at(60)
        )
    ),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(
            phase=phase("pause", 1, 1),
            state=action_pb2.PHASE_STATE_FAILED,
            attempt=1,
            reason=action_pb2.PHASE_REASON_TIMEOUT,
            message="it took longer than 5m",
        )
    ),
    operation_pb2.OperationEvent(stopping=operation_pb2.Stopping(cause="phase pause of action backup failed")),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(
            phase=phase("apply", 1),
            state=action_pb2.PHASE_STATE_FAILED,
            attempt=1,
            reason=action_pb2.PHASE_REASON_FAILED,
            error_reason="VALUES_MISSING",
            message="secrets are missing: token",
        )
    ),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(
            phase=phase("verify", 2),
            state=action_pb2.PHASE_STATE_SKIPPED,
            message="the action set stopped before it",
        )
    ),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(
            phase=phase("wait", 0, 2, "delete"),
            state=action_pb2.PHASE_STATE_CANCELLED,
            attempt=1,
            reason=action_pb2.PHASE_REASON_CANCELLED,
        )
    ),
    operation_pb2.OperationEvent(
        phase_started=operation_pb2.PhaseStarted(phase=phase("resume", -1), function="Sleep", attempt=1)
    ),
    operation_pb2.OperationEvent(
        phase_ended=operation_pb2.PhaseEnded(
            phase=phase("resume", -1), state=action_pb2.PHASE_STATE_COMPLETE, attempt=1
        )
    ),
    *(
        operation_pb2.OperationEvent(finished=operation_pb2.Finished(state=state, cause=cause))
        for state, cause in (
            (operation_pb2.OPERATION_STATE_SUCCEEDED, ""),
            (operation_pb2.OPERATION_STATE_FAILED, "phase pause of action backup failed: it took longer than 5m"),
            (operation_pb2.OPERATION_STATE_CANCELLED, "the action set was cancelled"),
            (operation_pb2.OPERATION_STATE_BLOCKED, "the store was restored from a backup"),
        )
    ),
]

OF_PLANS = {
    "begun",
    "package_invalid",
    "stage_started",
    "steps_ended",
    "rollback_started",
    "steps_undone",
    "late_effects",
    "steps_sent",
    "steps_waiting",
}
"""The events that only operations with a plan have."""

ACTION_SET = action_pb2.ActionSet(
    name="backup-x7k2p",
    operation_id="0123456789abcdef",
    state=action_pb2.ACTION_SET_STATE_FAILED,
    cause="phase verify of action backup failed: a content does not have its digest",
    labels={"why": "schedule", "team": "a"},
    predecessor="backup-first",
    sequential=True,
    timeout=Duration(seconds=3600),
    wait=Duration(seconds=90),
    ttl=Duration(seconds=86400),
    progress=50,
    author="alice",
    create_time=at(0),
    end_time=at(61),
    blueprints=["stack-backup"],
    objects=[FLEET, CPU],
    failures=[
        action_pb2.PhaseFailure(
            phase=phase("verify", 1),
            function="VerifySnapshot",
            attempt=3,
            reason=action_pb2.PHASE_REASON_FAILED,
            error_reason="SNAPSHOT_CORRUPT",
            message="a content does not have its digest",
        )
    ],
    actions=[
        action_pb2.Action(
            name="backup",
            blueprint="stack-backup",
            digest=SNAPSHOT,
            object=FLEET,
            options={"tag": "night"},
            phases=[
                action_pb2.Phase(
                    name="export",
                    function="ExportStack",
                    version=1,
                    state=action_pb2.PHASE_STATE_COMPLETE,
                    attempt=1,
                    start_time=at(1),
                    end_time=at(2),
                ),
                action_pb2.Phase(
                    name="verify",
                    function="VerifySnapshot",
                    version=1,
                    state=action_pb2.PHASE_STATE_FAILED,
                    attempt=3,
                    start_time=at(2),
                    operation_id="fedcba9876543210",
                    message="a content does not have its digest",
                ),
            ],
            defer_phase=action_pb2.Phase(
                name="resume", function="Sleep", version=1, state=action_pb2.PHASE_STATE_SKIPPED
            ),
            artifacts=[
                action_pb2.Artifact(
                    name="stackBackup",
                    values={"snapshot": SNAPSHOT, "tag": "night"},
                    deleted_snapshots=[
                        action_pb2.DeletedSnapshot(key="snapshot", deleted_by="delete-backup", delete_time=at(90))
                    ],
                )
            ],
        ),
        action_pb2.Action(
            name="restore",
            blueprint="stack-backup",
            digest=SNAPSHOT,
            object=CPU,
            input_artifacts=[action_pb2.Artifact(name="stackBackup", values={"snapshot": SNAPSHOT})],
            phases=[
                action_pb2.Phase(
                    name="apply",
                    function="RestoreStack",
                    version=1,
                    state=action_pb2.PHASE_STATE_PENDING,
                    pruned_stack="fleet",
                )
            ],
        ),
    ],
)

MANIFEST = Manifest(
    operation="0123456789abcdef",
    action="backup",
    index=0,
    phase="export",
    time="2026-11-28T12:00:00Z",
    media_type=PACKAGE,
    contents=(SnapshotContent(SNAPSHOT, 1234),),
    stack=SnapshotStack("fleet", Target("embedded", "default"), 3, "Sensors", ("https://example.com/fleet.yml",), {}),
    objects=6,
    secrets=("token",),
    left_out=(LeftOutObject("Dashboard", "Fleet", "its chart has a type that packages lack"),),
)
STORED = snapshot_pb2.Snapshot(
    id=snapshot_id(manifest_text(MANIFEST)),
    manifest_json=manifest_text(MANIFEST),
    action_set="backup-x7k2p",
    stack_name="fleet",
    object_count=6,
    bytes=1234,
    create_time=at(0),
)
DELETED = snapshot_pb2.Snapshot(delete_time=at(90), deleted_by="alice")
DELETED.MergeFrom(STORED)
RESERVED = stack_pb2.Stack(
    id="0a1b2c3d4e5f6071",
    name="fleet",
    target=object_pb2.Target(platform="embedded", org="default"),
    create_time=at(0),
    update_time=at(1),
    reservation=stack_pb2.StackReservation(
        action_set="backup-x7k2p", operation_id="0123456789abcdef", create_time=at(2)
    ),
)


def table(write: Callable[[Console], None]) -> str:
    out = io.StringIO()
    write(Console(file=out, soft_wrap=True, width=1000))
    return out.getvalue()


def texts() -> dict[str, str]:
    """All texts by the names of their golden files."""
    for second, event in enumerate(EVENTS):
        event.time.CopyFrom(at(second))
    lines = [line for event in EVENTS if (line := action_line(event))]
    signatures = list(map(signature_to_pb, FUNCTIONS.all()))
    return {
        "events": "".join(f"{line.text}\n" for line in lines),
        "action-sets": table(lambda out: print_action_sets(out, [ACTION_SET])),
        "action-set": table(lambda out: print_action_set(out, ACTION_SET)),
        "snapshots": table(lambda out: print_snapshots(out, [STORED])),
        "snapshot": table(lambda out: print_snapshot(out, DELETED, MANIFEST)),
        "functions": table(lambda out: print_functions(out, signatures)),
        "reserved-stack": table(lambda out: print_stack(out, RESERVED, (), NO_HOLDERS)),
        "question": f"The action set {deletions_text(ACTION_SET)}.\n",
    }


def test_the_texts(request: pytest.FixtureRequest) -> None:
    shown = texts()
    if request.config.getoption("--update-golden"):
        GOLDEN.mkdir(exist_ok=True)
        for name, text in shown.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert shown == {path.stem: path.read_text() for path in GOLDEN.glob("*.txt") if path.stem in shown}


def test_every_event_is_shown_or_belongs_to_plans() -> None:
    shown = {event.WhichOneof("event") for event in EVENTS if action_line(event)}
    assert len([event for event in EVENTS if action_line(event)]) == len(EVENTS)
    known = {field.name for field in operation_pb2.OperationEvent.DESCRIPTOR.oneofs_by_name["event"].fields}
    assert shown | OF_PLANS == known
    assert not shown & OF_PLANS


def test_an_operation_with_a_plan_has_no_line_of_an_action_set() -> None:
    accepted = operation_pb2.OperationEvent(accepted=operation_pb2.Accepted(plan_id="0123456789abcdef"))
    rolled_back = operation_pb2.Finished(state=operation_pb2.OPERATION_STATE_ROLLED_BACK)
    assert action_line(accepted) is None
    assert action_line(operation_pb2.OperationEvent(finished=rolled_back)) is None


def test_an_action_set_that_deletes_nothing_needs_no_question() -> None:
    backup = action_pb2.ActionSet(actions=[ACTION_SET.actions[0]])
    assert deletions_text(backup) == ""
