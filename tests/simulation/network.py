"""The network between simulated processes: latency, faults and deaths of processes (docs/simulation.md)."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from typing import Any, Protocol

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from services.rpc.dispatcher import Dispatcher, Handler
from tests.rpc.in_memory import Aborted, Attempt, InMemoryCall, Network, Pairs, ServedCall
from tests.simulation import faults
from tests.simulation.draws import Draws
from tests.simulation.faults import Faults
from tests.simulation.loop import NODE, Node, SimulatedLoop
from tests.simulation.trace import Trace

current: ContextVar["SimulatedAttempt"] = ContextVar("served_attempt")
"""The call that a task serves."""

_LATE_SECONDS = 0.5
"""Shortest latency of a late message; by then it may have been sent again, and later steps may be done."""

_STATUS = "grpc-status-details-bin"

_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Watcher(Protocol):
    """Observes all messages; the oracle is one."""

    def sent(self, attempt: "SimulatedAttempt", request: Any) -> None:
        """A node sends *request*."""

    def arrived(self, attempt: "SimulatedAttempt") -> None:
        """A request has arrived at its server, which is about to serve it."""

    def answered(self, attempt: "SimulatedAttempt", answer: Any) -> None:
        """A server answers with *answer*, which may get lost later. The watcher may change it."""

    def is_forgotten(self, attempt: "SimulatedAttempt") -> bool:
        """Whether a restore of the store has removed the stack of a write in flight, so that no token fences it."""


class SimulatedNetwork(Network):
    """
    Connects nodes.

    Attributes:
        nodes: The node that serves each address.
        settle: Longest latency of a request to a driver, in seconds.
        fences: Whether the platform fences.
        watcher: Sees all messages.
        on_write: Called with the node that has just sent a write to a platform.
    """

    def __init__(
        self, loop: SimulatedLoop, draws: Draws, faults_: Faults, trace: Trace, watcher: Watcher, settle: float
    ) -> None:
        super().__init__()
        self.nodes: dict[str, Node] = {}
        self.loop, self.draws, self.faults, self.trace, self.watcher = loop, draws, faults_, trace, watcher
        self.settle = settle
        self.fences = True
        self.very_late = False
        self.on_write: Callable[[Node], None] = lambda caller: None

    def serve(self, address: str, dispatcher: Dispatcher) -> None:
        """Let the running node serve *address*."""
        self.nodes[address] = NODE.get()
        super().serve(address, dispatcher)

    def bury(self, node: Node) -> None:
        """*node* was killed: its connections end, but the requests that it has sent are still in flight."""
        for address in [address for address, server in self.nodes.items() if server is node]:
            del self.nodes[address]
            del self.servers[address]
            self.lose(address)
        for attempt in list(self.in_flight):
            assert isinstance(attempt, SimulatedAttempt)
            if attempt.caller is node:
                attempt.caller_died()
            elif attempt.server is node:
                attempt.server_died()

    def send(self, call: InMemoryCall) -> "SimulatedAttempt":
        """Send the request of *call* with the latency and the fault that are drawn."""
        return SimulatedAttempt(self, call)

    def reconnect_seconds(self, address: str) -> float:
        """Draw how long after its start a server is reconnected."""
        return self.draws.spread(f"reconnect {address}", 0.1, 2.0)

    def backoff_jitter(self, call: InMemoryCall) -> float:
        """Draw the jitter of a backoff."""
        return self.draws.fraction(f"backoff {call.name} {NODE.get().name}")

    def deliver(self, node: Node, delay: float, what: Callable[..., None], *args: Any) -> float:
        """Call *what* on *node* after *delay*; returns the time of the call."""
        when = self.loop.now + delay
        self.loop.call_at(when, what, *args, context=node.context)
        return when

    def delay(self, label: str) -> float:
        """The latency of one message."""
        return self.draws.spread(f"latency {label}", faults.SHORTEST_DELAY, faults.LONGEST_DELAY)


class SimulatedAttempt(Attempt):
    """
    An attempt that takes time, and that may meet a fault or the death of a process.

    Attributes:
        name: Method, caller and number of the attempt, such as "Mutate applier0/3".
        caller: The node that sends it.
        server: The node that it is sent to; None: no node serves the address.
        sent: The time at which it was sent.
        note: Data that the watcher attaches to it.
    """

    _network: SimulatedNetwork

    def __init__(self, network: SimulatedNetwork, call: InMemoryCall) -> None:
        self.caller = NODE.get()
        self.server = network.nodes.get(call.address)
        self.sent = self._arrival = self._last_arrival = network.loop.now
        self.note: Any = None
        self.name, self.fault = network.faults.of_call(call.name, self.caller.name)
        super().__init__(network, call)

    def send(self) -> None:
        """Send the request, unless its caller is dead."""
        network = self._network
        if self.caller.is_dead:
            return
        shown_fault = f" {self.fault}" if self.fault else ""
        network.trace.say(self.caller.name, f"calls {self.name} of {self.call.address}{shown_fault}")
        network.watcher.sent(self, self.call.request)
        if self.fault:
            network.trace.count(f"fault {self.fault}")
        network.in_flight[self] = None
        delay = network.delay(self.name.rpartition("/")[0])
        self._arrival = self.sent + delay
        if self.server is None or self.fault == faults.LOST:
            self.end_after(delay, _UNAVAILABLE, "no connection")
        elif self.fault in faults.CODES:
            self.end_after(delay, grpc.StatusCode[self.fault.removeprefix("code_")], faults.INTRUDER)
        elif self.fault == faults.SILENT:
            self._fall_silent()
        else:
            if self.fault in (faults.SLOW, faults.LATE):
                delay = self._very_long_delay() or self._long_delay()
            if self.fault == faults.LATE:
                self.end_after(network.delay("late"), _UNAVAILABLE, "connection lost")
            self._arrival = network.deliver(self.server, delay, self.arrive)
            if self.is_write_to_platform:
                network.on_write(self.caller)

    @property
    def is_write_to_platform(self) -> bool:
        """Whether it is a call whose latency the contract bounds."""
        return self.call.name == "Mutate"

    def leave(self) -> None:
        """The caller stopped waiting; the server learns of that after the request, and stops."""
        self._stop_server(self._network.delay("leave"))

    def caller_died(self) -> None:
        """The caller was killed. The request is still in flight, and the server may or may not notice the death."""
        network = self._network
        if network.draws.chance("death is noticed", 0.5):
            self._stop_server(network.draws.spread("death", 0.001, 1.0))
        elif network.very_late and network.fences and self.is_write_to_platform and self.task is None:
            network.trace.count("fault very_late")
            # Mostly after the lease of the sender has ended, which lasts up to 30 s.
            self._arrival += faults.VERY_LATE_SECONDS * network.draws.fraction("very late")
            # A dead caller does not enforce its deadline on a request in flight.
            self.call.deadline = math.inf

    def server_died(self) -> None:
        """The server was killed: the caller gets an error, or no answer until keepalive ends the connection."""
        if self._network.draws.chance("death is told", 0.8):
            self.end_after(self._network.delay("death"), _UNAVAILABLE, "connection reset")
        else:
            self._fall_silent()

    def _long_delay(self) -> float:
        longest = self._network.settle if self.is_write_to_platform else faults.SLOW_SECONDS
        longest = min(longest, faults.SLOW_SECONDS) if self.fault == faults.SLOW else longest
        shortest = _LATE_SECONDS if self.fault == faults.LATE else 0.05
        # The write itself takes a moment, which counts, too.
        return self._network.draws.spread(f"slow {self.call.name}", shortest, 0.95 * longest)

    def _very_long_delay(self) -> float:
        """The latency of a request that takes longer than settle; 0: this one does not."""
        network = self._network
        if self.fault != faults.LATE or not (network.very_late and network.fences and self.is_write_to_platform):
            return 0.0
        label = f"later than settle {self.call.name}"
        if not network.draws.chance(f"is {label}", 0.5):
            return 0.0
        network.trace.count("fault later than settle")
        return network.draws.spread(label, network.settle, faults.VERY_LATE_SECONDS)

    def _stop_server(self, delay: float) -> None:
        if self.server is None or self.fault == faults.LATE:
            return
        when = max(self._arrival, self._network.loop.now + delay)
        self._network.loop.call_at(when, self.stop, context=self.server.context)

    def arrive(self) -> None:
        """The request arrives at the server, unless it was delayed further, or is too old to take effect."""
        network = self._network
        assert self.server is not None
        if self._arrival > network.loop.now + 1e-9:
            # The death of its caller has delayed it meanwhile.
            network.deliver(self.server, self._arrival - network.loop.now, self.arrive)
            return
        if self._is_over:
            return
        is_late = self.is_write_to_platform and network.loop.now > self.sent + network.settle
        if is_late and (not network.fences or network.watcher.is_forgotten(self)):
            network.trace.say("platform", f"drops {self.name}: it is older than settle")
            return
        network.trace.say(self.server.name, f"serves {self.name}")
        network.watcher.arrived(self)
        super().arrive()

    def server_context(self) -> Context:
        """A context of the node that serves the call."""
        assert self.server is not None
        return self.server.context.copy()

    @property
    def has_server_deadline(self) -> bool:
        """Whether the server stops at the deadline."""
        return super().has_server_deadline and self.fault != faults.LATE

    async def serve(self, handler: Handler, served: ServedCall) -> None:
        """Run the handler; effects of its task are effects of this call."""
        current.set(self)
        await super().serve(handler, served)

    def answer(self, answer: Any, serialize: Callable[[Any], bytes]) -> None:
        """Send one answer, which the watcher sees first."""
        self._network.watcher.answered(self, answer)
        super().answer(answer, serialize)

    def served(self, served: ServedCall, task: "asyncio.Task[None]") -> None:
        """The handler has ended: send the status, and report a defect."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Aborted):
            for reason in _reasons(error.trailing):
                self._network.trace.count(f"error {reason}")
        elif error is not None:
            self._network.loop.on_error(f"{self.name} raised {error!r}")
        super().served(served, task)

    def send_back(self, what: Callable[..., None], *args: Any) -> None:
        """Send a message to the caller, in order after the earlier ones."""
        if self.fault == faults.ANSWER_LOST:
            self.end_after(self._network.delay("answer"), _UNAVAILABLE, "connection lost")
        elif self.fault == faults.ANSWER_SILENT:
            self._fall_silent()
        elif self.fault != faults.LATE and not self.caller.is_dead:
            delay = self._network.delay(f"{self.call.name} back")
            if self.fault == faults.SLOW_ANSWER:
                delay = self._network.draws.spread("slow answer", 0.05, faults.SLOW_SECONDS)
            self._last_arrival = max(self._last_arrival, self._network.loop.now + delay)
            self._network.loop.call_at(self._last_arrival, what, *args, context=self.caller.context)

    def end_after(self, delay: float, code: grpc.StatusCode, details: str) -> None:
        """End the call at its caller after *delay*, with a status that does not come from the server."""
        if not self.caller.is_dead:
            self._network.deliver(self.caller, delay, self.call.fail, self, code, details)
        if self.fault != faults.LATE:
            self.over()

    def _fall_silent(self) -> None:
        self.end_after(faults.KEEPALIVE_SECONDS, _UNAVAILABLE, "keepalive: the connection is dead")


def _reasons(trailing: Pairs) -> Iterator[str]:
    """The reasons of the error with which a pkger service ended a call."""
    for key, value in trailing:
        if key == _STATUS and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info):
                    yield info.reason
