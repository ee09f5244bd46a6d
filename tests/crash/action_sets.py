"""A backup of a stack, its restore and its deletion by action sets whose appliers die, and what holds at their end."""

import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pkger.journal.v1 import journal_pb2
from pkger.journal.v1.journal_pb2_grpc import JournalServiceStub
from pkger.model.v1 import action_pb2, operation_pb2
from pkger.stack.v1 import snapshot_pb2
from pkger.stack.v1.snapshot_pb2_grpc import SnapshotServiceStub

from applier_svc.failpoints import STATUS
from services.core.errors import PkgerError, Reason
from services.rpc.snapshot_reading import read_snapshot
from services.settings import STACK_DATABASE
from tests.action_applier import FILE as NOTES
from tests.action_applier import notes
from tests.action_sets.test_backups import example
from tests.action_sets.world import World, action_set, do, outputs, states
from tests.applier.world import BLOCKED, OVER, SUCCEEDED, Case, Content
from tests.cluster import Cluster
from tests.crash.recording import writes
from tests.crash.world import Crashing, crashing

PARTS = ("backup", "restore", "delete")
"""The action sets, in order; each but the first one is made from ``backup``."""

_CUT_OFF = (Reason.SERVICE_UNAVAILABLE, Reason.LEASE_LOST, Reason.TOKEN_STALE)
"""Errors after which the retry of a request gets its outcome."""

_FOLDER_OF_TEMPORARY_FILES = "tmp"


def definitions() -> dict[str, Any]:
    """The blueprint of the examples, with a deferPhase in each action, and a backup that reserves its stack."""
    document = example()
    actions = document["spec"]["actions"]
    for action in actions.values():
        action["deferPhase"] = do("after", func="Note")
    actions["backup"]["lock"] = True
    return document


@dataclass(frozen=True)
class End:
    """
    What is left when an action set has ended, without ids and times.

    Attributes:
        state: Its state.
        phases: The state and the attempt of each phase, by its name.
        outputs: The outputs of each phase, by its name.
        artifacts: Its artifacts.
        content: The content of the platform.
        recorded: The record of the stack.
        changes: How many changes of each kind its operation made that succeeded.
        snapshots: How many snapshots there are.
    """

    state: str
    phases: dict[str, tuple[int, int]]
    outputs: dict[str, Any]
    artifacts: dict[str, Any]
    content: Content
    recorded: Any
    changes: dict[str, int]
    snapshots: int


@dataclass
class Chain:
    """
    The action sets of one stack in an organization of its own.

    Attributes:
        world: The services.
        folder: Their folder.
        case: The stack.
        deaths: How often its appliers have died.
    """

    world: Crashing
    folder: Path
    case: Case
    deaths: int = 0

    def seen_by(self, services: Cluster | None = None) -> World:
        """The services, as a client of one of the appliers sees them."""
        return World(services or self.world.services, None)  # type: ignore[arg-type]

    def request(self, part: str, **spec: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The definitions of a request for *part*."""
        name = f"{part}-{self.case.org}"
        if part == "backup":
            stack = {"kind": "Stack", "name": self.case.stack, "target": {"org": self.case.org}}
            return definitions(), action_set({"name": part, "blueprint": "stack-backup", "object": stack}, name=name)
        source = {"actionSet": f"backup-{self.case.org}", "action": part}
        return definitions(), action_set(**{"from": source, "name": name, **spec})

    async def answer(self, part: str, services: Cluster | None = None, **more: Any) -> action_pb2.ActionSet | None:
        """
        Run *part* to its end, with *more* fields of its request; None: its applier did not answer.

        The request of one part is the same each time.
        """
        here = self.seen_by(services)
        try:
            created = await here.create(*self.request(part), request_id=f"{part}/{self.case.org}", **more)
            await here.events(created.operation_id)
            return await here.get(created.name)
        except PkgerError as error:
            if error.reason not in _CUT_OFF:
                raise
            return None

    async def run(self, part: str, failpoints: Sequence[str] = (), **more: Any) -> action_pb2.ActionSet:
        """Run *part* with one applier after the other: each dies at its failpoint, the last one has none."""
        for failpoint in failpoints:
            await self.world.applier(failpoint)
            if await self.answer(part, **more):
                await self.world.processes.kill("applier")
            else:
                assert await self.world.processes.died("applier") == STATUS
                self.deaths += 1
        await self.world.applier()
        done = await self.ended(part, **more)
        await self.quiet()
        return done

    async def ended(self, part: str, services: Cluster | None = None, **more: Any) -> action_pb2.ActionSet:
        """The end of *part*, from an applier that does not die."""
        while not (done := await self.answer(part, services, **more)):
            pass
        return done

    async def interrupted(self, count: int) -> None:
        """Wait until the newest action set has recorded as many interruptions."""
        newest = next(each for each in await self.operations() if each.action_set)
        async for event in self.case.watch(newest.id):
            count -= event.HasField("phase_retrying")
            if not count:
                return

    async def quiet(self) -> None:
        """Wait until all operations have ended."""
        for each in await self.operations():
            if each.state not in OVER:
                async for _ in self.case.watch(each.id):
                    pass

    async def operations(self) -> list[operation_pb2.Operation]:
        """All operations, the newest first."""
        store, request = self.world.services.peers["stack"], journal_pb2.ListOperationsRequest(page_size=500)
        return list((await store.call(JournalServiceStub(store.channel).ListOperations, request)).operations)

    async def snapshots(self) -> list[str]:
        """The ids of the snapshots that are not deleted, each of which is whole."""
        store = self.world.services.peers["stack"]
        request = snapshot_pb2.ListSnapshotsRequest(page_size=500)
        found = (await store.call(SnapshotServiceStub(store.channel).ListSnapshots, request)).snapshots
        for each in found:
            await read_snapshot(store, each.id)
        return [each.id for each in found if each.action_set.endswith(self.case.org)]

    async def end(self, done: action_pb2.ActionSet) -> End:
        """What is left of an action set that has ended."""
        look = await self.case.look()
        assert set(look.recorded.values()) == look.ids
        succeeded = {each.id for each in await self.operations() if each.state == SUCCEEDED}
        changed = {
            (each.verb, each.id, each.label)
            for each in writes(self.folder)
            if each.operation in succeeded & set(await self.children(done)) and each.verb
        }
        [action] = done.actions
        return End(
            action_pb2.ActionSetState.Name(done.state),
            {each.name: (each.state, each.attempt) for each in (*action.phases, action.defer_phase)},
            {phase: _without_ids(of_phase) for phase, of_phase in outputs(done).items()},
            {each.name: _without_ids(dict(each.values)) for each in action.artifacts},
            look.content,
            look.recorded_content,
            dict(Counter(verb for verb, _, _ in changed)),
            len(await self.snapshots()),
        )

    async def children(self, done: action_pb2.ActionSet) -> list[str]:
        """The operations that phases of an action set began."""
        return [each.id for each in await self.operations() if each.parent == done.operation_id]

    async def check(self, done: action_pb2.ActionSet) -> None:
        """Check what holds of every action set that has ended, and that nothing is left behind."""
        operations = {each.id: each for each in await self.operations()}
        assert {each.state for each in operations.values()} <= set(OVER) - {BLOCKED} | {
            operation_pb2.OPERATION_STATE_CANCELLED
        }
        children = [operations[each] for each in await self.children(done)]
        assert sum(each.state == SUCCEEDED for each in children) <= 1
        events = [event async for event in self.case.watch(done.operation_id)]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert [event.HasField("finished") for event in events] == [*[False] * (len(events) - 1), True]
        ended = [event.phase_ended for event in events if event.HasField("phase_ended")]
        assert len({each.phase.index for each in ended}) == len(ended)
        last = {each.phase.phase: action_pb2.PhaseState.Name(each.state) for each in ended}
        assert last == {
            name.partition("/")[2]: f"PHASE_STATE_{state}"
            for name, state in states(done).items()
            if name.partition("/")[2] in last
        }
        mine = [(step, key) for step, key in notes(self.folder) if key.startswith(done.operation_id)]
        assert {key.rpartition("/")[0] for step, key in mine if step == "after"} == {f"{done.operation_id}/0/-1"}
        check_nothing_left(self.folder)


def check_nothing_left(folder: Path) -> None:
    """Check that no reservation, no part of a snapshot and no temporary file is left."""
    with closing(sqlite3.connect(f"file:{folder / STACK_DATABASE}?mode=ro", uri=True)) as store:
        for rows in (
            "reservations",
            "attachments WHERE NOT is_complete",
            "snapshot_contents WHERE digest NOT IN (SELECT digest FROM attachments)",
            "snapshots WHERE id NOT IN (SELECT snapshot FROM snapshot_contents) AND delete_time IS NULL",
        ):
            assert store.execute(f"SELECT count(*) FROM {rows}").fetchone() == (0,), rows
    assert list((folder / _FOLDER_OF_TEMPORARY_FILES).iterdir()) == []
    databases = {f"{name}{suffix}" for name in ("stack.db", "platform.db") for suffix in ("", "-wal", "-shm")}
    others = {each.name for each in folder.iterdir() if each.suffix not in (".log", ".sock", ".lock")} - databases
    assert others <= {_FOLDER_OF_TEMPORARY_FILES, "refused", NOTES}, others


def _without_ids(texts: dict[str, Any]) -> dict[str, Any]:
    """Outputs or an artifact with placeholders for what differs between two runs."""
    return {key: "(id)" if key in ("snapshot", "operation", "takenAt") else text for key, text in texts.items()}


@asynccontextmanager
async def chains(folder: Path, platform: str = "tests.crash.recording") -> AsyncIterator[Crashing]:
    """Run services whose applier has functions that write down their calls."""
    temporary = folder / _FOLDER_OF_TEMPORARY_FILES
    temporary.mkdir()
    modules = {"applier": "tests.action_applier", "platform": platform}
    async with crashing(folder, modules=modules, variables={"TMPDIR": str(temporary)}) as world:
        yield world
