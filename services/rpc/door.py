"""
The door of a listener: who may make a call, decided before its message is read.

A stream handler serves every method, because gRPC reads the message of any other handler before it calls that: callers
without a token could fill the memory of the server.
"""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import grpc
from grpc_status import rpc_status

from services.access.authentication import NOBODY, Refusal, authenticate
from services.access.listeners import Listener, ListenerKind
from services.access.token_file import TokenFile, TokenUnusable
from services.access.tokens import TokenDigest
from services.core.errors import PkgerError, RequestInvalid, TooManyCalls, Unauthenticated
from services.rpc.call import ENDLESS, LONGEST_CALL_SECONDS, caller
from services.rpc.dispatcher import Handler
from services.rpc.error_frames import forget_traceback
from services.rpc.errors import to_status

log = logging.getLogger("pkger.rpc")

MOST_CALLS_OF_PRINCIPAL = 100
"""Most calls in flight of one principal at a loopback listener."""

MOST_CALLS_OF_LISTENER = 1_000
"""Most calls in flight at one listener; sockets have no limit."""

MOST_HEALTH_CHECKS = 1_000
MOST_HEALTH_WATCHES = 16
"""Most calls of ``Health.Check`` and ``Health.Watch`` without a token in flight at one listener."""

HEALTH_MESSAGE_SECONDS = 5.0
"""Time for the message of a health check without a token."""

REPORT_SECONDS = 60.0
"""Equal refusals within this time are counted, and become one line of the log at its end."""

TOO_LONG = f"the call had no deadline, and took more than {LONGEST_CALL_SECONDS:.0f} s; set a longer deadline"

_HEALTH = "/grpc.health.v1.Health/"

_Respond = Callable[[Any, Any], Awaitable[Any]]
"""Answers a request, or an iterator of requests, on a call of ``grpc.aio``: returns the response, or writes several."""


class Door:
    """The door of one listener."""

    def __init__(self, listener: Listener, token: TokenFile | None = None) -> None:
        """
        Args:
            listener: Where the calls arrive.
            token: The token that it accepts; None for a socket, which needs none.
        """
        self._kind = listener.kind
        self._token = token
        self._problem = ""
        self._refusals = Refusals(listener.address)
        self._in_flight: Counter[str] = Counter()
        self._health_in_flight: Counter[str] = Counter()

    def guarded(self, method: str, handler: Handler) -> Handler:
        """*handler*, the handler of *method* (``/package.Service/Method``), behind the door."""
        respond, make = _responding(handler)

        async def serve(requests: AsyncIterator[Any], call: Any) -> Any:
            is_bounded = call.time_remaining() is None and method not in ENDLESS
            try:
                async with asyncio.timeout(LONGEST_CALL_SECONDS if is_bounded else None):
                    with self._admitted(method, call):
                        if handler.request_streaming:
                            return await respond(requests, call)
                        return await respond(await _message(method, requests), call)
            except grpc.aio.AbortError as error:
                # gRPC keeps it in a cycle, which is collected late: with its traceback, it would keep the request.
                forget_traceback(error)
                raise
            except TimeoutError:
                # A client that reads no more never gets the status; once it is gone, this fails.
                with suppress(grpc.aio.InternalError):
                    await call.abort(grpc.StatusCode.DEADLINE_EXCEEDED, TOO_LONG)
            except PkgerError as error:
                status = rpc_status.to_status(to_status(error))
                await call.abort(status.code, status.details, status.trailing_metadata)

        return make(serve, handler.request_deserializer, handler.response_serializer)

    @contextmanager
    def _admitted(self, method: str, call: Any) -> Iterator[None]:
        """
        Admit a call for the time of the block, with its caller in the context.

        Raises:
            Unauthenticated: It has no valid token.
            TooManyCalls: Its caller, or the listener, has too many calls in flight.
        """
        result = authenticate(self._kind, call.invocation_metadata() or (), self._accepted())
        if isinstance(result, Refusal):
            if not method.startswith(_HEALTH):
                self._refusals.add(result)
                raise Unauthenticated
            caller.set(NOBODY)
            self._admit_health(method, call)
            yield
            return
        caller.set(result)
        self._refuse_beyond_limits(result.principal)
        self._in_flight[result.principal] += 1
        try:
            yield
        finally:
            self._in_flight[result.principal] -= 1

    def _admit_health(self, method: str, call: Any) -> None:
        """
        Count a health check of somebody without a token, apart from other calls, so that it takes no place of theirs.

        It counts until gRPC forgets it: a client that accepts no bytes keeps it after its handler has ended.

        Raises:
            TooManyCalls: There are too many.
        """
        limit = MOST_HEALTH_WATCHES if method == f"{_HEALTH}Watch" else MOST_HEALTH_CHECKS
        if self._health_in_flight[method] >= limit:
            raise TooManyCalls("whoever has no token", limit)
        self._health_in_flight[method] += 1
        call.add_done_callback(lambda _: self._health_in_flight.subtract((method,)))

    def _refuse_beyond_limits(self, principal: str) -> None:
        """
        Refuse one more call of *principal* beyond the limits of calls in flight.

        Raises:
            TooManyCalls: There are too many.
        """
        if self._kind is ListenerKind.SOCKET:
            return
        if self._in_flight.total() >= MOST_CALLS_OF_LISTENER:
            raise TooManyCalls("this address", MOST_CALLS_OF_LISTENER)
        # On a network, the services call each other as the operator, too, for many callers.
        if self._kind is ListenerKind.LOOPBACK and self._in_flight[principal] >= MOST_CALLS_OF_PRINCIPAL:
            raise TooManyCalls(principal, MOST_CALLS_OF_PRINCIPAL)

    def _accepted(self) -> TokenDigest | None:
        """The token that is accepted now; None: a socket, or there is no usable token."""
        if self._token is None:
            return None
        try:
            digest, problem = self._token.digest(), ""
        except TokenUnusable as error:
            digest, problem = None, str(error)
        if problem != self._problem:
            self._problem = problem
            log.error("no token is accepted: %s", problem) if problem else log.info("the token is accepted again")
        return digest


class Refusals:
    """Counts refused calls, so that whoever has no token cannot fill the log: the first of equal ones is logged."""

    def __init__(self, address: str, seconds: float = REPORT_SECONDS) -> None:
        """*address* is that of the listener; equal refusals within *seconds* are one line."""
        self._address = address
        self._seconds = seconds
        self._counts: Counter[Refusal] = Counter()

    def add(self, refusal: Refusal) -> None:
        """Count a refusal."""
        self._counts[refusal] += 1
        if self._counts[refusal] == 1:
            self._log(refusal, 1)
            asyncio.get_running_loop().call_later(self._seconds, self._end, refusal)

    def _end(self, refusal: Refusal) -> None:
        if more := self._counts.pop(refusal) - 1:
            self._log(refusal, more)

    def _log(self, refusal: Refusal, calls: int) -> None:
        log.warning("calls refused", extra={"address": self._address, "problem": refusal, "calls": calls})


async def _message(method: str, requests: AsyncIterator[Any]) -> Any:
    """
    Read the one message of a call.

    Raises:
        RequestInvalid: There is none, or it does not arrive in time.
    """
    longest = LONGEST_CALL_SECONDS if method in ENDLESS else None
    seconds = HEALTH_MESSAGE_SECONDS if caller.get() is NOBODY else longest
    try:
        async with asyncio.timeout(seconds):
            return await anext(requests)
    except TimeoutError:
        raise RequestInvalid("request", f"no message arrived in {seconds:.0f} s") from None
    except StopAsyncIteration:
        raise RequestInvalid("request", f"the call has no message; {method} needs one") from None


def _responding(handler: Handler) -> tuple[_Respond, Callable[..., Handler]]:
    """What answers the requests of *handler*, and what makes a handler of it that reads its messages itself."""
    behaviour: Any
    if not handler.response_streaming:
        behaviour = handler.unary_unary
        return behaviour, grpc.stream_unary_rpc_method_handler
    behaviour = handler.stream_stream if handler.request_streaming else handler.unary_stream

    async def each(request: Any, call: Any) -> None:
        async with aclosing(behaviour(request, call)) as responses:
            async for response in responses:
                await call.write(response)

    # The servicer of health is a coroutine that writes its responses itself.
    return each if inspect.isasyncgenfunction(behaviour) else behaviour, grpc.stream_stream_rpc_method_handler
