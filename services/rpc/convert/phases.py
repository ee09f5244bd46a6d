"""Records of phases as messages and back."""

from collections.abc import Mapping
from typing import Any

import orjson
from pkger.journal.v1 import action_set_pb2
from pkger.model.v1 import action_pb2, object_pb2

from services.actions.definitions import ActionObject
from services.actions.folding import ArtifactRecord, Microseconds, PhaseKey, PhaseRecord, Records, Stop
from services.actions.life import ActionSetState, PhaseState, StopReason
from services.actions.phase_reason import PhaseReason
from services.kinds.format.canonical import canonical_text
from services.rpc.convert.enums import Numbers

PHASE_STATES = Numbers(PhaseState, action_pb2.PhaseState, "PHASE_STATE")
PHASE_REASONS = Numbers(PhaseReason, action_pb2.PhaseReason, "PHASE_REASON")
ACTION_SET_STATES = Numbers(ActionSetState, action_pb2.ActionSetState, "ACTION_SET_STATE")
_STOP_REASONS = Numbers(StopReason, action_set_pb2.StopReason, "STOP_REASON")


def reason_number(reason: PhaseReason | None) -> Any:
    """The number of a reason; 0 for none."""
    return PHASE_REASONS.number(reason) if reason else action_pb2.PHASE_REASON_UNSPECIFIED


def action_object_to_pb(target: ActionObject) -> action_pb2.ActionObject:
    """The object of an action."""
    return action_pb2.ActionObject(
        kind=target.kind,
        name=target.name,
        stack=target.stack,
        target=object_pb2.Target(platform=target.platform, org=target.org),
    )


def outputs_text(outputs: Mapping[str, Any]) -> str:
    """Outputs of a phase as JSON text; empty for none."""
    return canonical_text(dict(outputs)) if outputs else ""


def records_to_pb(records: Records) -> action_set_pb2.ActionRecords:
    """The records of one write."""
    return action_set_pb2.ActionRecords(
        phases=map(_phase_to_pb, records.phases),
        artifacts=[
            action_set_pb2.ArtifactRecord(action=action, artifact=action_pb2.Artifact(name=name, values=values))
            for action, name, values in records.artifacts
        ],
        stop=_STOP_REASONS.number(records.stop.reason) if records.stop else action_set_pb2.STOP_REASON_UNSPECIFIED,
        cause=records.stop.cause if records.stop else "",
        reserve=records.reserve,
    )


def records_from_pb(message: action_set_pb2.ActionRecords) -> tuple[Records, Microseconds]:
    """
    The records of one write, and when it was made.

    Raises:
        RequestInvalid: A state or reason is not known.
        ValueError: Outputs are no JSON.
    """
    stop = Stop(_STOP_REASONS.member(message.stop, "stop"), message.cause) if message.stop else None
    records = Records(
        tuple(map(_phase_from_pb, message.phases)),
        tuple(
            ArtifactRecord(each.action, each.artifact.name, dict(each.artifact.values)) for each in message.artifacts
        ),
        stop,
        message.reserve,
    )
    return records, message.write_time.ToMicroseconds()


def _phase_to_pb(record: PhaseRecord) -> action_set_pb2.PhaseRecord:
    return action_set_pb2.PhaseRecord(
        action=record.key.action,
        index=record.key.place,
        state=PHASE_STATES.number(record.state),
        attempt=record.attempt,
        try_number=record.try_number,
        interrupted=record.interrupted,
        outputs_json=outputs_text(record.outputs),
        reason=reason_number(record.reason),
        error_reason=record.error_reason,
        message=record.message,
        percent=record.percent,
    )


def _phase_from_pb(message: action_set_pb2.PhaseRecord) -> PhaseRecord:
    return PhaseRecord(
        PhaseKey(message.action, message.index),
        PHASE_STATES.member(message.state, "phases.state"),
        message.attempt,
        message.try_number,
        message.interrupted,
        orjson.loads(message.outputs_json) if message.outputs_json else {},
        PHASE_REASONS.find(message.reason),
        message.error_reason,
        message.message,
        message.percent,
    )
