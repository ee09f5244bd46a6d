"""
The network between services in one process, in place of gRPC: channels, and calls of dispatchers.

Messages pass as bytes. A call has the semantics of gRPC: a deadline, cancellation, and retries of safe methods. The
simulation adds latency, faults and crashes (``tests/simulation/network.py``).
"""

import asyncio
import contextlib
import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from itertools import count
from typing import Any, Never, cast

import grpc

from services.rpc.call import loop_time
from services.rpc.channel import SAFE_METHODS
from services.rpc.dispatcher import NO_RETRY, Dispatcher, Handler
from services.rpc.process import Service
from services.system import Clock, MachineIds, machine_clock

Pairs = Sequence[tuple[str, str | bytes]]

ATTEMPTS, FIRST_BACKOFF, LONGEST_BACKOFF = 4, 0.1, 1.0
"""How gRPC retries safe methods (services/rpc/channel.py)."""

_SAFE = frozenset(f"/{service}/{method}" for service, methods in SAFE_METHODS.items() for method in methods)

_OK = grpc.StatusCode.OK
_UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


class Numbered(MachineIds):
    """Draws a letter and a counter; salts and jitter are random."""

    def __init__(self, letter: str) -> None:
        self._letter, self._numbers = letter, count(1)

    def token(self, size: int) -> str:
        return f"{self._letter}{next(self._numbers):0{2 * size - 1}x}"


class Aborted(Exception):
    """A servicer or the dispatcher ended a call with a status."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Pairs) -> None:
        super().__init__(code, details)
        self.code, self.details, self.trailing = code, details, trailing


class ServedCall:
    """
    One call as its servicer sees it, a ``Call``.

    Attributes:
        trailing: The trailing metadata that was set.
        code: The status that the call ends with.
        details: The text of the status.
    """

    def __init__(self, metadata: Pairs = (), seconds: float | None = None) -> None:
        self.trailing: Pairs = ()
        self.code, self.details = _OK, ""
        self._metadata = metadata
        self._end = math.inf if seconds is None else loop_time() + seconds

    def invocation_metadata(self) -> Pairs:
        return self._metadata

    def time_remaining(self) -> float | None:
        return None if math.isinf(self._end) else max(self._end - loop_time(), 0.0)

    def peer(self) -> str:
        return "in-memory"

    def set_code(self, code: grpc.StatusCode) -> None:
        self.code = code

    def set_details(self, details: str) -> None:
        self.details = details

    def set_trailing_metadata(self, trailing_metadata: Pairs) -> None:
        self.trailing = trailing_metadata

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Pairs = ()) -> Never:
        raise Aborted(code, details, trailing_metadata)


class Network:
    """
    Servers by address; ``connect`` makes channels to them.

    Attributes:
        servers: The dispatcher at each address.
    """

    def __init__(self) -> None:
        self.servers: dict[str, Dispatcher] = {}
        self.in_flight: dict[Attempt, None] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._watching: dict[str, list[asyncio.Future[None]]] = {}

    def connect(self, address: str) -> "InMemoryChannel":
        """A channel to *address*."""
        return InMemoryChannel(self, address)

    def serve(self, address: str, dispatcher: Dispatcher) -> None:
        """Serve *address*; callers that wait for it connect."""
        self.servers[address] = dispatcher
        for waiting in self._waiting.pop(address, []):
            asyncio.get_running_loop().call_later(self.reconnect_seconds(address), _set, waiting)

    def cut(self, address: str) -> None:
        """Reset the connections to *address*; the server learns of that at once."""
        for attempt in [attempt for attempt in self.in_flight if attempt.call.address == address]:
            attempt.reset()
        self.lose(address)

    def lose(self, address: str) -> None:
        """Tell all that watch their connection to *address* that it is lost."""
        for watching in self._watching.pop(address, []):
            _set(watching)

    async def lost(self, address: str) -> None:
        """Wait until the connections to *address* are reset."""
        watching = asyncio.get_running_loop().create_future()
        self._watching.setdefault(address, []).append(watching)
        await watching

    async def connected(self, address: str) -> None:
        """Wait until something is served at *address*."""
        while address not in self.servers:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(address, []).append(waiting)
            await waiting

    def send(self, call: "InMemoryCall") -> "Attempt":
        """Send the request of *call*."""
        return Attempt(self, call)

    def reconnect_seconds(self, address: str) -> float:
        """How long after its start a server is reconnected."""
        return 0.0

    def backoff_jitter(self, call: "InMemoryCall") -> float:
        """A number from 0 to 1 that shortens or lengthens a backoff before a retry."""
        return 0.5


@asynccontextmanager
async def serving_in_memory(
    network: Network, address: str, service: Service, grace: float, clock: Clock = machine_clock
) -> AsyncIterator[None]:
    """Serve at *address* while the block is open, with the end of ``services.rpc.server.serving``."""
    dispatcher = Dispatcher(service.register, clock)
    network.serve(address, dispatcher)
    try:
        yield
    finally:
        dispatcher.refuse_new = True
        if service.drain:
            await service.drain()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(dispatcher.idle.wait(), grace)
        del network.servers[address]
        network.cut(address)
        await dispatcher.idle.wait()


class InMemoryChannel:
    """A connection to an address; a ``Channel`` of services.rpc.channel."""

    def __init__(self, network: Network, address: str) -> None:
        self._network = network
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

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        assert last_observed_state is grpc.ChannelConnectivity.READY, "a peer watches a connection that is ready"
        await self._network.lost(self._address)

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
    ) -> "InMemoryCall":
        body = serialize(request)
        return InMemoryCall(self._network, self._address, method, request, body, deserialize, timeout, metadata)


class InMemoryCall:
    """
    The caller's side of one call: awaited for one answer, iterated for many.

    Attributes:
        context: The context of the caller.
        deadline: The end of the call, by ``loop_time``.
    """

    def __init__(
        self,
        network: Network,
        address: str,
        method: str,
        request: Any,
        body: bytes,
        deserialize: Callable[[bytes], Any],
        timeout: float | None,
        metadata: Pairs,
    ) -> None:
        self.address, self.method = address, method
        self.request, self.body, self.metadata = request, body, metadata
        self.context = copy_context()
        self.deadline = math.inf if timeout is None else loop_time() + timeout
        self._network = network
        self._deserialize = deserialize
        self._answers: deque[bytes] = deque()
        self._status: tuple[grpc.StatusCode, str, Pairs] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._attempts = 1
        self._is_committed = False
        self._timer: asyncio.TimerHandle | None = None
        if timeout is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self.deadline, self._deadline_passed, context=self.context)
        self._attempt = network.send(self)

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

    def __aiter__(self) -> "InMemoryCall":
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
            self._is_committed = True
            self._answers.append(answer)
            self._notify()

    def commit(self, attempt: "Attempt") -> None:
        """Receive the beginning of a response to an attempt: from now on, the call is not retried."""
        if attempt is self._attempt:
            self._is_committed = True

    def fail(self, attempt: "Attempt", code: grpc.StatusCode, details: str, trailing: Pairs = ()) -> None:
        """Receive the status of an attempt, which may be OK."""
        if self._status is not None or attempt is not self._attempt:
            return
        may_repeat = code is _UNAVAILABLE and self.method in _SAFE and NO_RETRY not in trailing
        if may_repeat and not self._is_committed and self._attempts < ATTEMPTS:
            backoff = min(FIRST_BACKOFF * 2 ** (self._attempts - 1), LONGEST_BACKOFF)
            self._attempts += 1
            backoff *= 0.8 + 0.4 * self._network.backoff_jitter(self)
            asyncio.get_running_loop().call_later(backoff, self._repeat, context=self.context)
        else:
            self._end(code, details, trailing)

    async def _one(self) -> Any:
        answer = await anext(self)
        with contextlib.suppress(StopAsyncIteration):
            await anext(self)
        return answer

    async def _something_arrives(self) -> None:
        while not self._answers and self._status is None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._waiter = None

    def _repeat(self) -> None:
        if self._status is None:
            self._attempt = self._network.send(self)

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

    This class delivers each message at once. A subclass with latency replaces ``send``, ``send_back`` and ``leave``.

    Attributes:
        call: The call.
        dispatcher: The server; None: there is none at the address.
        task: Serves the call; None: the request has not arrived.
    """

    def __init__(self, network: Network, call: InMemoryCall) -> None:
        self.call = call
        self.dispatcher = network.servers.get(call.address)
        self.task: asyncio.Task[None] | None = None
        self._network = network
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False
        self.send()

    def send(self) -> None:
        """Send the request."""
        self._network.in_flight[self] = None
        if self.dispatcher is None:
            self.end(_UNAVAILABLE, "no connection")
        else:
            asyncio.get_running_loop().call_soon(self.arrive)

    def leave(self) -> None:
        """The caller stopped waiting; the server learns of that after the request, and stops."""
        asyncio.get_running_loop().call_soon(self.stop)

    def reset(self) -> None:
        """Reset the connection of the call."""
        self.stop()
        self.end(_UNAVAILABLE, "connection reset")

    def end(self, code: grpc.StatusCode, details: str) -> None:
        """End the call at its caller, with a status that does not come from the server."""
        asyncio.get_running_loop().call_soon(self.call.fail, self, code, details)
        self.over()

    def over(self) -> None:
        """The attempt is over."""
        self._network.in_flight.pop(self, None)

    def server_context(self) -> Context:
        """The context of the server: it learns of its caller only through the request."""
        return Context()

    def stop(self) -> None:
        """Stop the server's work for the call."""
        if self.task is None:
            self._is_over = True
        elif not self.task.done():
            self.task.cancel()

    def arrive(self) -> None:
        """The request arrives at the server."""
        if self._is_over:
            return
        assert self.dispatcher is not None
        loop, deadline = asyncio.get_running_loop(), self.call.deadline
        served = ServedCall(self.call.metadata, None if math.isinf(deadline) else deadline - loop.time())
        handler = self.dispatcher.handlers[self.call.method]
        self.task = loop.create_task(self.serve(handler, served), context=self.server_context())
        self.task.add_done_callback(partial(self.served, served), context=self.server_context())
        if self.has_server_deadline:
            self._timer = loop.call_at(deadline, self.stop, context=self.server_context())

    @property
    def has_server_deadline(self) -> bool:
        """Whether the server stops at the deadline."""
        return not math.isinf(self.call.deadline)

    async def serve(self, handler: Handler, served: ServedCall) -> None:
        """Run the handler."""
        behaviour: Any = handler
        message = behaviour.request_deserializer(self.call.body)
        if handler.response_streaming:
            async for answer in behaviour.unary_stream(message, served):
                self.answer(answer, behaviour.response_serializer)
                await asyncio.sleep(0)
        else:
            answer = await behaviour.unary_unary(message, served)
            if served.code is _OK:
                self.answer(answer, behaviour.response_serializer)
            else:
                # A gRPC server sends headers before a status that the servicer has set, but not before an abortion.
                self.send_back(self.call.commit, self)

    def answer(self, answer: Any, serialize: Callable[[Any], bytes]) -> None:
        """Send one answer."""
        self.send_back(self.call.take, self, serialize(answer))

    def served(self, served: ServedCall, task: "asyncio.Task[None]") -> None:
        """The handler has ended: send the status."""
        code, details, trailing = served.code, served.details, served.trailing
        if self._timer:
            self._timer.cancel()
        if task.cancelled():
            code, details = grpc.StatusCode.CANCELLED, "the server stopped"
        elif isinstance(error := task.exception(), Aborted):
            code, details, trailing = error.code, error.details, error.trailing
        elif error is not None:
            code, details = grpc.StatusCode.UNKNOWN, f"a defect of the server: {error!r}"
        self.send_back(self.call.fail, self, code, details, trailing)
        self.over()

    def send_back(self, what: Callable[..., None], *args: Any) -> None:
        """Send a message to the caller, in order after the earlier ones."""
        asyncio.get_running_loop().call_soon(what, *args)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
