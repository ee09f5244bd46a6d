"""Action sets as text."""

from collections.abc import Iterator, Mapping, Sequence

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from pkger.model.v1 import action_pb2
from rich.console import Console
from rich.text import Text

from services.actions.durations import duration_text
from services.cli.output.action_events import object_name, phase_name, reason_text
from services.cli.output.consoles import print_lines
from services.cli.output.enum_words import word
from services.cli.output.facts import moment, print_facts
from services.cli.output.tables import print_table


def print_action_sets(out: Console, action_sets: Sequence[action_pb2.ActionSet]) -> None:
    """Print action sets as a table."""
    rows = [
        (
            each.name,
            state_word(each.state),
            f"{each.progress} %",
            ", ".join(each.blueprints),
            ", ".join(map(object_name, each.objects)),
            moment(each.create_time),
        )
        for each in action_sets
    ]
    print_table(out, ("NAME", "STATE", "PROGRESS", "BLUEPRINTS", "OBJECTS", "BEGAN"), rows)


def print_action_set(out: Console, action_set: action_pb2.ActionSet) -> None:
    """Print an action set with its phases, failures and artifacts."""
    facts = {
        "state": state_word(action_set.state) if action_set.operation_id else "",
        "cause": action_set.cause,
        "operation": action_set.operation_id,
        "progress": f"{action_set.progress} %" if action_set.operation_id else "",
        "made from": action_set.predecessor,
        "labels": _texts(action_set.labels),
        "order": "one action after the other" if action_set.sequential else "",
        "timeout": _length(action_set.HasField("timeout"), action_set.timeout),
        "waits for": _length(action_set.HasField("wait"), action_set.wait),
        "kept for": _length(action_set.HasField("ttl"), action_set.ttl),
        "author": action_set.author,
        "began": _time(action_set.HasField("create_time"), action_set.create_time),
        "ended": _time(action_set.HasField("end_time"), action_set.end_time),
    }
    print_facts(out, f"action set {action_set.name}", facts)
    for action in action_set.actions:
        _print_action(out, action)
    if action_set.failures:
        print_lines(out, [Text("failures, the first one first:", "bold red"), *map(_failure, action_set.failures)])


def state_word(state: action_pb2.ActionSetState.ValueType) -> str:
    """A state of an action set as text."""
    return word(action_pb2.ActionSetState, "ACTION_SET_STATE", state)


def _print_action(out: Console, action: action_pb2.Action) -> None:
    target = f" on {object_name(action.object)}" if action.HasField("object") else ""
    facts = {
        "digest": action.digest,
        "options": _texts(action.options),
        **{f"from {each.name}": _artifact(each) for each in action.input_artifacts},
        **{f"artifact {each.name}": _artifact(each) for each in action.artifacts},
    }
    print_facts(out, f"action {action.name} of {action.blueprint}{target}", facts)
    print_table(out, ("PHASE", "FUNCTION", "STATE", "ATTEMPT", "BEGAN", "OPERATION", "MESSAGE"), _rows(action))


def _rows(action: action_pb2.Action) -> Iterator[Sequence[str]]:
    phases = [*action.phases, *([action.defer_phase] if action.HasField("defer_phase") else [])]
    for place, phase in enumerate(phases):
        name = f"{phase.name} (deferPhase)" if place == len(action.phases) else phase.name
        yield (
            name,
            f"{phase.function} v{phase.version}",
            word(action_pb2.PhaseState, "PHASE_STATE", phase.state) if phase.state else "",
            str(phase.attempt or ""),
            _time(phase.HasField("start_time"), phase.start_time),
            phase.operation_id,
            phase.message or _warning(phase),
        )


def _warning(phase: action_pb2.Phase) -> str:
    """What a phase that has not ended may do."""
    is_open = phase.state in (action_pb2.PHASE_STATE_PENDING, action_pb2.PHASE_STATE_RUNNING)
    return f"may delete resources of stack {phase.pruned_stack}" if is_open and phase.pruned_stack else ""


def _failure(failure: action_pb2.PhaseFailure) -> Text:
    attempt = f"attempt {failure.attempt} of {failure.function} failed{reason_text(failure)}"
    return Text(f"  {phase_name(failure.phase)}: {attempt}: {failure.message}")


def _artifact(artifact: action_pb2.Artifact) -> str:
    """The texts of an artifact, each with who deleted its snapshot, and when."""
    gone = {each.key: each for each in artifact.deleted_snapshots}
    parts = []
    for key, text in sorted(artifact.values.items()):
        deleted = gone.get(key)
        by = f" by {deleted.deleted_by}" if deleted and deleted.deleted_by else ""
        parts.append(f"{key}={text}" + (f" (deleted{by} at {moment(deleted.delete_time)})" if deleted else ""))
    return ", ".join(parts)


def _texts(texts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in sorted(texts.items()))


def _length(has_it: bool, length: Duration) -> str:
    return duration_text(length.ToMilliseconds()) if has_it else ""


def _time(has_it: bool, time: Timestamp) -> str:
    return moment(time) if has_it else ""
