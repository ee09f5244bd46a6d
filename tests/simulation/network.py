"""
The network between simulated processes, in place of gRPC: channels, and calls of dispatchers (docs/simulation.md).
"""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, cast

import grpc
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from services.rpc.channel import SAFE_METHODS
from services.rpc.dispatcher import NO_RETRY, Dispatcher, Handler
from tests.rpc.in_memory import Aborted, Pairs, ServedCall
from tests.simulation import faults
from tests.simulation.draws import Draws
from tests.simulation.faults import Faults
from tests.simulation.loop import NODE, Node, SimulatedLoop
from tests.simulation.trace import Trace

ATTEMPTS, FIRST_BACKOFF, LONGEST_BACKOFF = 4, 0.1, 1.0
"""How gRPC retries safe methods (services/rpc/channel.py)."""

_SAFE = frozenset(f"/{service}/{method}" for service, methods in SAFE_METHODS.items() for method in methods)

current: ContextVar["Attempt"] = ContextVar("served_attempt")
"""The call that a task serves."""

_LATE_SECONDS = 0.5
"""Shortest latency of a late message; by then it may have been sent again, and later steps may be done."""

_STATUS = "grpc-status-details-bin"

_OK = grpc.StatusCode.OK
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Watcher(Protocol):
    """Observes all messages; the oracle is one."""

    def sent(self, attempt: "Attempt", request: Any) -> None:
        """A node sends *request*."""

    def arrived(self, attempt: "Attempt") -> None:
        """A request has arrived at its server, which is about to serve it."""

    def answered(self, attempt: "Attempt", answer: Any) -> None:
        """A server answers with *answer*, which may get lost later. The watcher may change it."""

    def is_forgotten(self, attempt: "Attempt") -> bool:
        """Whether a restore of the store has removed the stack of a write in flight, so that no token fences it."""


class Network:
    """
    Connects nodes.

    Attributes:
        servers: The node and the dispatcher at each address.
        settle: Longest latency of a request to a driver, in seconds.
        fences: Whether the platform fences.
        watcher: Sees all messages.
        on_write: Called with the node that has just sent a write to a platform.
    """

    def __init__(
        self, loop: SimulatedLoop, draws: Draws, faults_: Faults, trace: Trace, watcher: Watcher, settle: float
    ) -> None:
        self.servers: dict[str, tuple[Node, Dispatcher]] = {}
        self.loop, self.draws, self.faults, self.trace, self.watcher = loop, draws, faults_, trace, watcher
        self.settle = settle
        self.fences = True
        self.very_late = False
        self.on_write: Callable[[Node], None] = lambda caller: None
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._in_flight: dict[Attempt, None] = {}

    def connect(self, address: str) -> "SimulatedChannel":
        """A channel of the running node."""
        return SimulatedChannel(self, NODE.get(), address)

    def serve(self, address: str, node: Node, dispatcher: Dispatcher) -> None:
        """Let *node* serve *address*; nodes that wait for the address reconnect after a backoff."""
        self.servers[address] = (node, dispatcher)
        for waiting in self._waiting.pop(address, []):
            backoff = self.draws.spread(f"reconnect {address}", 0.1, 2.0)
            self.loop.call_later(backoff, _set, waiting)

    async def connected(self, address: str) -> None:
        """Wait until something is served at *address*."""
        while address not in self.servers:
            waiting = self.loop.create_future()
            self._waiting.setdefault(address, []).append(waiting)
            await waiting

    def bury(self, node: Node) -> None:
        """*node* was killed: its connections end, but the requests that it has sent are still in flight."""
        for address in [address for address, (server, _) in self.servers.items() if server is node]:
            del self.servers[address]
        for attempt in list(self._in_flight):
            if attempt.caller is node:
                attempt.caller_died()
            elif attempt.server is node:
                attempt.server_died()

    def deliver(self, node: Node, delay: float, what: Callable[..., None], *args: Any) -> float:
        """Call *what* on *node* after *delay*; returns the time of the call."""
        when = self.loop.now + delay
        self.loop.call_at(when, what, *args, context=node.context)
        return when

    def delay(self, label: str) -> float:
        """The latency of one message."""
        return self.draws.spread(f"latency {label}", faults.SHORTEST_DELAY, faults.LONGEST_DELAY)

    def began(self, attempt: "Attempt") -> None:
        self._in_flight[attempt] = None

    def ended(self, attempt: "Attempt") -> None:
        self._in_flight.pop(attempt, None)


class SimulatedChannel:
    """A connection of one node to an address; a ``Channel`` of services.rpc.channel."""

    def __init__(self, network: Network, node: Node, address: str) -> None:
        self._network = network
        self._node = node
        self._address = address

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,
    ) -> Any:
        return partial(self._call, method, cast("Any", request_serializer), cast("Any", response_deserializer))

    unary_stream = unary_unary

    async def channel_ready(self) -> None:
        await self._network.connected(self._address)

    async def close(self) -> None:
        pass

    def _call(
        self,
        method: str,
        serialize: Callable[[Any], bytes],
        deserialize: Callable[[bytes], Any],
        request: Any,
        timeout: float | None = None,
        metadata: Pairs = (),
    ) -> "SimulatedCall":
        body = serialize(request)
        return SimulatedCall(
            self._network, self._node, self._address, method, request, body, deserialize, timeout, metadata
        )


class SimulatedCall:
    """The caller's side of one call: awaited for one answer, iterated for many."""

    def __init__(
        self,
        network: Network,
        node: Node,
        address: str,
        method: str,
        request: Any,
        body: bytes,
        deserialize: Callable[[bytes], Any],
        timeout: float | None,
        metadata: Pairs,
    ) -> None:
        self.network, self.node, self.address, self.method = network, node, address, method
        self.request, self.body, self.metadata = request, body, metadata
        self.deadline = math.inf if timeout is None else network.loop.now + timeout
        self._deserialize = deserialize
        self._answers: deque[bytes] = deque()
        self._status: tuple[grpc.StatusCode, str, Pairs] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._attempts = 1
        self._has_answers = False
        self._timer: asyncio.TimerHandle | None = None
        if timeout is not None:
            self._timer = network.loop.call_at(self.deadline, self._deadline_passed, context=node.context)
        self._attempt = Attempt(self)

    @property
    def name(self) -> str:
        """The method without its service."""
        return self.method.rpartition("/")[2]

    def cancel(self) -> None:
        """Cancel the call: its caller does not wait for the answer."""
        if self._status is None:
            self._end(grpc.StatusCode.CANCELLED, "the caller left", ())
            self._attempt.leave()

    def __await__(self) -> Any:
        return self._one().__await__()

    def __aiter__(self) -> "SimulatedCall":
        return self

    async def __anext__(self) -> Any:
        await self._something_arrives()
        if self._answers:
            return self._deserialize(self._answers.popleft())
        assert self._status is not None
        code, details, trailing = self._status
        if code is _OK:
            raise StopAsyncIteration
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), details)

    def take(self, attempt: "Attempt", answer: bytes) -> None:
        """Receive an answer to an attempt."""
        if self._status is None and attempt is self._attempt:
            self._has_answers = True
            self._answers.append(answer)
            self._notify()

    def fail(self, attempt: "Attempt", code: grpc.StatusCode, details: str, trailing: Pairs = ()) -> None:
        """Receive the status of an attempt, which may be OK."""
        if self._status is not None or attempt is not self._attempt:
            return
        may_repeat = code is _UNAVAILABLE and self.method in _SAFE and NO_RETRY not in trailing
        if may_repeat and not self._has_answers and self._attempts < ATTEMPTS:
            backoff = min(FIRST_BACKOFF * 2 ** (self._attempts - 1), LONGEST_BACKOFF)
            self._attempts += 1
            jitter = 0.8 + 0.4 * self.network.draws.fraction(f"backoff {self.name} {self.node.name}")
            self.network.deliver(self.node, backoff * jitter, self._repeat)
        else:
            self._end(code, details, trailing)

    async def _one(self) -> Any:
        answer = await anext(self)
        with contextlib.suppress(StopAsyncIteration):
            await anext(self)
        return answer

    async def _something_arrives(self) -> None:
        while not self._answers and self._status is None:
            self._waiter = self.network.loop.create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._waiter = None

    def _repeat(self) -> None:
        if self._status is None:
            self._attempt = Attempt(self)

    def _deadline_passed(self) -> None:
        if self._status is None:
            self._end(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time", ())
            self._attempt.leave()

    def _end(self, code: grpc.StatusCode, details: str, trailing: Pairs) -> None:
        self._status = (code, details, trailing)
        if self._timer:
            self._timer.cancel()
        self._notify()

    def _notify(self) -> None:
        if self._waiter:
            _set(self._waiter)


class Attempt:
    """
    One attempt of a call: the request to the server, and the messages that come back.

    Attributes:
        name: Method, caller and number of the attempt, such as "Mutate applier0/3".
        caller: The node that sends it.
        server: The node that it is sent to; None: no node serves the address.
        sent: The time at which it was sent.
        note: Data that the watcher attaches to it.
    """

    def __init__(self, call: SimulatedCall) -> None:
        self.call = call
        self.caller = call.node
        self.sent = call.network.loop.now
        self.note: Any = None
        self._network = network = call.network
        self.name, self.fault = network.faults.of_call(call.name, self.caller.name)
        served = network.servers.get(call.address)
        self.server: Node | None = served[0] if served else None
        self._dispatcher: Dispatcher | None = served[1] if served else None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._arrival = self._last_arrival = self.sent
        self._is_over = False
        if self.caller.is_dead:
            return
        shown_fault = f" {self.fault}" if self.fault else ""
        network.trace.say(self.caller.name, f"calls {self.name} of {call.address}{shown_fault}")
        network.watcher.sent(self, call.request)
        if self.fault:
            network.trace.count(f"fault {self.fault}")
        network.began(self)
        delay = network.delay(self.name.rpartition("/")[0])
        self._arrival = self.sent + delay
        if self.server is None or self.fault == faults.LOST:
            self._end(delay, _UNAVAILABLE, "no connection")
        elif self.fault in faults.CODES:
            self._end(delay, grpc.StatusCode[self.fault.removeprefix("code_")], faults.INTRUDER)
        elif self.fault == faults.SILENT:
            self._fall_silent()
        else:
            if self.fault in (faults.SLOW, faults.LATE):
                delay = self._very_long_delay() or self._long_delay()
            if self.fault == faults.LATE:
                self._end(network.delay("late"), _UNAVAILABLE, "connection lost")
            self._arrival = network.deliver(self.server, delay, self._arrive)
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
        elif network.very_late and network.fences and self.is_write_to_platform and self._task is None:
            network.trace.count("fault very_late")
            # Mostly after the lease of the sender has ended, which lasts up to 30 s.
            self._arrival += faults.VERY_LATE_SECONDS * network.draws.fraction("very late")
            # A dead caller does not enforce its deadline on a request in flight.
            self.call.deadline = math.inf

    def server_died(self) -> None:
        """The server was killed: the caller gets an error, or no answer until keepalive ends the connection."""
        if self._network.draws.chance("death is told", 0.8):
            self._end(self._network.delay("death"), _UNAVAILABLE, "connection reset")
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
        self._network.loop.call_at(when, self._stop, context=self.server.context)

    def _stop(self) -> None:
        if self._task is None:
            self._is_over = True
        elif not self._task.done():
            self._task.cancel()

    def _arrive(self) -> None:
        """The request arrives at the server."""
        network = self._network
        if self._arrival > network.loop.now + 1e-9:
            # The death of its caller has delayed it meanwhile.
            assert self.server is not None
            network.deliver(self.server, self._arrival - network.loop.now, self._arrive)
            return
        if self._is_over:
            return
        is_late = self.is_write_to_platform and network.loop.now > self.sent + network.settle
        if is_late and (not network.fences or network.watcher.is_forgotten(self)):
            network.trace.say("platform", f"drops {self.name}: it is older than settle")
            return
        assert self.server is not None
        assert self._dispatcher is not None
        network.trace.say(self.server.name, f"serves {self.name}")
        network.watcher.arrived(self)
        deadline = self.call.deadline
        served = ServedCall(self.call.metadata, None if math.isinf(deadline) else deadline - network.loop.now)
        handler = self._dispatcher.handlers[self.call.method]
        context = self.server.context.copy()
        self._task = network.loop.create_task(self._serve(handler, served), context=context)
        self._task.add_done_callback(lambda task: self._served(task, served), context=self.server.context)
        if not math.isinf(deadline) and self.fault != faults.LATE:
            self._timer = network.loop.call_at(deadline, self._stop, context=self.server.context)

    async def _serve(self, handler: Handler, served: ServedCall) -> None:
        behaviour: Any = handler
        current.set(self)
        message = behaviour.request_deserializer(self.call.body)
        if handler.response_streaming:
            async for answer in behaviour.unary_stream(message, served):
                self._answer(answer, behaviour.response_serializer)
                await asyncio.sleep(0)
        else:
            answer = await behaviour.unary_unary(message, served)
            self._answer(answer, behaviour.response_serializer)

    def _answer(self, answer: Any, serialize: Callable[[Any], bytes]) -> None:
        self._network.watcher.answered(self, answer)
        self._back(self.call.take, self, serialize(answer))

    def _served(self, task: asyncio.Task[None], served: ServedCall) -> None:
        code, details, trailing = _OK, "", served.trailing
        if self._timer:
            self._timer.cancel()
        if task.cancelled():
            code, details = grpc.StatusCode.CANCELLED, "the server stopped"
        elif isinstance(error := task.exception(), Aborted):
            code, details, trailing = error.code, error.details, error.trailing
            for reason in _reasons(trailing):
                self._network.trace.count(f"error {reason}")
        elif error is not None:
            self._network.loop.on_error(f"{self.name} raised {error!r}")
            code, details = grpc.StatusCode.UNKNOWN, "a defect of the server"
        self._back(self.call.fail, self, code, details, trailing)
        self._network.ended(self)

    def _back(self, what: Callable[..., None], *args: Any) -> None:
        """Send a message to the caller, in order after the earlier ones."""
        if self.fault == faults.ANSWER_LOST:
            self._end(self._network.delay("answer"), _UNAVAILABLE, "connection lost")
        elif self.fault == faults.ANSWER_SILENT:
            self._fall_silent()
        elif self.fault != faults.LATE and not self.caller.is_dead:
            delay = self._network.delay(f"{self.call.name} back")
            if self.fault == faults.SLOW_ANSWER:
                delay = self._network.draws.spread("slow answer", 0.05, faults.SLOW_SECONDS)
            self._last_arrival = max(self._last_arrival, self._network.loop.now + delay)
            self._network.loop.call_at(self._last_arrival, what, *args, context=self.caller.context)

    def _end(self, delay: float, code: grpc.StatusCode, details: str) -> None:
        """End the call at its caller after *delay*, with a status that does not come from the server."""
        if not self.caller.is_dead:
            self._network.deliver(self.caller, delay, self.call.fail, self, code, details)
        if self.fault != faults.LATE:
            self._network.ended(self)

    def _fall_silent(self) -> None:
        self._end(faults.KEEPALIVE_SECONDS, _UNAVAILABLE, "keepalive: the connection is dead")


def _reasons(trailing: Pairs) -> Iterator[str]:
    """The reasons of the error with which a pkger service ended a call."""
    for key, value in trailing:
        if key == _STATUS and isinstance(value, bytes):
            for detail in Status.FromString(value).details:
                info = ErrorInfo()
                if detail.Unpack(info):
                    yield info.reason


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
