"""Random calls of appliers that start, die, resume and repeat calls, compared with a model of the guarantees."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2 import StepState
from pkger.model.v1 import operation_pb2
from pkger.model.v1.operation_pb2 import OperationEvent, OperationState
from pkger.model.v1.package_change_pb2 import InstalledPackage, PlannedPackage
from pkger.model.v1.plan_pb2 import OPERATION_KIND_APPLY

from services.core.errors import (
    LeaseLost,
    OperationNotFound,
    OperationUnfinished,
    PkgerError,
    PlanNotFound,
    RequestIdReused,
    RequestInvalid,
    StackLeased,
)
from services.engine import step_state
from services.rpc.claim_parts import joined_claim
from services.system import MachineIds
from stack_svc.journal_servicer import JournalServicer
from stack_svc.rules import journal_replay, operations, packages
from stack_svc.sqlite.store import SqliteStore
from stack_svc.store.operations import Operation
from stack_svc.store.packages import START
from stack_svc.store.store import ReadTransaction, RetentionLimits, Store
from tests.databases import copy_databases
from tests.stack.service import Clock, a_plan, duration, request_key, stage_started
from tests.stack.store.strict import strict

T = TypeVar("T")

SECONDS, STEPS = 10, 4
IN_EFFECT = {"DONE", "UNDO_INTENT", "UNDO_FAILED", "UNDO_UNKNOWN", "KEPT", "UNDO_GIVEN_UP"}
FINISHED = {"SUCCEEDED", "ROLLED_BACK", "FAILED"}
ENDS = {
    "PREPARING": {"FAILED"},
    "APPLYING": {"SUCCEEDED", "ROLLED_BACK", "BLOCKED"},
    "ROLLING_BACK": {"ROLLED_BACK", "BLOCKED"},
}


PLANNED = step_state.StepState.PLANNED
CHANGES = st.dictionaries(st.sampled_from("xyz"), st.sampled_from(["", "1.0.0", "2.0.0"]))
"""Versions of packages after a plan, by name; empty: the package is removed."""


def following(state: step_state.StepState) -> list[step_state.StepState]:
    """The states that may be recorded for a step in *state*, including *state* itself."""
    return sorted({state, *step_state.TRANSITIONS[state].values()})


@dataclass(eq=False)
class Row:
    """
    A stack: its last token, the end of that lease (0: released), whether it exists, whether clients see it, and its
    generation and packages.
    """

    id: str
    active: bool = False
    token: int = 0
    expires: int = 0
    gone: bool = False
    generation: int = 0
    packages: dict[str, str] = field(default_factory=dict)


@dataclass(eq=False)
class Run:
    """An operation, with the id and the content of its request."""

    name: str
    row: Row
    token: int
    request_id: str = ""
    content: str = ""
    state: str = "PREPARING"
    rolling_back: bool = False
    sealed: bool = False
    cancel: bool = False
    steps: dict[int, step_state.StepState] = field(default_factory=dict)
    last_seq: int = 0
    position: int = 0
    is_planned: bool = False
    packages: dict[str, str] = field(default_factory=dict)

    @property
    def plan(self) -> str:
        return self.name.replace("operation", "plan")

    @property
    def done_count(self) -> int:
        return sum(state in IN_EFFECT for state in self.steps.values())

    @property
    def unblocked_state(self) -> str:
        if self.state != "BLOCKED":
            return self.state
        return "ROLLING_BACK" if self.rolling_back else "APPLYING"


class Appliers(RuleBasedStateMachine):
    """Calls the servicer; each result or error must be the one that the model predicts."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = TemporaryDirectory()
        copy_databases(Path(self.folder.name), "stack")
        self.clock = Clock()
        self.runs: list[Run] = []
        self.named: dict[str, Row] = {}
        self.open()

    def open(self) -> None:
        self.store: Store = SqliteStore(Path(self.folder.name) / "stack.db", self.clock)
        self.journal = JournalServicer(self.wrapped(self.store), MachineIds())

    def wrapped(self, store: Store) -> Store:
        return store

    def teardown(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    @rule()
    def restart(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.open()

    @rule()
    def sweep(self) -> None:
        self.loop.run_until_complete(self.store.sweep(RetentionLimits()))
        for run in self.runs:
            if self.is_dead(run):
                run.state = "FAILED"
        for run in self.runs:
            at_work = any(other.row is run.row and other.state not in FINISHED for other in self.runs)
            run.row.gone = run.row.gone or not (run.row.active or at_work)
        self.named = {name: row for name, row in self.named.items() if not row.gone}

    @rule(seconds=st.sampled_from([1, SECONDS, SECONDS + 1]))
    def wait(self, seconds: int) -> None:
        self.clock.forward(seconds)

    @rule(name=st.sampled_from(["a", "b", ""]), request_id=st.sampled_from(["", "", "r-1", "r-2"]))
    def begin(self, name: str, request_id: str) -> None:
        request = journal_pb2.BeginOperationRequest(
            operation_id=f"operation-{len(self.runs)}",
            kind=OPERATION_KIND_APPLY,
            holder="applier",
            ttl=duration(SECONDS),
            create_missing=True,
            request=request_key(request_id, name),
        )
        if name:
            request.stack.name = name
        else:
            request.target.SetInParent()
        row, earlier = self.named.get(name), self.begun_by(request_id)
        error: type[PkgerError] | None = None
        if earlier and earlier.content != name:
            error = RequestIdReused
        elif earlier:
            pass
        elif row and self.held(row):
            error = StackLeased
        elif row and any(run.row is row and run.state not in FINISHED | {"PREPARING"} for run in self.runs):
            error = OperationUnfinished
        answer = self.expect(first_of(self.journal.BeginOperation(request, None)), error)
        if answer is None:
            return
        if earlier:
            assert (answer.operation.id, answer.token) == (earlier.name, 0)
            return
        for run in self.runs:
            # Dead operations on other stacks remain until the next sweep.
            is_in_the_way = run.row is row or bool(request_id and run.request_id == request_id)
            if is_in_the_way and self.is_dead(run):
                run.state = "FAILED"
        row = row or Row(answer.stack.id)
        if name:
            self.named[name] = row
        row.token, row.expires = max(row.token + 1, self.clock.now), self.clock.now + SECONDS * 1_000_000
        assert (answer.stack.id, answer.token) == (row.id, row.token)
        assert answer.is_pending == (bool(name) and not row.active)
        self.runs.append(Run(request.operation_id, row, row.token, request_id, content=name))
        again = self.expect(first_of(self.journal.BeginOperation(request, None)))
        assert again == answer

    def begun_by(self, request_id: str) -> Run | None:
        """The operation that a request began before, unless it ended or died before it started."""
        for run in self.runs:
            if request_id and run.request_id == request_id and run.state != "FAILED" and not self.is_dead(run):
                return run
        return None

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99), versions=CHANGES)
    def plan(self, pick: int, versions: dict[str, str]) -> None:
        run, _ = self.picked(pick, older=False)
        changes = [
            PlannedPackage(name=name, record=InstalledPackage(name=name, version=version) if version else None)
            for name, version in versions.items()
        ]
        plan = a_plan(STEPS, run.name, packages=changes)
        request = journal_pb2.StorePlanRequest(plan=plan, operation_id=run.name)
        error = None if run.state == "PREPARING" else LeaseLost
        if self.expect(self.journal.StorePlan(request, None), error):
            run.is_planned, run.packages = True, versions

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99), older=st.booleans())
    def start(self, pick: int, older: bool) -> None:
        run, token = self.picked(pick, older)
        start = journal_pb2.Start(
            plan_id=run.plan, accepted=OperationEvent(operation_id=run.name, seq=1, accepted=operation_pb2.Accepted())
        )
        request = journal_pb2.AdvanceOperationRequest(operation_id=run.name, token=token, start=start)
        error = self.fence(run, token) or (None if run.is_planned else PlanNotFound)
        if self.expect(self.journal.AdvanceOperation(request, None), error) and not run.last_seq:
            run.state, run.last_seq, run.position = "APPLYING", 1, 1

    @precondition(lambda self: self.runs)
    @rule(
        pick=st.integers(0, 99),
        older=st.sampled_from([False, False, False, True]),
        drawn=st.dictionaries(st.integers(0, STEPS), st.integers(0, 9), max_size=3),
        behind=st.sampled_from([1, 1, 1, 1, 2, -1]),
        first=st.sampled_from([0, 1, 1, 1, 2]),
        count=st.integers(0, 2),
        seal=st.sampled_from([False, False, True]),
        rollback=st.sampled_from([False, False, True]),
        times=st.integers(1, 2),
    )
    def advance(
        self,
        pick: int,
        older: bool,
        drawn: dict[int, int],
        behind: int,
        first: int,
        count: int,
        seal: bool,
        rollback: bool,
        times: int,
    ) -> None:
        run, token = self.picked(pick, older)
        # A number selects one of the states that may follow: an applier writes no other.
        records = {
            n: following(run.steps.get(n, PLANNED))[way % len(following(run.steps.get(n, PLANNED)))]
            for n, way in drawn.items()
        }
        after = {**run.steps, **records}
        seqs = range(run.last_seq + first, run.last_seq + first + count)
        write = journal_pb2.JournalWrite(
            steps=[
                journal_pb2.StepRecord(step=n, state=StepState.Value(f"STEP_STATE_{state}"))
                for n, state in records.items()
            ],
            events=[stage_started(run.name, seq) for seq in seqs],
            seal=seal,
            rollback=rollback,
            cause="it failed" if rollback else "",
            position=run.position + behind,
            done_count=sum(state in IN_EFFECT for n, state in after.items() if n < STEPS),
        )
        request = journal_pb2.AdvanceOperationRequest(operation_id=run.name, token=token, writes=[write])
        error = self.fence(run, token)
        is_impossible = (
            run.state == "PREPARING"
            or ((run.sealed or seal) and (run.rolling_back or rollback))
            or STEPS in records
            or behind != 1
            or (first != 1 and count > 0)
        )
        for _ in range(times):
            answer = self.expect(
                self.journal.AdvanceOperation(request, None), error or (RequestInvalid if is_impossible else None)
            )
            if answer is None:
                return
            assert answer.cancel_requested == run.cancel
            run.sealed, run.rolling_back = run.sealed or seal, run.rolling_back or rollback
            run.state = "ROLLING_BACK" if run.rolling_back else "APPLYING"
            run.steps |= records
            run.position = write.position
            run.last_seq = max(run.last_seq, *seqs) if seqs else run.last_seq

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99), older=st.booleans())
    def renew(self, pick: int, older: bool) -> None:
        run, token = self.picked(pick, older)
        request = journal_pb2.RenewLeaseRequest(operation_id=run.name, token=token, ttl=duration(SECONDS))
        if answer := self.expect(self.journal.RenewLease(request, None), self.fence(run, token)):
            assert answer.cancel_requested == run.cancel
            run.row.expires = self.clock.now + SECONDS * 1_000_000

    @precondition(lambda self: self.runs)
    @rule(
        pick=st.integers(0, 99),
        older=st.sampled_from([False, False, True]),
        state=st.sampled_from(["SUCCEEDED", "ROLLED_BACK", "BLOCKED", "FAILED"]),
        records=st.booleans(),
        times=st.integers(1, 2),
    )
    def finish(self, pick: int, older: bool, state: str, records: bool, times: int) -> None:
        run, token = self.picked(pick, older)
        stackless = run.row not in self.named.values()
        request = journal_pb2.FinishOperationRequest(
            operation_id=run.name,
            token=token,
            position=run.position + 1,
            base_generation=run.row.generation,
            state=OperationState.Value(f"OPERATION_STATE_{state}"),
        )
        if records:
            request.record.SetInParent()
        else:
            request.abandon.SetInParent()
        if run.last_seq:
            finished = operation_pb2.Finished(state=request.state)
            request.finished.CopyFrom(OperationEvent(operation_id=run.name, seq=run.last_seq + 1, finished=finished))
        error = self.fence(run, token)
        is_impossible = (
            state not in ENDS.get(run.unblocked_state, set())
            or (run.sealed and state == "ROLLED_BACK")
            or (records and (state in ("BLOCKED", "FAILED") or stackless))
        )
        answer = self.expect(
            self.journal.FinishOperation(request, None), error or (RequestInvalid if is_impossible else None)
        )
        if answer is None:
            return
        run.state, run.row.expires = state, 0
        run.last_seq += bool(run.last_seq)
        run.position += 1
        if records and state == "SUCCEEDED":
            after = {name: version for name, version in (run.row.packages | run.packages).items() if version}
            run.row.generation += after != run.row.packages
            run.row.packages = after
        if state != "BLOCKED":
            run.row.active = run.row.active or (records and state == "SUCCEEDED")
            run.row.gone = not run.row.active
        self.named = {name: row for name, row in self.named.items() if not row.gone}
        found = self.loop.run_until_complete(self.store.read(lambda tx: tx.stacks.find(run.row.id)))
        assert (found is None) == run.row.gone
        assert answer.generation == (run.row.generation if found else 0)
        assert found is None or (found.record.generation, found.package_count) == (
            run.row.generation,
            len(run.row.packages),
        )
        if times == 2:
            assert self.expect(self.journal.FinishOperation(request, None)) == answer

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99))
    def claim(self, pick: int) -> None:
        run, _ = self.picked(pick, older=False)
        error: type[PkgerError] | None = None
        if run.state in FINISHED:
            error = OperationNotFound
        elif self.held(run.row):
            error = StackLeased
        request = journal_pb2.ClaimOperationRequest(operation_id=run.name, holder="heir", ttl=duration(SECONDS))
        answer = self.expect(joined_claim(self.journal.ClaimOperation(request, None)), error)
        if answer is None:
            return
        run.row.token = max(run.row.token + 1, self.clock.now)
        run.row.expires = self.clock.now + SECONDS * 1_000_000
        run.token = run.row.token
        assert (answer.token, answer.last_seq, answer.sealed) == (run.token, run.last_seq, run.sealed)
        assert answer.position == run.position
        assert answer.cancel_requested == run.cancel
        assert answer.operation.plan_id == (run.plan if run.is_planned else "")

    @precondition(lambda self: self.runs)
    @rule(pick=st.integers(0, 99))
    def cancel(self, pick: int) -> None:
        run, _ = self.picked(pick, older=False)
        request = journal_pb2.RequestCancelRequest(operation_id=run.name)
        error = OperationNotFound if run.state in FINISHED else None
        if self.expect(self.journal.RequestCancel(request, None), error):
            run.cancel = True

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        names = [run.name for run in self.runs]
        found = self.loop.run_until_complete(self.store.read(lambda tx: [_read(tx, name) for name in names]))
        for run, (stored, known, seqs) in zip(self.runs, found, strict=True):
            assert (stored.state, stored.token, stored.last_seq) == (run.state, run.token, run.last_seq)
            assert (stored.sealed, stored.rolling_back, stored.cancel_requested) == (
                run.sealed,
                run.rolling_back,
                run.cancel,
            )
            assert known == run.steps
            assert (stored.done_count, stored.position) == (run.done_count, run.position)
            assert seqs == list(range(1, run.last_seq + 1))

    @invariant()
    def a_stack_has_one_unfinished_operation_at_most_and_is_not_removed_meanwhile(self) -> None:
        unfinished = [run.row for run in self.runs if run.state not in FINISHED]
        assert len({row.id for row in unfinished}) == len(unfinished)
        found = self.loop.run_until_complete(self.store.read(lambda tx: [tx.stacks.find(row.id) for row in unfinished]))
        assert None not in found

    @invariant()
    def stacks_have_the_packages_of_operations_that_succeeded(self) -> None:
        rows = list({run.row.id: run.row for run in self.runs}.values())
        stored = self.loop.run_until_complete(self.store.read(lambda tx: [_packages(tx, row.id) for row in rows]))
        assert stored == [{} if row.gone else row.packages for row in rows]

    @invariant()
    def running_operations_with_a_free_lease_are_abandoned(self) -> None:
        request = journal_pb2.ListAbandonedOperationsRequest()
        answer = self.loop.run_until_complete(self.journal.ListAbandonedOperations(request, None))
        assert set(answer.operation_ids) == {
            run.name for run in self.runs if run.state not in FINISHED | {"BLOCKED"} and not self.held(run.row)
        }

    def is_dead(self, run: Run) -> bool:
        """Whether an operation sent nothing, and its lease is free."""
        return run.state == "PREPARING" and not self.held(run.row)

    def held(self, row: Row) -> bool:
        return row.expires >= self.clock.now

    def picked(self, pick: int, older: bool) -> tuple[Run, int]:
        """Pick an operation, recent ones more often, and its token or an older one."""
        run = self.runs[-1 - pick % min(len(self.runs), 5)]
        return run, run.token - older

    def fence(self, run: Run, token: int) -> type[PkgerError] | None:
        is_current = token == run.token == run.row.token and self.held(run.row) and not run.row.gone
        return None if is_current else LeaseLost

    def expect(self, call: Awaitable[T], error: type[PkgerError] | None = None) -> T | None:
        """The response of a call; None when it fails with *error*, as expected."""
        answer, raised = self.attempt(call)
        assert type(raised) is (error or type(None)), raised
        return answer

    def attempt(self, call: Awaitable[T]) -> tuple[T | None, PkgerError | None]:
        async def made() -> T:
            return await call

        try:
            return self.loop.run_until_complete(made()), None
        except PkgerError as error:
            return None, error


async def first_of(answers: AsyncIterator[T]) -> T:
    """The only message of a stream."""
    [answer] = [answer async for answer in answers]
    return answer


def _packages(reading: ReadTransaction, stack: str) -> dict[str, str]:
    return {package.name: package.version.text for package in reading.packages.page(stack, START, packages.ALL)}


def _read(reading: ReadTransaction, name: str) -> tuple[Operation, dict[int, str], Iterable[int]]:
    operation, rows = operations.existing(reading, name), reading.journal.rows(name)
    known = {record.step: record.state.value for record in journal_replay.steps_of(rows, operation.step_count)}
    events, _ = journal_replay.events_after(rows, False, 0, 1 << 20)
    return operation, known, [event.seq for event in events]


TestAppliers = pytest.mark.faults(Appliers.TestCase)
TestAppliers.settings = settings(stateful_step_count=30)


class StrictAppliers(Appliers):
    """The same on a store that enforces the protocol."""

    def wrapped(self, store: Store) -> Store:
        return strict(store)


TestStrictAppliers = StrictAppliers.TestCase
TestStrictAppliers.settings = TestAppliers.settings
