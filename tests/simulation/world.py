"""The simulated machines: nodes that start, die and start again, with their files and clocks (docs/simulation.md)."""

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import applier_svc.__main__ as applier
import parser_svc.__main__ as parser
import planner_svc.__main__ as planner
import stack_svc.__main__ as stack
from applier_svc import failpoints
from services.drivers.embedded.driver import EmbeddedDriver
from services.drivers.servicer import SERVICES as DRIVER_SERVICES
from services.drivers.servicer import register as register_driver
from services.rpc.client import Peer
from services.rpc.dispatcher import Dispatcher
from services.rpc.process import Service
from services.settings import Settings
from services.system import Clock
from tests.simulation.draws import DrawnIds, Draws
from tests.simulation.faults import BY_FEATURE, Faults
from tests.simulation.loop import NODE, Node, SimulatedLoop
from tests.simulation.network import SimulatedNetwork, Watcher
from tests.simulation.package_pool import write_pool
from tests.simulation.platforms import NamedFaults, SimulatedPlatform
from tests.simulation.scenario import IN_FLIGHT, PACKAGE_STACK, SERVERS, Crash, Jump, Scenario
from tests.simulation.stores import RefusingDispatcher
from tests.simulation.trace import Trace

EPOCH = 1_800_000_000_000_000
"""When a run begins, in microseconds since 1970."""

STORE_FILE, PLATFORM_FILE = "stack.db", "platform.db"

_BACKUP = "backup.db"

_RESTORE_SECONDS = 0.5
"""Downtime of the store for a restore."""


class World:
    """
    All nodes of one run.

    Attributes:
        scenario: What the run consists of.
        draws: Its random draws.
        loop: Runs the nodes.
        trace: The trace of the run.
        faults: Decides about the faults of calls.
        network: Connects the nodes.
        nodes: The nodes that run now, by name.
        skews: Seconds by which the wall clock of a node is ahead, by name.
        data: Folder of the databases.
        repository: Folder of the published packages; there is none without a stack for packages.
        is_calm: Whether all faults have stopped.
        on_kill: Called with the name of a node that is about to be killed.
        on_jump: Called when a clock is set.
        on_restore: Called after the file of the store was replaced by the backup.
    """

    def __init__(self, scenario: Scenario, folder: Path, template: Path) -> None:
        """*template* is a folder with empty databases that have their schema; the run copies them into *folder*."""
        self.scenario = scenario
        self.draws = Draws(scenario.seed)
        self.loop = SimulatedLoop(self.draws)
        self.trace = Trace(lambda: (self.loop.now, self.loop.points))
        kinds = [fault for feature in scenario.features for fault in BY_FEATURE.get(feature, ())]
        self.faults = Faults(self.draws, kinds, scenario.faults)
        self.nodes: dict[str, Node] = {}
        self.skews: dict[str, float] = {}
        self.is_calm = False
        self.on_kill: Callable[[str], None] = lambda name: None
        self.on_jump: Callable[[Jump], None] = lambda jump: None
        self.on_restore: Callable[[], None] = lambda: None
        self.data = folder / "0"
        shutil.copytree(template, self.data)
        self.appliers = tuple(f"applier{number}" for number in range(scenario.appliers))
        self._incarnations: dict[str, int] = {}
        self._ran: dict[str, int] = {}
        self._arrivals: dict[tuple[str, str], int] = {}
        self._refused: dict[str, bool] = {}
        self._named = NamedFaults(scenario.mutation_faults)
        self._finished: dict[str, None] = {}
        self._crashes = list(scenario.crashes)
        self._home = folder / "home"
        self._home.mkdir()
        self.repository = self._home / "repository"
        if any(client.stack == PACKAGE_STACK for client in scenario.clients):
            write_pool(self.repository)
        self._has_backup = False
        # A node for work that belongs to no process.
        self._sky = Node("sky")
        self.loop.nodes.append(self._sky)

    def open(self, watcher: Watcher) -> None:
        """Start all servers; *watcher* sees all messages."""
        settle = min(10.0, self.scenario.lease / 3)
        self.network = SimulatedNetwork(self.loop, self.draws, self.faults, self.trace, watcher, settle)
        self.network.fences = self.scenario.platform.fences
        self.network.very_late = "very_late" in self.scenario.features
        self.network.on_write = self._wrote
        self.loop.before = self._before_callback
        failpoints.install(self._reached)
        self.loop.on_error = self._defect
        for name in (*SERVERS, *self.appliers):
            self.start(name)
        for jump in self.scenario.jumps:
            self.loop.call_at(jump.at, self.jump, jump, context=self._sky.context)

    def clock(self, name: str) -> int:
        """The wall clock of a node, in microseconds since 1970."""
        return EPOCH + round((self.loop.now + self.skews.get(name, 0.0)) * 1_000_000)

    def jump(self, jump: Jump) -> None:
        """Set the wall clock of a node, unless all faults have stopped."""
        if self.is_calm:
            return
        self.trace.count("clock jumps")
        self.on_jump(jump)
        self.trace.say(jump.node, f"has its clock set by {jump.seconds:.0f} s")
        self.skews[jump.node] = self.skews.get(jump.node, 0.0) + jump.seconds

    def start(self, name: str) -> None:
        """Start a process of *name*, unless one runs."""
        if name in self.nodes:
            return
        self._incarnations[name] = self._incarnations.get(name, 0) + 1
        node = self.nodes[name] = Node(name, self._incarnations[name])
        self.loop.nodes.append(node)
        self.trace.say(name, f"starts, incarnation {node.incarnation}")
        self.spawn(node, self._serve(name))

    def actor(self, name: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run *work* as a process that is never killed."""
        node = Node(name)
        self.loop.nodes.append(node)
        return self.spawn(node, work)

    def spawn(self, node: Node, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run *work* on *node*; an exception that it raises is a defect."""
        task = self.loop.create_task(work, context=node.context.copy())
        task.add_done_callback(self._ended, context=node.context)
        return task

    def peer(self, address: str, actor: str) -> Peer:
        """A connection of the running node to a server."""
        return Peer(address, address, connect=self.network.connect, ids=DrawnIds(self.draws, actor))

    def kill(self, name: str, down: float) -> None:
        """Kill the process of *name*, which starts again after *down* seconds."""
        if name not in self.nodes:
            return
        self.on_kill(name)
        node = self.nodes.pop(name)
        self.trace.say(name, f"is killed, for {down:.3f} s")
        self.loop.bury(node)
        self.network.bury(node)
        self.loop.call_later(down, self.start, name, context=self._sky.context)

    def back_up(self) -> None:
        """Back up the store, replacing an earlier backup."""
        self.trace.say("stack", "is backed up")
        self._has_backup = True
        with (
            contextlib.closing(sqlite3.connect(self.data / STORE_FILE)) as live,
            contextlib.closing(sqlite3.connect(self._home / _BACKUP)) as copy,
        ):
            live.backup(copy)

    def restore(self) -> None:
        """Restore the store from its last backup and restart it; does nothing without a backup."""
        if not self._has_backup or self.is_calm:
            return
        self.kill("stack", _RESTORE_SECONDS)
        self.trace.say("stack", "is restored")
        for path in self.data.glob(f"{STORE_FILE}*"):
            path.unlink()
        shutil.copy(self._home / _BACKUP, self.data / STORE_FILE)
        self.on_restore()

    def calm(self) -> None:
        """All faults stop, and all nodes run."""
        self.trace.say("world", "all faults stop")
        self.is_calm = True
        self.faults.is_over = True
        self._crashes.clear()
        for node in self.loop.nodes:
            node.stopped_until = min(node.stopped_until, self.loop.now)
        for name in (*SERVERS, *self.appliers):
            self.start(name)

    def _settings(self, name: str) -> Settings:
        addresses = {server: server for server in (*SERVERS, "applier")}
        return Settings(
            addresses,
            self.data,
            self._home,
            self._home,
            lease=self.scenario.lease,
            holder=name,
            repository_folders=(self._home,),
        )

    async def _serve(self, name: str) -> None:
        ids = DrawnIds(self.draws, name)
        async with AsyncExitStack() as stack_:
            service = await stack_.enter_async_context(self._opened(name, ids))
            clock = partial(self.clock, name)
            if name == "stack" and self.scenario.refused_record:
                dispatcher: Dispatcher = RefusingDispatcher(service.register, clock, ids, self._refuses_record)
            else:
                dispatcher = Dispatcher(service.register, clock, ids)
            self.network.serve(name, dispatcher)
            await self.loop.create_future()

    def _opened(self, name: str, ids: DrawnIds) -> Any:
        settings, clock, connect = self._settings(name), partial(self.clock, name), self.network.connect
        match name:
            case "stack":
                return stack.opened(settings, clock, ids)
            case "platform":
                return self._platform_opened(ids, clock)
            case "parser":
                return parser.opened(settings)
            case "planner":
                return planner.opened(settings, connect, ids)
            case _:
                return applier.opened(settings, connect=connect, clock=clock, ids=ids)

    @asynccontextmanager
    async def _platform_opened(self, ids: DrawnIds, clock: Clock) -> AsyncIterator[Service]:
        embedded = EmbeddedDriver(self.data / PLATFORM_FILE, ids, clock)
        driver = SimulatedPlatform(
            embedded, self.scenario.platform, self.draws, self._refused, self._named, lambda: self.is_calm, self.trace
        )
        yield Service([register_driver(driver)], DRIVER_SERVICES)

    def _refuses_record(self, operation: str) -> bool:
        """Whether the store refuses to record the success of *operation*, which ends now."""
        self._finished.setdefault(operation, None)
        number = list(self._finished).index(operation) + 1
        is_refused = number == self.scenario.refused_record and not self.is_calm
        if is_refused:
            self.trace.say("stack", f"refuses a success of {operation}")
            self.trace.count("a success is refused")
        return is_refused

    def _before_callback(self, node: Node) -> None:
        ran = self._ran[node.name] = self._ran.get(node.name, 0) + 1
        for crash in self._crashes:
            if crash.node == node.name and crash.at == ran:
                self._crash(crash, node)

    def _reached(self, failpoint: str) -> None:
        node = NODE.get()
        if node.is_dead:
            return
        self.trace.count(f"failpoint {failpoint}")
        place = (node.name, failpoint)
        nth = self._arrivals[place] = self._arrivals.get(place, 0) + 1
        self.trace.say(node.name, f"reaches {failpoint} {nth}")
        for crash in list(self._crashes):
            if (crash.node, crash.failpoint, crash.nth) == (*place, nth):
                if not crash.is_stop:
                    self.trace.count("kill applier")
                    self.trace.count(f"kill applier at {failpoint}")
                    self.kill(node.name, crash.seconds)
                    return
                self.trace.count("stop applier")
                self.trace.count("stop inside a callback")
                self.trace.say(node.name, f"stands still at {failpoint} for {crash.seconds:.3f} s")
                self.loop.stand_still(crash.seconds)

    def _wrote(self, node: Node) -> None:
        """*node* has sent a write: kill the node before the write arrives, if the scenario says so."""
        place = (node.name, IN_FLIGHT)
        nth = self._arrivals[place] = self._arrivals.get(place, 0) + 1
        for crash in self._crashes:
            if (crash.node, crash.failpoint, crash.nth) == (*place, nth):
                self.trace.count("kill with a write in flight")
                self.loop.call_soon(self.kill, node.name, crash.seconds, context=self._sky.context)

    def _crash(self, crash: Crash, node: Node) -> None:
        self.trace.count(f"{'stop' if crash.is_stop else 'kill'} {node.name.rstrip('0123456789')}")
        if crash.is_stop:
            self.trace.say(node.name, f"stands still for {crash.seconds:.3f} s")
            node.stopped_until = self.loop.now + crash.seconds
        else:
            self.kill(node.name, crash.seconds)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self._defect(f"{NODE.get().name}: {error!r}")

    def _defect(self, problem: str) -> None:
        self.trace.violate("DEFECT", problem)
