"""An event loop with virtual time, on which the processes of a simulation take turns."""

import asyncio
import contextvars
import heapq
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, ContextVar
from itertools import count
from typing import Any, cast

from tests.simulation.draws import Draws

CALLBACK_SECONDS = 0.000_01
"""Virtual duration of one callback (docs/simulation.md)."""

MOST_POINTS = 400_000
"""Number of callbacks after which a run counts as endless."""


class Endless(BaseException):
    """The run has taken more scheduling points than any run that ends."""


class Node:
    """
    One incarnation of one simulated process.

    Attributes:
        name: Name of the process, such as "applier0".
        incarnation: 1 for the first process of that name.
        ready: Callbacks that asyncio would run next, in its order.
        context: The context in which others start work of this node; its ``NODE`` is this node.
        is_dead: It was killed; none of its callbacks runs.
        is_busy: One of its callbacks is running, or is stopped in the middle.
        stopped_until: The time until which it does not run.
        kept: References to the objects of a dead node, so that none of them is finalised.
    """

    def __init__(self, name: str, incarnation: int = 1) -> None:
        self.name = name
        self.incarnation = incarnation
        self.ready: deque[asyncio.Handle] = deque()
        self.is_dead = False
        self.is_busy = False
        self.stopped_until = 0.0
        self.kept: list[object] = []
        self.context = Context()
        self.context.run(NODE.set, self)


NODE: ContextVar[Node] = ContextVar("simulated_node")
"""The node that a callback belongs to. Tasks, timers and futures inherit it, so no code of a service knows of nodes."""


class SimulatedLoop:
    """
    The part of an event loop that asyncio needs, without files and sockets.

    It runs the callbacks of one node in the order of asyncio; the seed picks the node that runs next.

    Attributes:
        now: Virtual time in seconds.
        points: Callbacks run so far.
        nodes: The nodes that are alive.
        before: Called with a node before each of its callbacks; it may kill or stop that node.
        after_work: Called with a node after a function that it ran in an executor.
        on_error: Called with an exception that no task caught.
    """

    def __init__(self, draws: Draws) -> None:
        self.now = 0.0
        self.points = 0
        self.nodes: list[Node] = []
        self.before: Callable[[Node], None] = lambda node: None
        self.after_work: Callable[[Node], None] = lambda node: None
        self.on_error: Callable[[str], None] = lambda problem: None
        self._draws = draws
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._tasks: list[asyncio.Task[Any]] = []
        self._generators: dict[int, Node] = {}
        self._self = cast("asyncio.AbstractEventLoop", self)

    def run_until(self, is_over: Callable[[], bool]) -> None:
        """
        Run all nodes until *is_over*, or until nothing is left to run.

        Raises:
            Endless: The run takes too many callbacks.
        """
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._generator_began, finalizer=self._generator_left)
        asyncio._set_running_loop(self._self)
        try:
            self._drive(is_over, None)
        finally:
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def stand_still(self, seconds: float) -> None:
        """Stop the node of the running callback inside that callback, while all other nodes continue."""
        node = NODE.get()
        task = asyncio.current_task(self._self)
        if task:
            asyncio.tasks._leave_task(self._self, task)
        node.stopped_until = self.now + seconds
        try:
            self._drive(lambda: self.now >= node.stopped_until, node)
        finally:
            if task:
                asyncio.tasks._enter_task(self._self, task)

    def bury(self, node: Node) -> None:
        """Stop *node* for good, without finalising any of its objects."""
        node.is_dead = True
        node.kept.extend(node.ready)
        node.ready.clear()
        if node in self.nodes:
            self.nodes.remove(node)

    def _drive(self, is_over: Callable[[], bool], stopped: Node | None) -> None:
        """Run until *is_over*; busy nodes do not run, and the time of *stopped* counts as an event to wait for."""
        while not is_over():
            if self.points >= MOST_POINTS:
                raise Endless
            self._wake()
            runnable = [n for n in self.nodes if n.ready and not n.is_busy and n.stopped_until <= self.now]
            if not runnable:
                if not self._jump(stopped):
                    return
                continue
            node = runnable[0] if len(runnable) == 1 else self._draws.choice("turn", runnable)
            self._run_one(node)

    def _run_one(self, node: Node) -> None:
        if node.ready[0].cancelled():
            node.ready.popleft()
            return
        self.points += 1
        self.now += CALLBACK_SECONDS
        self.before(node)
        if node.is_dead or node.stopped_until > self.now:
            return
        node.is_busy = True
        node.ready.popleft()._run()
        node.is_busy = False

    def _wake(self) -> None:
        while self._timers and self._timers[0][0] <= self.now:
            _, _, timer = heapq.heappop(self._timers)
            if not timer.cancelled():
                self._schedule(timer)

    def _jump(self, stopped: Node | None) -> bool:
        """Advance the time until some node, or *stopped*, can run; False: none ever can."""
        while self._timers and (self._timers[0][2].cancelled() or _node_of(self._timers[0][2]).is_dead):
            heapq.heappop(self._timers)
        moments = [node.stopped_until for node in self.nodes if node.ready and not node.is_busy]
        if self._timers:
            moments.append(self._timers[0][0])
        if stopped:
            moments.append(stopped.stopped_until)
        if not moments:
            return False
        self.now = max(self.now, min(moments))
        return True

    def _schedule(self, handle: asyncio.Handle) -> None:
        node = _node_of(handle)
        if node.is_dead:
            node.kept.append(handle)
        else:
            node.ready.append(handle)

    def _generator_began(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[id(generator)] = NODE.get()

    def _generator_left(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Close an abandoned generator as asyncio does: in a task of its process."""
        node = self._generators.pop(id(generator))
        if node.is_dead:
            node.kept.append(generator)
        else:
            node.context.copy().run(self.create_task, generator.aclose())

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self._self, context or contextvars.copy_context())
        self._schedule(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self._self, context or contextvars.copy_context())
        heapq.heappush(self._timers, (when, next(self._numbers), timer))
        return timer

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Does nothing: cancelled timers are skipped."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self._self)

    def create_task(
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self._self, name=name, context=context)
        # The reference keeps a task of a dead node from being finalised, which would run its "finally" blocks.
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run *func* in one callback."""
        future = self.create_future()
        self.call_soon(self._work, future, func, args)
        return future

    def _work(self, future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if future.cancelled():
            return
        try:
            result = func(*args)
        except Exception as error:
            self.after_work(NODE.get())
            future.set_exception(error)
        else:
            self.after_work(NODE.get())
            future.set_result(result)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.on_error(f"{context.get('message')}: {context.get('exception')!r}")

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False


def _node_of(handle: asyncio.Handle) -> Node:
    node: Node = handle._context[NODE]  # type: ignore[attr-defined]
    return node
