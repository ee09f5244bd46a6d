"""
An applier without time and network: ``applier_svc/execution/runner.py`` and ``applier_svc/operation/completion.py``.

It makes the moves that the engine decides. It yields at every point where a real process could die: after each write to
the store and to the platform. Dropping the generator simulates a crash.
"""

from collections.abc import Generator, Mapping, Sequence

from services.core.model import OperationKind

# Imported as modules, because the tests of broken rules replace functions in them.
from services.engine import conclusion, progress, scheduler
from services.engine.effects import PutSecret
from services.engine.operation import Direction, OperationState
from services.engine.outcome import Unknown
from services.engine.progress import Progress
from services.engine.scheduler import Block, Finish, LookUp, RetryCreations, RollBack, RunStage, Seal, Undo
from services.engine.step_life import StepRecord
from tests.engine.model_executor import Executor, Order, Points
from tests.engine.model_platform import Line
from tests.engine.model_store import Store


class Applier:
    """
    One process that runs an operation until that ends or the process dies.

    Attributes:
        progress: The progress of the operation.
    """

    def __init__(self, store: Store, line: Line, secrets: Mapping[str, str] | None) -> None:
        """*secrets* are the values that the operation was given; None: it was begun by another applier, which died."""
        store.claim()
        self._store = store
        self._traits = line.platform.traits
        self._secrets = secrets or {}
        if secrets is None:
            self.progress = progress.recovered(
                store.plan, [*store.records.values()], store.sealed, store.rollback_cause
            )
        else:
            self.progress = Progress(store.plan)
        self._executor = Executor(store, line, self.progress, self._secrets)

    def run(self, decided: Sequence[StepRecord] = ()) -> Points:
        """
        Run the rest of the plan, or roll back, and record the end.

        Args:
            decided: The records of decisions about blocked steps.
        """
        yield from self._executor.journal(decided)
        end = yield from self._run()
        if end.state is OperationState.SUCCEEDED and self._store.refuses_success:
            self.progress.cause = "another stack has part of it"
            end = yield from self._run()
        about = conclusion.Conclusion(
            self.progress,
            end,
            OperationKind.APPLY,
            self._store.record.id,
            is_transient=False,
            is_pending=False,
            recorded=self._store.record.resources if conclusion.needs_record(end) else (),
        )
        self._store.finish(end.state, about.change(about.changes))

    def _run(self) -> Generator[str, None, Finish | Block]:
        while True:
            move = scheduler.next_move(self.progress, self._traits, self._store.cancel_requested, self._lost())
            match move:
                case Finish() | Block():
                    return move
                case LookUp(undone, done):
                    yield from self._executor.look_up(undone, Direction.UNDO)
                    yield from self._executor.look_up(done, Direction.DO)
                case RunStage(effects=effects):
                    yield from self._executor.send(effects, Order(Direction.DO, is_stoppable=True))
                case Seal():
                    self._store.seal()
                    self.progress.sealed = True
                    yield "sealed"
                case RetryCreations(cause, stages, lost):
                    self.progress.cause, self.progress.has_retried_creations = cause, True
                    unknown = {effect.number: Unknown("its value is lost") for effect in lost}
                    yield from self._executor.record(unknown, Direction.DO)
                    for effects in stages:
                        yield from self._executor.send(effects, Order(Direction.DO, until_resolved=True))
                case RollBack(cause):
                    self._store.roll_back(cause)
                    self.progress.rollback_cause = cause
                    self.progress.is_undoing = True
                    yield "rolling back"
                case Undo(effects):
                    yield from self._executor.send(effects, Order(Direction.UNDO, until_resolved=True))

    def _lost(self) -> str:
        """Why the operation cannot continue: the value of an unwritten secret is lost. Empty: it can."""
        for effect in self.progress.effects:
            is_unwritten = isinstance(effect, PutSecret) and not self.progress.took_effect(effect.number)
            if is_unwritten and effect.step.key.name not in self._secrets:
                return f"{effect.shown}: its value is lost"
        return ""
