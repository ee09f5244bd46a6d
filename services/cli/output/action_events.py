"""The events of action sets as lines, in the words of Kanister."""

from typing import NamedTuple

from pkger.model.v1 import action_pb2, operation_pb2

from services.actions.durations import duration_text
from services.actions.folding import DEFER
from services.cli.output.enum_words import word
from services.cli.output.facts import moment

_WIDTH = len("ActionSet Cancelled")

_ENDS = {
    operation_pb2.OPERATION_STATE_SUCCEEDED: ("Update Complete", "bold"),
    operation_pb2.OPERATION_STATE_FAILED: ("ActionSet Failed", "bold red"),
    operation_pb2.OPERATION_STATE_CANCELLED: ("ActionSet Cancelled", "bold red"),
    operation_pb2.OPERATION_STATE_BLOCKED: ("ActionSet Blocked", "bold red"),
}


class ActionLine(NamedTuple):
    """
    An event of an action set for people.

    Attributes:
        text: One line: time, what happened, to what, and how.
        style: Its style at a terminal.
    """

    text: str
    style: str = ""


class _Words(NamedTuple):
    happened: str
    subject: str = ""
    how: str = ""
    style: str = ""


def action_line(event: operation_pb2.OperationEvent) -> ActionLine | None:
    """The line for *event*; None for an event that only operations with a plan have."""
    words = _words(event)
    if words is None:
        return None
    line = f"{moment(event.time)}  {words.happened:<{_WIDTH}}  {'  '.join(filter(None, (words.subject, words.how)))}"
    return ActionLine(line.rstrip(), words.style)


def _words(event: operation_pb2.OperationEvent) -> _Words | None:
    match event.WhichOneof("event"):
        case "accepted" if event.accepted.action_set:
            return _Words("Created ActionSet", event.accepted.action_set)
        case "action_started":
            return _started(event.action_started)
        case "phase_started":
            return _phase_started(event.phase_started)
        case "phase_ended":
            return _phase_ended(event.phase_ended)
        case "phase_retrying":
            return _retrying(event.phase_retrying)
        case "phase_progress":
            return _Words("Phase Progress", phase_name(event.phase_progress.phase), f"{event.phase_progress.percent} %")
        case "waiting":
            return _waiting(event.waiting)
        case "artifacts_rendered":
            rendered = event.artifacts_rendered
            subject = _action_name(rendered.action, rendered.action_name)
            return _Words("Artifacts Rendered", subject, ", ".join(rendered.names))
        case "stopping":
            return _Words("Stopping", "", event.stopping.cause, "red")
        case "finished" if event.finished.state in _ENDS:
            happened, style = _ENDS[event.finished.state]
            return _Words(happened, "", event.finished.cause, style)
        case _:
            return None


def _started(started: operation_pb2.ActionStarted) -> _Words:
    target = f" on {object_name(started.object)}" if started.HasField("object") else ""
    return _Words("Started Action", _action_name(started.action, started.name), f"of {started.blueprint}{target}")


def _phase_started(started: operation_pb2.PhaseStarted) -> _Words:
    attempt = f", attempt {started.attempt}" if started.attempt > 1 else ""
    return _Words(f"Started {_noun(started.phase)}", phase_name(started.phase), f"{started.function}{attempt}")


def _phase_ended(ended: operation_pb2.PhaseEnded) -> _Words:
    state = word(action_pb2.PhaseState, "PHASE_STATE", ended.state)
    failed = ended.state in (action_pb2.PHASE_STATE_FAILED, action_pb2.PHASE_STATE_CANCELLED)
    how = f"{state}{reason_text(ended)}" if failed else state
    if ended.message:
        how += f": {ended.message}"
    return _Words(f"Ended {_noun(ended.phase)}", phase_name(ended.phase), how, "red" if failed else "")


def _retrying(retrying: operation_pb2.PhaseRetrying) -> _Words:
    if is_interruption(retrying):
        how = f"attempt {retrying.attempt} continues: {retrying.message}"
    else:
        delay = duration_text(retrying.delay.ToMilliseconds())
        how = f"attempt {retrying.attempt} failed{reason_text(retrying)}: {retrying.message}; again in {delay}"
    return _Words("Phase Retrying", phase_name(retrying.phase), how, "yellow")


def is_interruption(retrying: operation_pb2.PhaseRetrying) -> bool:
    """Whether a phase runs on after an interruption, as the same attempt."""
    return retrying.reason == action_pb2.PHASE_REASON_INTERRUPTED


def _waiting(waiting: operation_pb2.Waiting) -> _Words:
    holder = f"on which operation {waiting.operation_id} runs"
    if waiting.action_set:
        holder = f"which action set {waiting.action_set} (operation {waiting.operation_id}) has reserved"
    subject = phase_name(waiting.phase) if waiting.HasField("phase") else ""
    until = f", until {moment(waiting.until)}" if waiting.HasField("until") else ""
    return _Words("Waiting", subject, f"for stack {waiting.stack_name}, {holder}{until}", "yellow")


def reason_text(failure: operation_pb2.PhaseEnded | operation_pb2.PhaseRetrying | action_pb2.PhaseFailure) -> str:
    """Why a phase failed, as text after "failed": the reason of a service, if one refused, else that of the phase."""
    reason = failure.error_reason
    if not reason and failure.reason not in (
        action_pb2.PHASE_REASON_UNSPECIFIED,
        action_pb2.PHASE_REASON_FAILED,
        action_pb2.PHASE_REASON_CANCELLED,
    ):
        reason = action_pb2.PhaseReason.Name(failure.reason).removeprefix("PHASE_REASON_")
    return f" ({reason})" if reason else ""


def phase_name(phase: action_pb2.PhaseRef) -> str:
    """A phase of an action set as text; an action that is not the first one has its number."""
    return f"{_action_name(phase.action, phase.action_name)}/{phase.phase}"


def object_name(target: action_pb2.ActionObject) -> str:
    """An object of an action as text."""
    place = f" of stack {target.stack}" if target.stack else ""
    return f"{target.kind} {target.name}{place}"


def _action_name(index: int, name: str) -> str:
    """An action; several actions of an action set may have the same name."""
    return f"{name}#{index + 1}" if index else name


def _noun(phase: action_pb2.PhaseRef) -> str:
    return "deferPhase" if phase.index == DEFER else "Phase"
