"""What is written when a phase ends or is tried again: records with their events."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.duration_pb2 import Duration
from pkger.model.v1 import action_pb2, operation_pb2

from applier_svc.actions.phase_names import phase_of, ref_of
from applier_svc.operation.events import Event
from services.actions.argument_values import RenderingError, is_renderable, render_artifact
from services.actions.durations import Milliseconds
from services.actions.folding import (
    ActionSetProgress,
    ArtifactRecord,
    PhaseKey,
    PhaseRecord,
    PhaseStatus,
    Records,
    Stop,
)
from services.actions.life import PhaseState, StopReason
from services.actions.parameters import Outputs, StackFacts, parameters_of
from services.actions.phase_reason import PhaseReason
from services.actions.pinned import PinnedActionSet
from services.rpc.convert.phases import PHASE_STATES, action_object_to_pb, reason_number
from services.rpc.parts import parts

LONGEST_MESSAGE = 1_500
"""Bytes of a message that an event has: the event of a stop has one twice, and all are below 4 KiB."""

MOST_NAMES = 3_000
"""Bytes of the names of artifacts in one event."""


class Failure(NamedTuple):
    """
    Why an attempt of a phase failed.

    Attributes:
        reason: Why.
        message: One sentence for people, shortened, without values of secrets.
        error_reason: The reason of the service that refused a call; empty: none did.
        is_worth_retry: Whether another attempt may succeed.
    """

    reason: PhaseReason
    message: str
    error_reason: str = ""
    is_worth_retry: bool = False


def shortened(message: str) -> str:
    """*message* with at most ``LONGEST_MESSAGE`` bytes and, if it was longer, how long it was."""
    text = message.encode(errors="replace")
    if len(text) <= LONGEST_MESSAGE:
        return text.decode()
    return f"{text[:LONGEST_MESSAGE].decode(errors='ignore')}… (this message of {len(text):,} bytes was cut)"


class Write(NamedTuple):
    """Records that are written together, and their events."""

    records: Records
    events: Sequence[Event]


def outputs_of(pinned: PinnedActionSet, progress: ActionSetProgress, action: int) -> Outputs:
    """The outputs of the phases of an action, by name of the phase; a phase that never began has none."""
    statuses = ((key, progress.status(key)) for key in progress.shape.keys(action))
    return {phase_of(pinned, key).name: status.outputs for key, status in statuses if status.attempt}


class Endings:
    """Makes the records with which the phases of one action set end."""

    def __init__(self, pinned: PinnedActionSet, operation: str, progress: ActionSetProgress) -> None:
        self._pinned = pinned
        self._operation = operation
        self._progress = progress

    def completed(self, key: PhaseKey, outputs: Mapping[str, Any], stack: StackFacts | None = None) -> Write:
        """The phase is complete, with *outputs* that were not stored before; artifacts may use the *stack*."""
        status = self._progress.status(key)
        record = PhaseRecord(key, PhaseState.COMPLETE, status.attempt, status.try_number, outputs=outputs)
        return self._ended(record, {**status.outputs, **outputs}, stack)

    def skipped(self, key: PhaseKey, message: str, stack: StackFacts | None = None) -> Write:
        """The phase does not run; artifacts may use the *stack*."""
        records, events = self._ended(PhaseRecord(key, PhaseState.SKIPPED, message=message), {}, stack)
        return Write(records, [*self._action_started(key), *events])

    def failed(self, key: PhaseKey, failure: Failure, state: PhaseState = PhaseState.FAILED) -> Write:
        """The phase failed, or was cancelled; if it is the first failure, the action set stops."""
        return self._ended(self._failure_record(key, failure, state), self._progress.status(key).outputs)

    def never_begun(self, key: PhaseKey, failure: Failure) -> Write:
        """The first attempt of the phase failed before its function was called."""
        begun = PhaseRecord(key, PhaseState.RUNNING, 1, 1)
        failed = PhaseRecord(
            key,
            PhaseState.FAILED,
            1,
            1,
            reason=failure.reason,
            error_reason=failure.error_reason,
            message=failure.message,
        )
        records, events = self._ended(failed, {})
        phases = (begun, *records.phases)
        return Write(Records(phases, records.artifacts, records.stop), [*self.started(key, begun.attempt), *events])

    def retried(self, key: PhaseKey, failure: Failure, delay: Milliseconds) -> Write:
        """The phase is tried again after *delay*."""
        pause = Duration()
        pause.FromMilliseconds(delay)
        event = operation_pb2.PhaseRetrying(
            phase=ref_of(self._pinned, key),
            attempt=self._progress.status(key).attempt,
            reason=reason_number(failure.reason),
            error_reason=failure.error_reason,
            message=failure.message,
            delay=pause,
        )
        return Write(Records((self._failure_record(key, failure, PhaseState.PENDING),)), [event])

    def interrupted(self, key: PhaseKey) -> Write:
        """The attempt of the phase is made again, as an applier ended while it ran."""
        status = self._progress.status(key)
        record = PhaseRecord(key, PhaseState.RUNNING, status.attempt, status.try_number, interrupted=True)
        event = operation_pb2.PhaseRetrying(
            phase=ref_of(self._pinned, key),
            attempt=status.attempt,
            reason=action_pb2.PHASE_REASON_INTERRUPTED,
            message="its applier ended while it ran",
        )
        return Write(Records((record,)), [event])

    def started(self, key: PhaseKey, attempt: int) -> list[Event]:
        """The events with which an attempt of a phase starts."""
        function = phase_of(self._pinned, key).function
        started = operation_pb2.PhaseStarted(phase=ref_of(self._pinned, key), function=function, attempt=attempt)
        return [*self._action_started(key), started]

    def _action_started(self, key: PhaseKey) -> list[Event]:
        """The event with which the action of a phase starts, if this is its first phase."""
        if self._progress.has_begun(key.action):
            return []
        action = self._pinned.actions[key.action]
        return [
            operation_pb2.ActionStarted(
                action=key.action,
                name=action.name,
                blueprint=action.blueprint,
                object=action_object_to_pb(action.object) if action.object else None,
            )
        ]

    def _failure_record(self, key: PhaseKey, failure: Failure, state: PhaseState) -> PhaseRecord:
        status = self._progress.status(key)
        return PhaseRecord(
            key,
            state,
            status.attempt,
            status.try_number,
            reason=failure.reason,
            error_reason=failure.error_reason,
            message=failure.message,
        )

    def _ended(self, record: PhaseRecord, outputs: Mapping[str, Any], stack: StackFacts | None = None) -> Write:
        artifacts, problem = self._artifacts(record, outputs, stack)
        events: list[Event] = [
            operation_pb2.PhaseEnded(
                phase=ref_of(self._pinned, record.key),
                state=PHASE_STATES.number(record.state),
                attempt=record.attempt,
                reason=reason_number(record.reason),
                error_reason=record.error_reason,
                message=record.message,
            )
        ]
        action = record.key.action
        events += (
            operation_pb2.ArtifactsRendered(action=action, action_name=self._pinned.actions[action].name, names=names)
            for names in parts([artifact.name for artifact in artifacts], len, MOST_NAMES)
        )
        stop = None
        if self._progress.stop is None and (record.state is PhaseState.FAILED or problem):
            failure = self._phase_failure(record) if record.state is PhaseState.FAILED else None
            stop = Stop(StopReason.FAILED, problem or f"{self._title(record.key)} failed: {record.message}")
            events.append(operation_pb2.Stopping(cause=stop.cause, failure=failure))
        return Write(Records((record,), artifacts, stop), events)

    def _title(self, key: PhaseKey) -> str:
        return f'phase "{phase_of(self._pinned, key).name}" of action "{self._pinned.actions[key.action].name}"'

    def _phase_failure(self, record: PhaseRecord) -> action_pb2.PhaseFailure:
        return action_pb2.PhaseFailure(
            phase=ref_of(self._pinned, record.key),
            function=phase_of(self._pinned, record.key).function,
            attempt=record.attempt,
            reason=reason_number(record.reason),
            error_reason=record.error_reason,
            message=record.message,
        )

    def _artifacts(
        self, record: PhaseRecord, outputs: Mapping[str, Any], stack: StackFacts | None
    ) -> tuple[list[ArtifactRecord], str]:
        """The artifacts that can be rendered now that the phase of *record* ends, and the problem if one cannot."""
        index = record.key.action
        templates = self._pinned.actions[index].action.output_artifacts
        missing = {name: by_key for name, by_key in templates.items() if (index, name) not in self._progress.artifacts}
        if not missing or record.state is PhaseState.FAILED or self._progress.stop:
            return [], ""
        by_phase = {**outputs_of(self._pinned, self._progress, index)}
        name = phase_of(self._pinned, record.key).name
        if record.state is not PhaseState.SKIPPED:
            by_phase[name] = outputs
        ended = {name, *(phase_of(self._pinned, key).name for key in self._ended_keys(index))}
        parameters = parameters_of(self._pinned, index, self._operation, by_phase, stack=stack)
        rendered = []
        for artifact, by_key in sorted(missing.items()):
            if not is_renderable(by_key, ended):
                continue
            try:
                rendered.append(ArtifactRecord(index, artifact, render_artifact(artifact, by_key, parameters)))
            except RenderingError as error:
                problem = f'artifact "{artifact}" of action "{self._pinned.actions[index].name}": {error}'
                return rendered, shortened(problem)
        return rendered, ""

    def _ended_keys(self, action: int) -> list[PhaseKey]:
        return [key for key in self._progress.shape.keys(action) if self._progress.status(key).has_ended]


def ending_between_attempts(status: PhaseStatus, stop: Stop | None) -> tuple[Failure, PhaseState]:
    """How a phase ends whose next attempt does not come because the action set stops."""
    if stop and stop.reason is StopReason.CANCELLED:
        return Failure(PhaseReason.CANCELLED, "it was cancelled before its next attempt"), PhaseState.CANCELLED
    reason = status.reason or PhaseReason.FAILED
    return Failure(reason, status.message, status.error_reason), PhaseState.FAILED
