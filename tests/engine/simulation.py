"""
The engine tried in process: a crash, a fault and a request to turn back at every point of an operation.

To learn the engine, read in this order: ``services/engine/step_life.py``, how far a step can be;
``services/engine/scheduler.py``, what is done next; ``model_applier.py`` and ``model_executor.py`` here, how that is
done; ``invariants.py``, what always holds. ``model_platform.py`` and ``model_store.py`` are the world around it: what
is in these two outlives a crash, and nothing else does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from planner_svc.matching import kinds_to_list, match
from planner_svc.planning import Remarks, make_plan
from services.core.model import Desired, Object, Package, Plan, StackRecord, Target
from services.engine.decisions import StepDecision, blocked_steps, decided_records, reason_of
from services.engine.operation import BlockedReason, Decision, OperationState
from services.engine.step_life import StepRecord, StepState
from tests.engine.changes import CHANGES
from tests.engine.invariants import Place, check_instant, check_inventory, check_success, check_undo
from tests.engine.model_applier import Applier
from tests.engine.model_platform import Line, Memory, ModelPlatform, Script
from tests.engine.model_store import Broken, Store, demand

MOST_POINTS = 1_000
"""An operation that has not ended by then never does."""

NO_FAULTS = Script()


@dataclass(frozen=True)
class Case:
    """
    What happens to an operation.

    Attributes:
        script: What happens to what it sends.
        crashes: The points at which one applier after another dies, each counted from 0 for the applier.
        cancel_at: The point, counted from 0 over all appliers, at which it is asked to turn back; None: it is not.
        is_refused: Whether the store does not take the inventory of its success.
    """

    script: Script = NO_FAULTS
    crashes: tuple[int, ...] = ()
    cancel_at: int | None = None
    is_refused: bool = False


class Extent(NamedTuple):
    """How many points an operation went through, and how many mutations it sent, before it ended or was blocked."""

    points: int
    sent: int


class Situation:
    """
    A stack and a platform right before a change.

    Attributes:
        values: The secrets that are given with it, by key.
        first: What is there; no operation changes it, each works on a copy.
        plan: The plan of the change.
        wanted: What is there once it is carried out.
    """

    def __init__(self, change: str, memory: Memory) -> None:
        self.name = f"{change} on {memory.name}"
        self._change = CHANGES[change]
        self.values = dict.fromkeys(self._change.secrets, "new")
        held = dict.fromkeys(self._change.held_secrets, "old")
        empty = Place(ModelPlatform(memory.traits, secrets=held), ())
        theirs = _applied(empty, self._change.people)
        untouched = replace(theirs, entries=(), people=frozenset(theirs.platform.live))
        self.first = _applied(untouched, self._change.before)
        self.plan = plan_of(self._change.after, self.first, self.values)
        self.wanted = _carried_out(self.plan, self.first, self.values)
        self._extents: dict[Case, Extent] = {}
        self._continued: list[object] = []

    def extent(self, case: Case) -> Extent:
        """How far an operation goes to which *case* happens."""
        if case not in self._extents:
            self._extents[case] = self.try_out(case)
        return self._extents[case]

    def try_out(self, case: Case) -> Extent:
        """
        Let *case* happen, and see to it that all that has to hold holds.

        Raises:
            Broken: It does not; says in which case, and what the journal has of it.
        """
        run = Run(self, case)
        try:
            run.drive()
            extent = Extent(run.points, run.line.count)
            run.check_end()
            self._check_next_apply(run.place)
        except Exception as error:
            told = "\n".join(map(str, run.store.history))
            raise Broken(f"{self.name}, {case}: {error}\n{told}") from error
        return extent

    def _check_next_apply(self, place: Place) -> None:
        """See to it that the next apply brings what is wanted, and that nothing is left to do then."""
        if (left := place.shown) in self._continued:
            return
        next_plan = plan_of(self._change.after, place, self.values)
        then = _carried_out(next_plan, place, self.values)
        demand(then.shown == self.wanted.shown, "the next apply does not bring what is wanted", then.shown)
        demand(not plan_of(self._change.after, then).steps, "something is left to do after the next apply")
        self._continued.append(left)


class Run:
    """
    One operation to which a case happens.

    Attributes:
        points: How many points its appliers went through.
    """

    def __init__(self, situation: Situation, case: Case) -> None:
        self._situation = situation
        self._case = case
        self._platform = situation.first.platform.copy()
        self.store = Store(_record(situation.first), situation.plan)
        self.store.refuses_success = case.is_refused
        self.line = Line(self._platform, case.script)
        self.points = 0
        self._has_died = False
        self._was_sealed = False
        self._applier = Applier(self.store, self.line, situation.values)

    @property
    def place(self) -> Place:
        """What is there now."""
        return Place(self._platform, self.store.record.resources, self._situation.first.people)

    def drive(self) -> None:
        """Let one applier after another carry the operation on, until one brings it to its end."""
        deaths = iter(self._case.crashes)
        while self._dies_at(next(deaths, None)):
            self._has_died = True
            self._applier = Applier(self.store, self.line, None)

    def check_end(self) -> None:
        """See to it that the operation ended as it has to, and left what it has to."""
        if self.store.state is OperationState.BLOCKED:
            self._look_into_it()
        state, first = self.store.state, self._situation.first
        check_instant(self.store, self._platform, first.people)
        check_inventory(self.place)
        match state:
            case OperationState.SUCCEEDED:
                check_success(self.store, self.place, first, self._situation.wanted)
                demand(self._platform.secrets.items() >= self._situation.values.items(), "a secret is not as given")
            case OperationState.ROLLED_BACK:
                check_undo(self.store, self.place, first)
            case _:
                raise Broken(f"the operation does not end, it is {state}")
        if self.store.cancel_requested:
            demand((state is OperationState.SUCCEEDED) == self._was_sealed, "cancelled, and it is", state)
        elif self._gets_over_it:
            done = self._situation.wanted.shown
            demand(state is OperationState.SUCCEEDED and self.place.shown == done, "given up for nothing", state)

    def _dies_at(self, death: int | None, decided: Sequence[StepRecord] = ()) -> bool:
        """Let the applier work to the end of the operation; whether it dies at the point *death* before that."""
        for point, _ in enumerate(self._applier.run(decided)):
            demand(point < MOST_POINTS, "the operation goes on for ever")
            check_instant(self.store, self._platform, self._situation.first.people)
            if self.points == self._case.cancel_at:
                self.store.cancel_requested, self._was_sealed = True, self.store.sealed
            self.points += 1
            if point == death:
                return True
        return False

    def _look_into_it(self) -> None:
        """The operation may be blocked, and says by what; once all is well, it comes to its end."""
        blocked = blocked_steps(self._applier.progress)
        demand(self._may_be_blocked, "blocked by nothing that it could not get over")
        demand(bool(blocked) or self._case.is_refused, "blocked by no step")
        self.line.script, self.store.refuses_success = NO_FAULTS, False
        self._applier = Applier(self.store, self.line, None)
        self._dies_at(None)
        if self.store.state is OperationState.BLOCKED:
            # Past the seal, what could not be deleted has the name of what is to be created: somebody has to decide.
            blocked = blocked_steps(self._applier.progress)
            demand(self.store.sealed and reason_of(blocked) is BlockedReason.CONFLICT, "blocked for ever", *blocked)
            self._applier = Applier(self.store, self.line, None)
            decisions = [StepDecision(each.step.number, Decision.SKIP) for each in blocked]
            self._dies_at(None, decided_records(decisions, blocked, self._applier.progress))

    @property
    def _gets_over_it(self) -> bool:
        """Whether what happens is no reason to turn back: crashes, and one request or answer that is lost."""
        is_refused = self._case.is_refused or self._case.script.refuses
        return not (is_refused or self._loses_values or self._case.cancel_at is not None or self._is_cut_off)

    @property
    def _may_be_blocked(self) -> bool:
        """Whether something may go wrong on the way back, too, or past the seal."""
        script, turns_back_anyway = self._case.script, self._loses_values or self._case.cancel_at is not None
        goes_wrong = script.faults and (turns_back_anyway or (script.refuses and self.store.sealed))
        return self._is_cut_off or self._case.is_refused or bool(goes_wrong)

    @property
    def _is_cut_off(self) -> bool:
        return self._case.script.lasting or len(self._case.script.faults) > 1

    @property
    def _loses_values(self) -> bool:
        """Whether an applier died that alone knew the values of secrets."""
        return bool(self._has_died and self._situation.values)


def plan_of(objects: Sequence[Object], place: Place, secrets: Mapping[str, str] | None = None) -> Plan:
    """The plan that makes *objects* the package of the stack; none at all: the end of the stack."""
    desired = Desired(Package(tuple(objects)), is_end=not objects, secret_keys=frozenset(secrets or ()))
    record, platform = _record(place), place.platform
    kinds = kinds_to_list(desired, record, platform.traits)
    listed = [resource for resource in platform.live.values() if resource.kind in kinds]
    matching = match(desired, record, listed, platform.traits)
    return make_plan(desired, record, matching, platform.traits, Remarks(), platform.secrets.keys()).plan


def _record(place: Place) -> StackRecord:
    return StackRecord("1", Target(), "stack", 1, place.entries)


def _applied(place: Place, objects: Sequence[Object]) -> Place:
    return _carried_out(plan_of(objects, place), place, {})


def _carried_out(plan: Plan, place: Place, values: Mapping[str, str]) -> Place:
    """What comes of a plan to which nothing happens."""
    store, platform = Store(_record(place), plan), place.platform.copy()
    for _ in Applier(store, Line(platform, NO_FAULTS), values).run():
        pass
    demand(store.state is OperationState.SUCCEEDED, "it does not even succeed when nothing happens", store.state)
    demand(not any(record.state is not StepState.DONE for record in store.records.values()), "a step is not done")
    return replace(place, platform=platform, entries=store.record.resources)
