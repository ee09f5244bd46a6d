"""An operation as text for users: its steps as they end, failures on standard error, and its end."""

from collections.abc import Iterable, Sequence

from pkger.model.v1 import operation_pb2, plan_pb2
from rich.console import Console
from rich.text import Text

from services.cli.operations.action_progress import ActionProgress
from services.cli.output.consoles import console, print_lines, progress_console
from services.cli.output.effects import effect_in, overwrites_secret, step_line, wording
from services.core.text_lists import and_more

_OVERWRITTEN, _GIVEN_UP = "overwritten secrets", "steps that were given up"
"""What a rollback does not undo."""

MOST_STEPS = 200
"""Of an operation with more steps, only stages, counts and failures are shown."""


_SHORT_STAGE, _BAR = 24, 10
"""Columns of the parts of the status line."""


class Progress:
    """
    Shows the events of one operation.

    The reason of a failed step is printed once, on standard error, when the step fails. ``end`` describes how the
    operation ended, in the same words on both outputs.

    Attributes:
        steps: The steps of its plan, by number; set before the first event of a step.
        actions: What an action set has instead of steps.
    """

    def __init__(self, steps: Sequence[plan_pb2.Step] = ()) -> None:
        """
        *steps* are the steps of an operation whose first events another command has shown; empty for a new operation.
        """
        self._out = progress_console()
        self.actions = ActionProgress()
        self._err = console(stderr=True)
        self._operation = ""
        # Failed steps: the text of the cause with the reason, and the text that replaces it in the last line.
        self._reasons: dict[str, str] = {}
        self._undo_count: int | None = None
        self._stage, self._stage_size, self._ended, self._ended_of_stage = "", 0, 0, 0
        self.begin(steps)
        # For an operation whose first events were shown elsewhere, only the plan says which secrets it may overwrite.
        self._stays = {_OVERWRITTEN} if any(overwrites_secret(effect_in(step)) for step in steps) else set[str]()

    def begin(self, steps: Sequence[plan_pb2.Step]) -> None:
        """Set the *steps* of the operation, by number."""
        self.steps = steps

    def summary(self) -> str:
        """The progress in a few words."""
        if self.actions.name:
            return self.actions.summary()
        if self._undo_count is not None:
            return f"undoing {_bar(self._ended, self._undo_count)} {self._ended:,} of {_steps(self._undo_count)}"
        stage = f"{_short(self._stage)} {_bar(self._ended_of_stage, self._stage_size)} " if self._stage else ""
        return f"{stage}{self._ended:,} of {_steps(len(self.steps))}"

    def show(self, event: operation_pb2.OperationEvent) -> None:
        """Show one event; those before the first stage, and the last one, show nothing."""
        self._operation = event.operation_id
        if line := self.actions.line(event):
            self._out.print(Text(*line))
        match event.WhichOneof("event"):
            case "stage_started":
                self._end_stage()
                stage = event.stage_started
                self._stage, self._stage_size, self._ended_of_stage = stage.name, stage.step_count, 0
                self._out.print(Text(f"{stage.name}: {_steps(stage.step_count)}", "bold"))
            case "steps_waiting":
                _show_waiting(self._out, event.steps_waiting)
            case "steps_ended":
                self._ended += len(event.steps_ended.outcomes)
                self._ended_of_stage += len(event.steps_ended.outcomes)
                self._show_outcomes(event.steps_ended.outcomes, undone=False)
            case "rollback_started":
                self._end_stage()
                self._undo_count, self._ended = event.rollback_started.step_count, 0
                if self._undo_count:
                    self._out.print(Text(f"undoing {_steps(self._undo_count)}", "bold red"))
            case "steps_undone":
                self._ended += len(event.steps_undone.outcomes)
                self._show_outcomes(event.steps_undone.outcomes, undone=True)
            case "late_effects":
                _show_late_effects(self._out, event.late_effects)
            case "finished":
                self._end_stage()

    def _end_stage(self) -> None:
        """Show how many steps of a stage ended, where the steps are not shown one by one."""
        if self._stage and self._is_large:
            self._out.print(Text(f"  {self._ended_of_stage:,} of {_steps(self._stage_size)}", "dim"))
        self._stage = ""

    @property
    def _is_large(self) -> bool:
        return len(self.steps) > MOST_STEPS

    def end(self, finished: operation_pb2.Finished) -> str:
        """How an operation ended that did not succeed, and what to do; one sentence, without the cause."""
        match finished.state:
            case operation_pb2.OPERATION_STATE_SUCCEEDED:
                return left_over(finished.leftover_count)
            case operation_pb2.OPERATION_STATE_ROLLED_BACK if self._stays:
                return f"all changes are undone, except for {' and '.join(sorted(self._stays))}"
            case operation_pb2.OPERATION_STATE_ROLLED_BACK if self._undo_count == 0:
                return "no change had to be undone"
            case operation_pb2.OPERATION_STATE_ROLLED_BACK:
                return "all changes are undone"
            case operation_pb2.OPERATION_STATE_BLOCKED:
                problem = "it waits for a decision" if self._undo_count is None else "not all changes could be undone"
                command = f"pkger operations show {self._operation}"
                return f"{problem}: `{command}` lists the causes and the possible decisions"
            case _:
                return "nothing was written"

    def failure(self, finished: operation_pb2.Finished, end: str) -> str:
        """The cause of the failure, if there is one, and the *end* of the operation."""
        return "; ".join(filter(None, (self._cause(finished), end)))

    def _cause(self, finished: operation_pb2.Finished) -> str:
        """The cause, without the reasons that were printed when steps failed."""
        for reason, short in self._reasons.items():
            if finished.cause.startswith(reason):
                return short + finished.cause.removeprefix(reason)
        return finished.cause

    def recall(self, event: operation_pb2.OperationEvent) -> None:
        """Take an event into account that an earlier command has shown."""
        self.actions.line(event)
        if event.HasField("rollback_started"):
            self._undo_count = event.rollback_started.step_count
        if any(outcome.HasField("skipped") for outcome in event.steps_undone.outcomes):
            self._stays.add(_GIVEN_UP)

    def _show_outcomes(self, outcomes: Iterable[operation_pb2.StepOutcome], undone: bool) -> None:
        lines: list[Text] = []
        problems: list[Text] = []
        prefix = "undo " if undone else ""
        for outcome in outcomes:
            step = self.steps[outcome.step]
            line, effect = step_line(step), effect_in(step)
            if overwrites_secret(effect) and outcome.WhichOneof("outcome") in ("done", "unknown"):
                self._stays.add(_OVERWRITTEN)
            match outcome.WhichOneof("outcome"):
                case "done":
                    words = wording(effect)
                    ended = words.undone if undone else words.ended.format(outcome.done.resource_id)
                    lines += [] if self._is_large else [line.append(f"  {ended}", "dim")]
                case "failed":
                    problems.append(line.append(f"  {prefix}failed: {outcome.failed.message}", "red"))
                    self._note(step, outcome.failed.message, "failed")
                case "unknown":
                    problems.append(line.append(f"  {prefix}outcome unknown: {outcome.unknown.message}", "red"))
                    self._note(step, outcome.unknown.message, "has an unknown outcome")
                case _:
                    lines.append(line.append(f"  {prefix}not sent: {outcome.skipped.message}", "yellow"))
                    self._stays |= {_GIVEN_UP} if undone else set()
        print_lines(self._out, lines)
        print_lines(self._err, problems)

    def _note(self, step: plan_pb2.Step, message: str, ended: str) -> None:
        shown = effect_in(step).shown
        self._reasons[f"{shown}: {message}"] = f"{shown} {ended}"


def _short(stage: str) -> str:
    """The name of a stage, shortened to leave room for the rest of the line."""
    first, *others = stage.split(", ")
    return stage if len(stage) <= _SHORT_STAGE else first + and_more(len(others))


def _bar(count: int, of: int) -> str:
    """A progress bar; it is full only when all is done."""
    done = _BAR * count // max(of, 1)
    return f"[{'#' * done}{'.' * (_BAR - done)}]"


def left_over(count: int) -> str:
    """What to do about *count* steps that an operation past its seal left to do."""
    return f"{count:,} left to do: the next apply or uninstall retries"


def _show_waiting(out: Console, waiting: operation_pb2.StepsWaiting) -> None:
    stack = waiting.stack_name or waiting.stack_id
    awaited = f"operation {waiting.operation_id} of stack {stack}"
    out.print(Text(f"  {_steps(len(waiting.steps))} waiting for {awaited}", "yellow"))


def cancel_effect(effect: operation_pb2.CancelEffect.ValueType, operation_id: str) -> str:
    """The effect of a cancellation of the operation *operation_id*, as text after its id."""
    match effect:
        case operation_pb2.CANCEL_EFFECT_SEALED:
            return "cannot roll back: it is past the point after which steps cannot be undone, and runs to its end"
        case operation_pb2.CANCEL_EFFECT_STOPS:
            return "was asked to stop: running phases end, then deferPhases run"
        case operation_pb2.CANCEL_EFFECT_BLOCKED:
            command = f"`pkger operations recover {operation_id}`"
            return f"is blocked: it rolls back, or stops if it is an action set, when {command} resumes it"
        case _:
            return "was asked to roll back"


def _show_late_effects(out: Console, late: operation_pb2.LateEffects) -> None:
    lines = [Text(late.problem, "yellow")] if late.problem else []
    for effect in late.effects:
        lines.append(Text(f"  {effect.key.kind} {effect.key.name} {effect.resource_id}: {effect.message}", "yellow"))
    print_lines(out, lines)


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"
