"""How far an action set is, from its events, and how the command reports its end."""

from pkger.model.v1 import operation_pb2

from services.cli.errors import CommandFailed
from services.cli.exit_codes import Exit
from services.cli.output.action_events import ActionLine, action_line, is_interruption, phase_name


class ActionProgress:
    """
    The events of one action set.

    Attributes:
        name: Its name; empty: the operation is none.
    """

    def __init__(self) -> None:
        self.name = ""
        self._operation = ""
        self._has_begun = False
        # The phases that run, by the indices of action and phase.
        self._running: dict[tuple[int, int], str] = {}

    def line(self, event: operation_pb2.OperationEvent) -> ActionLine | None:
        """Take an event into account; the line for it, None for one of a plan."""
        self.name = self.name or event.accepted.action_set
        if not self.name:
            return None
        self._operation = event.operation_id
        self._has_begun = self._has_begun or event.HasField("action_started")
        started, ended, retrying = event.phase_started.phase, event.phase_ended.phase, event.phase_retrying.phase
        if event.HasField("phase_started"):
            self._running[started.action, started.index] = phase_name(started)
        elif event.HasField("phase_ended"):
            self._running.pop((ended.action, ended.index), None)
        elif event.HasField("phase_retrying") and not is_interruption(event.phase_retrying):
            self._running.pop((retrying.action, retrying.index), None)
        return action_line(event)

    def summary(self) -> str:
        """The progress in a few words."""
        running = ", ".join(self._running.values()) or "no phase"
        return f"action set {self.name}: {running} running"

    def refuse_failure(self, finished: operation_pb2.Finished) -> None:
        """
        Do nothing if the action set is complete.

        Raises:
            CommandFailed: It is not; with the exit status.
        """
        cause = f": {finished.cause}" if finished.cause else ""
        match finished.state:
            case operation_pb2.OPERATION_STATE_SUCCEEDED:
                return
            case operation_pb2.OPERATION_STATE_BLOCKED:
                remedy = f"`pkger operations recover {self._operation}` continues it"
                raise CommandFailed(f"action set {self.name} is blocked{cause}; {remedy}", Exit.BLOCKED)
            case operation_pb2.OPERATION_STATE_CANCELLED:
                raise CommandFailed(f"action set {self.name} was cancelled", Exit.ROLLED_BACK)
            case _ if not self._has_begun:
                # Only a stack that stays in use ends an action set before its first action.
                raise CommandFailed(f"action set {self.name} did not begin{cause}", Exit.LOCKED)
            case _:
                raise CommandFailed(f"action set {self.name} failed{cause}", Exit.ROLLED_BACK)
