"""One run from its scenario to its result, in a process of its own."""

import asyncio
import gc
import logging
import os
import pickle
import signal
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.actors import Person, StackClient
from tests.simulation.ends import Ends
from tests.simulation.loop import MOST_POINTS, NODE, Endless
from tests.simulation.oracle import Oracle
from tests.simulation.scenario import Scenario
from tests.simulation.world import World

LONGEST_STORM = 1800.0
"""Virtual seconds after which all faults stop, even if clients have not finished."""


class HarnessBroken(Exception):
    """The simulation itself failed, and not what it simulates; the message is a traceback."""


@dataclass(frozen=True, slots=True)
class Result:
    """
    The result of one run.

    Attributes:
        scenario: The run.
        digest: Hash of its trace.
        violations: The first problem of each kind.
        points: Scheduling points.
        seconds: Virtual time.
        operations: How many operations began.
        counts: How often each situation was reached, by name.
        lines: The trace.
        faults: Faults that calls met, by call.
    """

    scenario: Scenario
    digest: str
    violations: dict[str, str]
    points: int
    seconds: float
    operations: int
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)


def run(scenario: Scenario, template: Path) -> Result:
    """
    Run *scenario* in a child process, so that it cannot affect the next run.

    Args:
        scenario: The run.
        template: Folder with empty databases (``search.template``).

    Raises:
        HarnessBroken: The simulation failed.
    """
    # Ctrl-C waits for the end of the run: neither process may leave the other, or its databases, behind.
    unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        answer = _answer_of_child(scenario, template)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
    result = pickle.loads(answer) if answer else "the process of the run died"
    if isinstance(result, str):
        raise HarnessBroken(f"seed {scenario.seed}: {result}")
    assert isinstance(result, Result)
    return result


def _answer_of_child(scenario: Scenario, template: Path) -> bytes:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                _answer(scenario, template, pipe)
        finally:
            # Exit without finalisers: those of killed nodes must not run, nor those of objects of the parent.
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def _answer(scenario: Scenario, template: Path, pipe: "object") -> None:
    gc.disable()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    try:
        with tempfile.TemporaryDirectory(dir=memory, ignore_cleanup_errors=True) as folder:
            answer: Result | str = simulated(scenario, Path(folder), template)
    except BaseException:
        answer = traceback.format_exc()
    pickle.dump(answer, pipe)  # type: ignore[arg-type]
    pipe.flush()  # type: ignore[attr-defined]


def simulated(scenario: Scenario, folder: Path, template: Path) -> Result:
    """Run *scenario* in this process, with its databases in *folder*."""
    world = World(scenario, folder, template)
    oracle = Oracle(world)
    _log_to(world)
    is_over = False

    async def direct() -> None:
        nonlocal is_over
        world.open(oracle)
        clients = {client: StackClient(world, client) for client in scenario.clients}
        tasks = [world.actor(f"client {client.stack}{client.rival}", asked.work()) for client, asked in clients.items()]
        tasks.append(world.actor("person", Person(world).work()))
        _, still_working = await asyncio.wait(tasks, timeout=LONGEST_STORM)
        world.calm()
        for task in still_working:
            # It would begin operations between the checks of the end.
            task.cancel()
        await Ends(world, oracle, clients).judge()
        is_over = True

    world.actor("world", direct())
    try:
        world.loop.run_until(lambda: is_over)
    except Endless:
        world.trace.violate("ENDLESS", f"the run takes more than {MOST_POINTS:,} scheduling points")
    trace = world.trace
    if not is_over and not trace.violations:
        trace.violate("ENDLESS", "nothing can run any more, and the run is not over")
    return Result(
        scenario,
        trace.digest(),
        trace.violations,
        world.loop.points,
        world.loop.now,
        len(oracle.store.operations),
        trace.counts,
        trace.lines,
        world.faults.met,
    )


class _Defects(logging.Handler):
    """Counts what services log as errors of their own."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.ERROR)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        node = NODE.get(None)
        if node and node.is_dead:
            return
        error = record.exc_info[1] if record.exc_info else getattr(record, "trace", "")
        self._world.trace.violate("DEFECT", f"{node.name if node else '?'} logs {record.getMessage()!r}: {error!r}")


def _log_to(world: World) -> None:
    for name in ("pkger", "asyncio"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.ERROR)
        logger.propagate = False
        logger.handlers[:] = [_Defects(world)]
