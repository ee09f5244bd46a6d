"""One way to call a service: wait for the connection, deadline, request id, errors of the core."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar, cast

import grpc

from services.core.errors import ServiceUnavailable
from services.machine import Ids, MachineIds
from services.rpc.call import REQUEST_ID_KEY, loop_time, new_request_id, request_id, time_left
from services.rpc.channel import Connect, grpc_channel
from services.rpc.errors import from_rpc
from services.settings import READY_SECONDS

Response = TypeVar("Response")

CALL_SECONDS = 60.0
"""What a call to another service may take when its caller sets no shorter deadline."""


class Peer:
    """
    One service that this process calls.

    Attributes:
        name: What people call it.
        address: Where it is.
        platform: Configured name of the platform whose driver this is; empty for any other service.
        channel: For the generated stubs.
    """

    def __init__(
        self,
        name: str,
        address: str,
        *,
        platform: str = "",
        connect: Connect = grpc_channel,
        ids: Ids = MachineIds(),
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        """
        Connect when the first call is made.

        Args:
            name: What people call it.
            address: Where it is.
            platform: Configured name of the platform whose driver this is; empty for any other service.
            connect: Makes the channel.
            ids: Draws request ids for calls that are made outside of calls.
            ready_seconds: How long a call waits for a connection before it fails; its deadline counts too.
        """
        self.name = name
        self.address = address
        self.platform = platform
        self._ids = ids
        self._ready_seconds = ready_seconds
        # The type that the generated stubs are annotated with; they need no more than a channel has.
        self.channel = cast("grpc.aio.Channel", connect(address))

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[Any, Response] | grpc.UnaryUnaryMultiCallable[Any, Response]",
        request: Any,
        seconds: float | None = CALL_SECONDS,
    ) -> Response:
        """
        Call a unary method; without a connection, wait for one first.

        Args:
            method: From the generated stub.
            request: Its request.
            seconds: What it may take at most; the deadline of the call being served counts too. None: only that.

        Raises:
            PkgerError: What the service answered with, or ``ServiceUnavailable``.
        """
        timeout = await self._connected(seconds)
        with self._translated():
            call: Any = method(request, timeout=timeout, metadata=self._metadata())
            response: Response = await call
            return response

    async def stream(
        self,
        method: "grpc.aio.UnaryStreamMultiCallable[Any, Response] | grpc.UnaryStreamMultiCallable[Any, Response]",
        request: Any,
        seconds: float | None = CALL_SECONDS,
    ) -> AsyncGenerator[Response, None]:
        """
        Call a method with a stream of answers; arguments and errors as for ``call``.

        A caller that leaves the loop early cancels the call.
        """
        timeout = await self._connected(seconds)
        with self._translated():
            call: Any = method(request, timeout=timeout, metadata=self._metadata())
            try:
                async for response in call:
                    yield response
            finally:
                call.cancel()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """
        For callers that repeat their calls: count an answer with a code that no service of ours gives as none.

        Raises:
            ServiceUnavailable: Something between the services gave such an answer in place of this one.
        """
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise ServiceUnavailable(self.name, self.address, str(error.details()), self.platform) from error

    async def close(self) -> None:
        """Close the connection."""
        await self.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def _connected(self, seconds: float | None) -> float | None:
        """
        Wait for a connection, so that a service that restarts fails no call; the time that is left for the call.

        A call with wait_for_ready would wait until its deadline, and one without limit for ever.

        Raises:
            ServiceUnavailable: There was no connection in time. The call was not sent.
        """
        began = loop_time()
        left = time_left(seconds)
        try:
            async with asyncio.timeout(min(self._ready_seconds, math.inf if left is None else left)):
                await self.channel.channel_ready()
        except TimeoutError as error:
            raise ServiceUnavailable(self.name, self.address, "no connection", self.platform) from error
        return time_left(None if seconds is None else max(seconds - (loop_time() - began), 0.0))

    def _metadata(self) -> tuple[tuple[str, str]]:
        return ((REQUEST_ID_KEY, request_id.get() or new_request_id(self._ids)),)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self.name, self.address, self.platform) from error


class Platforms:
    """The drivers of all platforms: one connection each, made when it is first needed."""

    def __init__(
        self,
        address_of: Callable[[str], str],
        connect: Connect = grpc_channel,
        ids: Ids = MachineIds(),
        names: Iterable[str] = (),
    ) -> None:
        """
        Args:
            address_of: Finds the address of a platform's driver by its name, or raises ``PlatformUnknown``.
            connect: As for ``Peer``.
            ids: As for ``Peer``.
            names: The platforms that are configured, as far as anybody asks.
        """
        self._address_of = address_of
        self._connect = connect
        self._ids = ids
        self._drivers: dict[str, Peer] = {}
        self.names = tuple(names)

    def driver(self, platform: str) -> Peer:
        """
        The driver of *platform*.

        Raises:
            PlatformUnknown: No platform of that name is configured.
        """
        if platform not in self._drivers:
            address = self._address_of(platform)
            self._drivers[platform] = Peer("platform", address, platform=platform, connect=self._connect, ids=self._ids)
        return self._drivers[platform]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        for peer in self._drivers.values():
            await peer.close()
