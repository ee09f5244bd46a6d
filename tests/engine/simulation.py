"""
The engine simulated in process: a crash, a fault and a cancellation at every point of an operation.

To learn the engine, read in this order: ``services/engine/step_life.py``, the states of a step;
``services/engine/scheduler.py``, the next move; ``model_applier.py`` and ``model_executor.py`` here, which make the
moves; ``invariants.py``, the rules that always hold. ``model_platform.py`` and ``model_store.py`` hold all state that
survives a crash.
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
"""Limit of the points of an operation; one that reaches it counts as endless."""

NO_FAULTS = Script()


@dataclass(frozen=True)
class Case:
    """
    The faults of one operation.

    Attributes:
        script: The faults of its mutations.
        crashes: The points at which one applier after another dies, each counted from 0 for the applier.
        cancel_at: The point, counted from 0 over all appliers, at which it is cancelled; None: it is not.
        is_refused: Whether the store refuses the inventory of its success.
    """

    script: Script = NO_FAULTS
    crashes: tuple[int, ...] = ()
    cancel_at: int | None = None
    is_refused: bool = False


class Extent(NamedTuple):
    """Number of points, and of sent mutations, of an operation until it ended or was blocked."""

    points: int
    sent: int


class Situation:
    """
    A stack and a platform right before a change.

    Attributes:
        values: The secrets that are given with it, by key.
        first: The content before; each operation works on a copy.
        plan: The plan of the change.
        wanted: The content after the plan.
    """

    def __init__(self, change: str, memory: Memory) -> None:
        self.name = f"{change} on {memory.name}"
        self._change = CHANGES[change]
        self.values = dict.fromkeys(self._change.secrets, "new")
        held = dict.fromkeys(self._change.held_secrets, "old")
        empty = Place(ModelPlatform(memory.traits, secrets=held), ())
        theirs = _applied(empty, self._change.unowned)
        untouched = replace(theirs, entries=(), unowned=frozenset(theirs.platform.live))
        self.first = _applied(untouched, self._change.before)
        self.plan = plan_of(self._change.after, self.first, self.values)
        self.wanted = _carried_out(self.plan, self.first, self.values)
        self._extents: dict[Case, Extent] = {}
        self._continued: list[object] = []

    def extent(self, case: Case) -> Extent:
        """The extent of an operation in *case*."""
        if case not in self._extents:
            self._extents[case] = self.try_out(case)
        return self._extents[case]

    def try_out(self, case: Case) -> Extent:
        """
        Run the operation in *case*, and check all invariants.

        Raises:
            Broken: One does not hold; contains the case and the journal.
        """
        run = Run(self, case)
        try:
            run.drive()
            extent = Extent(run.points, run.line.count)
            run.check_end()
            self._check_next_apply(run.place)
        except Exception as error:
            journal = "\n".join(map(str, run.store.history))
            raise Broken(f"{self.name}, {case}: {error}\n{journal}") from error
        return extent

    def _check_next_apply(self, place: Place) -> None:
        """Check that the next apply reaches the wanted content, and that no step is left after it."""
        if (left := place.shown) in self._continued:
            return
        next_plan = plan_of(self._change.after, place, self.values)
        then = _carried_out(next_plan, place, self.values)
        demand(then.shown == self.wanted.shown, "the next apply does not bring what is wanted", then.shown)
        demand(not plan_of(self._change.after, then).steps, "something is left to do after the next apply")
        self._continued.append(left)


class Run:
    """
    One operation in one case.

    Attributes:
        points: Number of points that its appliers passed.
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
        """The content now."""
        return Place(self._platform, self.store.record.resources, self._situation.first.unowned)

    def drive(self) -> None:
        """Let one applier after another resume the operation, until one ends it."""
        deaths = iter(self._case.crashes)
        while self._dies_at(next(deaths, None)):
            self._has_died = True
            self._applier = Applier(self.store, self.line, None)

    def check_end(self) -> None:
        """Check that state and content at the end of the operation follow the rules."""
        if self.store.state is OperationState.BLOCKED:
            self._resolve_block()
        state, first = self.store.state, self._situation.first
        check_instant(self.store, self._platform, first.unowned)
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
        elif self._tolerates_case:
            done = self._situation.wanted.shown
            demand(state is OperationState.SUCCEEDED and self.place.shown == done, "given up for nothing", state)

    def _dies_at(self, death: int | None, decided: Sequence[StepRecord] = ()) -> bool:
        """Let the applier run to the end of the operation. Returns whether it died at the point *death* before that."""
        for point, _ in enumerate(self._applier.run(decided)):
            demand(point < MOST_POINTS, "the operation goes on for ever")
            check_instant(self.store, self._platform, self._situation.first.unowned)
            if self.points == self._case.cancel_at:
                self.store.cancel_requested, self._was_sealed = True, self.store.sealed
            self.points += 1
            if point == death:
                return True
        return False

    def _resolve_block(self) -> None:
        """Check that the operation may be blocked, and that it ends once there are no more faults."""
        blocked = blocked_steps(self._applier.progress)
        demand(self._may_be_blocked, "blocked by nothing that it could not tolerate")
        demand(bool(blocked) or self._case.is_refused, "blocked by no step")
        self.line.script, self.store.refuses_success = NO_FAULTS, False
        self._applier = Applier(self.store, self.line, None)
        self._dies_at(None)
        if self.store.state is OperationState.BLOCKED:
            # Past the seal a leftover may have the name of a resource to create: a decision is needed.
            blocked = blocked_steps(self._applier.progress)
            demand(self.store.sealed and reason_of(blocked) is BlockedReason.CONFLICT, "blocked for ever", *blocked)
            self._applier = Applier(self.store, self.line, None)
            decisions = [StepDecision(each.step.number, Decision.SKIP) for each in blocked]
            self._dies_at(None, decided_records(decisions, blocked, self._applier.progress))

    @property
    def _tolerates_case(self) -> bool:
        """Whether the case is no reason to roll back: crashes, and one lost request or response."""
        is_refused = self._case.is_refused or self._case.script.refuses
        return not (is_refused or self._loses_values or self._case.cancel_at is not None or self._is_cut_off)

    @property
    def _may_be_blocked(self) -> bool:
        """Whether a fault may also occur during the rollback, or past the seal."""
        script, rolls_back_anyway = self._case.script, self._loses_values or self._case.cancel_at is not None
        goes_wrong = script.faults and (rolls_back_anyway or (script.refuses and self.store.sealed))
        return self._is_cut_off or self._case.is_refused or bool(goes_wrong)

    @property
    def _is_cut_off(self) -> bool:
        return self._case.script.lasting or len(self._case.script.faults) > 1

    @property
    def _loses_values(self) -> bool:
        """Whether the applier died that had the values of secrets."""
        return bool(self._has_died and self._situation.values)


def plan_of(objects: Sequence[Object], place: Place, secrets: Mapping[str, str] | None = None) -> Plan:
    """The plan for the package *objects*; without objects, the plan that uninstalls the stack."""
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
    """The content after a plan without faults."""
    store, platform = Store(_record(place), plan), place.platform.copy()
    for _ in Applier(store, Line(platform, NO_FAULTS), values).run():
        pass
    demand(store.state is OperationState.SUCCEEDED, "it does not even succeed without faults", store.state)
    demand(not any(record.state is not StepState.DONE for record in store.records.values()), "a step is not done")
    return replace(place, platform=platform, entries=store.record.resources)
